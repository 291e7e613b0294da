// Matrices of tensors, in modes and layouts of any order.
#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/backend/kernel.h"
#include "core/device/host_stream.h"
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

/// Has `kernel` solve a canonical problem, and runs the solution.
template <typename Problem, typename Operands>
absl::Status RunKernel(const Kernel<Problem, Operands>& kernel,
                       const std::type_identity_t<Problem>& problem,
                       const std::type_identity_t<Operands>& operands) {
  const auto solution = kernel.Solve(problem);
  if (!solution.ok()) return solution.status();
  const int64_t bytes = (*solution)->workspace_bytes();
  std::vector<std::byte> scratch(static_cast<size_t>(bytes + kBufferAlignment));
  void* aligned = scratch.data();
  size_t room = scratch.size();
  std::align(kBufferAlignment, static_cast<size_t>(bytes), aligned, room);
  Workspace workspace(
      {static_cast<std::byte*>(aligned), static_cast<size_t>(bytes)});
  HostStream stream;
  return (*solution)->Launch(operands, workspace, stream);
}

}  // namespace tensord::core
