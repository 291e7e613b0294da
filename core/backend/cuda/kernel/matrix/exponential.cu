// What exponentials take beside products and equations. Each element is visited
// once: all of it takes little beside those.
#include <cmath>
#include <cstdint>

#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/matrix/exponential_tasks.h"
#include "core/backend/cuda/kernel/matrix/matrix_elements.cuh"
#include "core/problem/exponential.h"

namespace tensord::core::cuda {
namespace {

/// Numbers that are not negative have the order of their bits.
__device__ __forceinline__ void RaiseTo(double* largest, double x) {
  atomicMax(reinterpret_cast<unsigned long long*>(largest),
            static_cast<unsigned long long>(__double_as_longlong(x)));
}

/// A warp takes a column.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    Sums(const SumsTask __grid_constant__ task) {
  const Matrices& m = task.matrices;
  const int64_t warps = int64_t{gridDim.x} * (kThreads / 32);
  const int lane = threadIdx.x % 32;
  for (int64_t index = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
       index < m.count * m.columns; index += warps) {
    const int64_t matrix = index / m.columns;
    const int64_t column = index - matrix * m.columns;
    const T* const a =
        static_cast<const T*>(m.data) + matrix * m.stride + column * m.rows;
    const double* const weights =
        task.weights == nullptr ? nullptr : task.weights + matrix * m.rows;
    double sum = 0;
    for (int64_t row = lane; row < m.rows; row += 32) {
      const double size = static_cast<double>(Magnitude(a[row]));
      sum += weights == nullptr ? size : size * weights[row];
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      sum += __shfl_xor_sync(~0u, sum, distance);
    }
    if (lane != 0) continue;
    if (weights != nullptr && task.divisors[matrix] > 0) {
      sum /= task.divisors[matrix];
    }
    if (task.sums != nullptr) task.sums[index] = sum;
    RaiseTo(task.largest + matrix, sum);
  }
}

/// A warp takes a column, or a row.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    Exponents(const ExponentsTask __grid_constant__ task) {
  const Matrices& m = task.matrices;
  const int64_t warps = int64_t{gridDim.x} * (kThreads / 32);
  const int64_t lines = m.count * m.columns;
  const int lane = threadIdx.x % 32;
  for (int64_t index = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
       index < 2 * lines; index += warps) {
    const bool is_column = index < lines;
    const int64_t line = is_column ? index : index - lines;
    const int64_t matrix = line / m.columns, k = line - matrix * m.columns;
    const T* const a = static_cast<const T*>(m.data) + matrix * m.stride +
                       k * (is_column ? m.rows : 1);
    int exponent = kOfZero;
    for (int64_t i = lane; i < m.rows; i += 32) {
      const T x = a[i * (is_column ? 1 : m.rows)];
      const RealOf<T> real = fabs(RealPart(x)), imag = fabs(ImaginaryPart(x));
      const RealOf<T> larger = real > imag ? real : imag;
      if (i == k || larger == 0) continue;
      const int own = ilogb(larger);
      exponent = own > exponent ? own : exponent;
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      const int other = __shfl_xor_sync(~0u, exponent, distance);
      exponent = other > exponent ? other : exponent;
    }
    if (lane == 0)
      (is_column ? task.of_columns : task.of_rows)[line] = exponent;
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Balance(const BalanceTask __grid_constant__ task) {
  T* const a = static_cast<T*>(task.matrices.data);
  ForEachPlace(task.matrices, [&](const Place& place) {
    const int64_t first = place.matrix * task.matrices.columns;
    if (task.wanted[place.matrix] == 0) return;
    const auto power_of = [&](int64_t k) {
      return BalancingPower(task.of_rows[first + k], task.of_columns[first + k],
                            4);
    };
    if (place.row == place.column) {
      task.powers[first + place.row] += power_of(place.row);
      return;
    }
    const int power = power_of(place.column) - power_of(place.row);
    if (power != 0) a[place.offset] = WithPower(a[place.offset], power);
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Unbalance(const UnbalanceTask __grid_constant__ task) {
  T* const a = static_cast<T*>(task.matrices.data);
  ForEachPlace(task.matrices, [&](const Place& place) {
    const int32_t* const powers =
        task.powers + place.matrix * task.matrices.columns;
    const bool is_kept = task.kept[place.matrix] != 0;
    const int power =
        is_kept == task.of_kept ? powers[place.row] - powers[place.column] : 0;
    if (power != 0) a[place.offset] = WithPower(a[place.offset], power);
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Divide(const DivideTask __grid_constant__ task) {
  T* const a = static_cast<T*>(task.matrices.data);
  ForEachPlace(task.matrices, [&](const Place& place) {
    const int power = task.times * task.powers[place.matrix];
    if (power != 0) a[place.offset] = WithPower(a[place.offset], -power);
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Combine(const CombineTask __grid_constant__ task) {
  using Real = RealOf<T>;
  T* const to = static_cast<T*>(task.to.data);
  ForEachPlace(task.to, [&](const Place& place) {
    T sum = T(0);
#pragma unroll
    for (int i = 0; i < CombineTask::kMost; ++i) {
      if (i >= task.summand_count) break;
      sum += static_cast<Real>(task.factors[i]) *
             static_cast<const T*>(task.summands[i])[place.offset];
    }
    if (place.row == place.column)
      sum += T(static_cast<Real>(task.of_identity));
    to[place.offset] = sum;
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Quotient(const QuotientTask __grid_constant__ task) {
  T* const odd = static_cast<T*>(task.odd.data);
  const T* const even = static_cast<const T*>(task.even);
  T* const minus = static_cast<T*>(task.minus);
  ForEachPlace(task.odd, [&](const Place& place) {
    const T x = odd[place.offset], y = even[place.offset];
    minus[place.offset] = y - x;
    odd[place.offset] = y + x;
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Finished(const FinishedTask __grid_constant__ task) {
  const T* const from = static_cast<const T*>(task.from.data);
  T* const to = static_cast<T*>(task.to);
  ForEachPlace(task.from, [&](const Place& place) {
    if (task.squarings[place.matrix] > task.done) return;
    to[place.offset] = from[place.offset];
  });
}

}  // namespace

cudaError_t QueueSums(const SumsTask& task, cudaStream_t stream) {
  const Matrices& m = task.matrices;
  return VisitMatrixType(m.type, [&]<typename T>(T) {
    return Launch(GridOf(m.count * m.columns * 32, kThreads), stream, &Sums<T>,
                  task);
  });
}

cudaError_t QueueExponents(const ExponentsTask& task, cudaStream_t stream) {
  const Matrices& m = task.matrices;
  return VisitMatrixType(m.type, [&]<typename T>(T) {
    return Launch(GridOf(2 * m.count * m.columns * 32, kThreads), stream,
                  &Exponents<T>, task);
  });
}

cudaError_t QueueBalance(const BalanceTask& task, cudaStream_t stream) {
  return VisitMatrixType(task.matrices.type, [&]<typename T>(T) {
    return Launch(GridFor(task.matrices), stream, &Balance<T>, task);
  });
}

cudaError_t QueueUnbalance(const UnbalanceTask& task, cudaStream_t stream) {
  return VisitMatrixType(task.matrices.type, [&]<typename T>(T) {
    return Launch(GridFor(task.matrices), stream, &Unbalance<T>, task);
  });
}

cudaError_t QueueDivide(const DivideTask& task, cudaStream_t stream) {
  return VisitMatrixType(task.matrices.type, [&]<typename T>(T) {
    return Launch(GridFor(task.matrices), stream, &Divide<T>, task);
  });
}

cudaError_t QueueCombine(const CombineTask& task, cudaStream_t stream) {
  return VisitMatrixType(task.to.type, [&]<typename T>(T) {
    return Launch(GridFor(task.to), stream, &Combine<T>, task);
  });
}

cudaError_t QueueQuotient(const QuotientTask& task, cudaStream_t stream) {
  return VisitMatrixType(task.odd.type, [&]<typename T>(T) {
    return Launch(GridFor(task.odd), stream, &Quotient<T>, task);
  });
}

cudaError_t QueueFinished(const FinishedTask& task, cudaStream_t stream) {
  return VisitMatrixType(task.from.type, [&]<typename T>(T) {
    return Launch(GridFor(task.from), stream, &Finished<T>, task);
  });
}

}  // namespace tensord::core::cuda
