// Where the elements of a tensor lie, on the server and in the caller's memory.
#pragma once

#include <cstdint>
#include <vector>

#include "tensord/element_type.h"

namespace tensord {

/// Which mode of a packed tensor has stride 1. Numbered as in the contract.
enum class Order {
  kFirstModeFastest = 1,  // Fortran, cuTENSOR: (2, 3, 4) -> strides (1, 2, 6)
  kLastModeFastest = 2,   // C, NumPy, std::mdspan: -> strides (12, 4, 1)
};

/// Units      `strides` counts elements, never bytes.
/// Invariant  strides are as many as extents, or none: packed in `order`.
struct Layout {
  std::vector<int64_t> extents;  // (mode)
  std::vector<int64_t> strides;  // (mode), elements
  Order order = Order::kLastModeFastest;
};

/// The strides of a packed tensor. A mode after one of extent 0 gets the stride
/// it would have with extent 1.
std::vector<int64_t> PackedStrides(const std::vector<int64_t>& extents,
                                   Order order);

/// Product of the extents; 1 for a scalar, -1 when it exceeds int64 or an
/// extent is negative.
int64_t ElementCount(const std::vector<int64_t>& extents);

/// Elements from the first to the last one, gaps included: what transfers
/// carry. -1 when it exceeds int64 or an extent or stride is negative.
int64_t SpanElements(const Layout& layout);

/// True when the elements lie without gaps in `order`.
bool IsPacked(const Layout& layout, Order order);

/// Elements of any type in the caller's memory.
///
/// Lifetime  refers to `data`, which must outlive every call it is given to.
struct UntypedHostView {
  ElementType element_type = ElementType::kUnspecified;
  const void* data = nullptr;
  Layout layout;
};

/// Elements of type T in the caller's memory.
///
///   HostView<double>{values.data(), {500, 40, 60}}
///
/// Invariant  as Layout's.
/// Lifetime   as UntypedHostView's.
template <Element T>
struct HostView {
  const T* data = nullptr;
  std::vector<int64_t> extents;  // (mode)
  Order order = Order::kLastModeFastest;
  std::vector<int64_t> strides;  // (mode), elements; none: packed in `order`

  operator UntypedHostView() const {
    return {kElementTypeOf<T>, data, {extents, strides, order}};
  }
};

}  // namespace tensord
