// Matrices of tensors, in modes and layouts of any order.
#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/backend/backend.h"
#include "core/base/status.h"
#include "core/memory/memory_resource.h"
#include "core/memory/workspace.h"
#include "core/ops/factorization.h"
#include "core/problem/factorization_problem.h"

namespace tensord::core {

using Wide = std::complex<long double>;

/// Values of modes that come in groups: of each group its extents, and a
/// position, which counts with the last mode fastest.
inline std::vector<int64_t> ValuesOf(
    std::initializer_list<std::pair<absl::Span<const int64_t>, int64_t>>
        groups) {
  std::vector<int64_t> values;
  for (auto [extents, rest] : groups) {
    const auto first = static_cast<std::ptrdiff_t>(values.size());
    for (size_t i = extents.size(); i-- > 0;) {
      values.insert(values.begin() + first, rest % extents[i]);
      rest /= extents[i];
    }
  }
  return values;
}

/// The extents of the modes of a matrix, by what they count. Labels are numbers
/// in this order; the inner mode is the last.
struct Shape {
  std::vector<int64_t> batch, rows, columns;

  static int64_t Product(const std::vector<int64_t>& extents) {
    int64_t product = 1;
    for (const int64_t extent : extents) product *= extent;
    return product;
  }
  int64_t row_count() const { return Product(rows); }
  int64_t column_count() const { return Product(columns); }
  int64_t inner() const { return std::min(row_count(), column_count()); }
  /// Values of all modes, that of the inner one last.
  std::vector<int64_t> At(int64_t batch_at, int64_t row, int64_t column,
                          int64_t inner_at) const {
    std::vector<int64_t> at =
        ValuesOf({{batch, batch_at}, {rows, row}, {columns, column}});
    at.push_back(inner_at);
    return at;
  }
};

/// An operand of modes in a random order, with random gaps between elements.
inline OperandDesc RandomOperand(ElementType type, Modes modes,
                                 const std::vector<int64_t>& extents,
                                 bool keeps_order, std::mt19937& rng) {
  OperandDesc operand{.element_type = type, .modes = modes};
  if (!keeps_order) std::ranges::shuffle(operand.modes, rng);
  std::vector<size_t> by_stride(modes.size());
  for (size_t i = 0; i < by_stride.size(); ++i) by_stride[i] = i;
  std::ranges::shuffle(by_stride, rng);
  operand.layout.strides.resize(modes.size());
  for (const Mode mode : operand.modes) {
    operand.layout.extents.push_back(extents[mode]);
  }
  int64_t stride = 1 + static_cast<int64_t>(rng() % 2);
  for (const size_t i : by_stride) {
    operand.layout.strides[i] = stride;
    stride *= operand.layout.extents[i];
    stride += static_cast<int64_t>(rng() % 3);
  }
  return operand;
}

inline Modes Joined(Modes x, const Modes& y, const Modes& z) {
  x.insert(x.end(), y.begin(), y.end());
  x.insert(x.end(), z.begin(), z.end());
  return x;
}

/// Where the element with these values of all modes lies.
inline int64_t OffsetIn(const OperandDesc& operand,
                        const std::vector<int64_t>& at) {
  int64_t offset = 0;
  for (size_t i = 0; i < operand.modes.size(); ++i) {
    offset += at[operand.modes[i]] * operand.layout.strides[i];
  }
  return offset;
}

template <typename T>
T Sentinel() {
  T value;
  std::memset(static_cast<void*>(&value), 0x7B, sizeof(value));
  return value;
}

template <typename T>
bool IsSentinel(const T& value) {
  const T sentinel = Sentinel<T>();
  return std::memcmp(&value, &sentinel, sizeof(value)) == 0;
}

/// Elements that both the host and the kernels of a backend reach.
template <typename T>
class SharedArray {
 public:
  SharedArray() = default;
  /// Lifetime  the backend outlives it.
  SharedArray(Backend& backend, int64_t count, const T& value)
      : count_(count),
        buffer_(Buffer::Allocate(backend.staging_memory(),
                                 count * static_cast<int64_t>(sizeof(T)))
                    .value()) {
    std::fill(begin(), end(), value);
  }

  T* data() const { return reinterpret_cast<T*>(buffer_.data()); }
  T* begin() const { return data(); }
  T* end() const { return data() + count_; }
  T& operator[](int64_t i) const { return data()[i]; }

 private:
  int64_t count_ = 0;
  Buffer buffer_;
};

/// Has `kernel` of `backend` solve a canonical problem, and runs the solution.
template <typename Problem, typename Operands>
absl::Status RunKernel(Backend& backend,
                       const Kernel<Problem, Operands>& kernel,
                       const std::type_identity_t<Problem>& problem,
                       const std::type_identity_t<Operands>& operands) {
  TENSORD_ASSIGN_OR_RETURN(const auto solution, kernel.Solve(problem));
  const int64_t bytes = solution->workspace_bytes();
  TENSORD_ASSIGN_OR_RETURN(const Buffer scratch,
                           Buffer::Allocate(backend.memory(), bytes));
  Workspace workspace({scratch.data(), static_cast<size_t>(bytes)});
  TENSORD_ASSIGN_OR_RETURN(const auto stream, backend.CreateStream());
  const absl::Status launched = solution->Launch(operands, workspace, *stream);
  TENSORD_RETURN_IF_ERROR(stream->Synchronize());
  return launched;
}

}  // namespace tensord::core
