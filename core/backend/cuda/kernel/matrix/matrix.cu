// What is done to matrices before and after a library decomposes them. Each
// element is visited once or twice: all of it takes little beside that.
#include <cmath>
#include <cstdint>

#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/matrix/matrix_elements.cuh"
#include "core/backend/cuda/kernel/matrix/matrix_tasks.h"
#include "core/ops/truncation.h"

namespace tensord::core::cuda {
namespace {

__device__ __forceinline__ bool IsIn(const LookTask& task, int64_t row,
                                     int64_t column) {
  if (row == column) return !task.skips_diagonal;
  return task.part == MatrixPart::kAll ||
         (row > column) == (task.part == MatrixPart::kLower);
}

/// A warp takes so many elements of a matrix.
constexpr int64_t kLook = 16 * 32;

int64_t LooksOf(const Matrices& m) {
  return m.count * ((m.rows * m.columns + kLook - 1) / kLook);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Look(const LookTask __grid_constant__ task, int64_t look_count) {
  const Matrices& m = task.matrices;
  const int64_t each = m.rows * m.columns;
  const int64_t looks = look_count / m.count;  // of a matrix
  const int64_t warps = int64_t{gridDim.x} * (kThreads / 32);
  const int lane = threadIdx.x % 32;
  for (int64_t look = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
       look < look_count; look += warps) {
    const int64_t matrix = look / looks, first = look % looks * kLook;
    const T* const a = static_cast<const T*>(m.data) + matrix * m.stride;
    const int64_t end = first + kLook < each ? first + kLook : each;
    int not_finite = 0, exponent = 0;
    for (int64_t i = first + lane; i < end; i += 32) {
      const int64_t column = i / m.rows, row = i - column * m.rows;
      if (!IsIn(task, row, column)) continue;
      const T x = a[i];
      const RealOf<T> real = fabs(RealPart(x)), imag = fabs(ImaginaryPart(x));
      if (!isfinite(real) || !isfinite(imag)) {
        const int left = static_cast<int>(
            task.counts_rows ? m.rows - row : m.columns - column);
        not_finite = left > not_finite ? left : not_finite;
        continue;
      }
      const RealOf<T> larger = real > imag ? real : imag;
      if (larger == 0) continue;
      const int own = ilogb(larger) + 1 + MatrixFacts::kBias;
      exponent = own > exponent ? own : exponent;
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      const int other_left = __shfl_xor_sync(~0u, not_finite, distance);
      const int other_exponent = __shfl_xor_sync(~0u, exponent, distance);
      not_finite = other_left > not_finite ? other_left : not_finite;
      exponent = other_exponent > exponent ? other_exponent : exponent;
    }
    if (lane != 0) continue;
    MatrixFacts& facts = task.facts[matrix];
    if (not_finite > 0) atomicMax(&facts.from_not_finite, not_finite);
    if (exponent > 0) atomicMax(&facts.exponent, exponent);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Power(const PowerTask __grid_constant__ task) {
  T* const a = static_cast<T*>(task.matrices.data);
  ForEachPlace(task.matrices, [&](const Place& place) {
    const int power = PowerFor(task.facts[place.matrix], task.real_type);
    if (power == 0) return;
    a[place.offset] =
        WithPower(a[place.offset], task.multiplies ? power : -power);
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Upper(const UpperTask __grid_constant__ task) {
  const Matrices& m = task.matrices;
  const T* const a = static_cast<const T*>(m.data);
  T* const r = static_cast<T*>(task.r.data);
  T* const phases = static_cast<T*>(task.phases);
  ForEachPlace(task.r, [&](const Place& place) {
    const int64_t k = place.row;
    const T* const own = a + place.matrix * m.stride;
    T value = T(0);
    if (k <= place.column) {
      const T diagonal = own[k + k * m.rows];
      const RealOf<T> size = Magnitude(diagonal);
      const T phase = size == 0 ? T(1) : diagonal / size;
      value = Times(Conjugated(phase), own[k + place.column * m.rows]);
      if (k == place.column) {
        value = T(size);
        phases[place.matrix * task.r.rows + k] = phase;
      }
    }
    r[place.offset] = value;
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Triangle(const TriangleTask __grid_constant__ task) {
  T* const a = static_cast<T*>(task.matrices.data);
  const bool is_lower = task.part == MatrixPart::kLower;
  ForEachPlace(task.matrices, [&](const Place& place) {
    T& element = a[place.offset];
    if (place.row == place.column) {
      if (task.has_real_diagonal) element = T(RealPart(element));
      if (task.has_unit_diagonal) element = T(1);
    } else if ((place.row > place.column) != is_lower) {
      element = T(0);
    }
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Hermitian(const Matrices __grid_constant__ matrices) {
  T* const a = static_cast<T*>(matrices.data);
  ForEachPlace(matrices, [&](const Place& place) {
    const auto [matrix, row, column, offset] = place;
    if (row == column) a[offset] = T(RealPart(a[offset]));
    if (row >= column) return;
    a[offset] =
        Conjugated(a[matrix * matrices.stride + column + row * matrices.rows]);
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Identity(const Matrices __grid_constant__ matrices) {
  T* const a = static_cast<T*>(matrices.data);
  ForEachPlace(matrices, [&](const Place& place) {
    a[place.offset] = T(place.row == place.column ? 1 : 0);
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Diagonal(const DiagonalTask __grid_constant__ task) {
  const Matrices& m = task.matrices;
  const T* const a = static_cast<const T*>(m.data);
  ForEachIndex(m.count * m.rows, [&](int64_t index) {
    const int64_t matrix = index / m.rows, k = index - matrix * m.rows;
    const T x = a[matrix * m.stride + k * (m.rows + 1)];
    const bool is_good = task.wants_positive ? RealPart(x) > 0 : x != T(0);
    if (is_good) return;
    atomicMax(task.from_bad + matrix, static_cast<int32_t>(m.rows - k));
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Factors(const FactorTask __grid_constant__ task) {
  T* const a = static_cast<T*>(task.matrices.data);
  const T* const factors = static_cast<const T*>(task.factors);
  ForEachPlace(task.matrices, [&](const Place& place) {
    const int64_t k = task.of_rows ? place.row : place.column;
    if (k >= task.factor_count) return;
    T x = a[place.offset];
    if (task.conjugates) x = Conjugated(x);
    a[place.offset] = Times(x, factors[place.matrix * task.factor_count + k]);
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Cut(const CutTask __grid_constant__ task) {
  using Real = RealOf<T>;
  ForEachIndex(task.count, [&](int64_t matrix) {
    const int64_t first = matrix * task.value_count;
    Real* const values = static_cast<Real*>(task.values) + first;
    T* const left = static_cast<T*>(task.left) + first;
    T* const right = static_cast<T*>(task.right) + first;
    const int64_t kept = KeptOf(values, task.value_count, task.most, task);
    const Real scale =
        task.renormalizes
            ? sqrt(SquaresOverKept(values, task.value_count, kept))
            : Real(1);
    for (int64_t k = 0; k < task.value_count; ++k) {
      const Real value = k < kept ? scale * values[k] : Real(0);
      const Real one = k < kept ? Real(1) : Real(0);
      const bool is_both = task.absorbs_left && task.absorbs_right;
      const Real absorbed = is_both ? sqrt(value) : value;
      values[k] = value;
      left[k] = T(task.absorbs_left ? absorbed : one);
      right[k] = T(task.absorbs_right ? absorbed : one);
    }
    task.kept[matrix] = static_cast<int32_t>(kept);
  });
}

__global__ void __launch_bounds__(kThreads)
    Addresses(const AddressTask __grid_constant__ task) {
  ForEachIndex(task.count, [&](int64_t i) {
    task.addresses[i] = static_cast<char*>(task.first) + i * task.bytes;
  });
}

}  // namespace

cudaError_t QueueLook(const LookTask& task, cudaStream_t stream) {
  const int64_t looks = LooksOf(task.matrices);
  const Grid grid = GridOf(looks * 32, kThreads);
  return VisitMatrixType(task.matrices.type, [&]<typename T>(T) {
    return Launch(grid, stream, &Look<T>, task, looks);
  });
}

cudaError_t QueuePower(const PowerTask& task, cudaStream_t stream) {
  return VisitMatrixType(task.matrices.type, [&]<typename T>(T) {
    return Launch(GridFor(task.matrices), stream, &Power<T>, task);
  });
}

cudaError_t QueueUpper(const UpperTask& task, cudaStream_t stream) {
  return VisitMatrixType(task.matrices.type, [&]<typename T>(T) {
    return Launch(GridFor(task.r), stream, &Upper<T>, task);
  });
}

cudaError_t QueueTriangle(const TriangleTask& task, cudaStream_t stream) {
  return VisitMatrixType(task.matrices.type, [&]<typename T>(T) {
    return Launch(GridFor(task.matrices), stream, &Triangle<T>, task);
  });
}

cudaError_t QueueHermitian(const Matrices& matrices, cudaStream_t stream) {
  return VisitMatrixType(matrices.type, [&]<typename T>(T) {
    return Launch(GridFor(matrices), stream, &Hermitian<T>, matrices);
  });
}

cudaError_t QueueIdentity(const Matrices& matrices, cudaStream_t stream) {
  return VisitMatrixType(matrices.type, [&]<typename T>(T) {
    return Launch(GridFor(matrices), stream, &Identity<T>, matrices);
  });
}

cudaError_t QueueDiagonal(const DiagonalTask& task, cudaStream_t stream) {
  const Matrices& m = task.matrices;
  return VisitMatrixType(m.type, [&]<typename T>(T) {
    return Launch(GridOf(m.count * m.rows, kThreads), stream, &Diagonal<T>,
                  task);
  });
}

cudaError_t QueueFactors(const FactorTask& task, cudaStream_t stream) {
  return VisitMatrixType(task.matrices.type, [&]<typename T>(T) {
    return Launch(GridFor(task.matrices), stream, &Factors<T>, task);
  });
}

cudaError_t QueueCut(const CutTask& task, cudaStream_t stream) {
  return VisitMatrixType(task.type, [&]<typename T>(T) {
    return Launch(GridOf(task.count, kThreads), stream, &Cut<T>, task);
  });
}

cudaError_t QueueAddresses(const AddressTask& task, cudaStream_t stream) {
  return Launch(GridOf(task.count, kThreads), stream, &Addresses, task);
}

}  // namespace tensord::core::cuda
