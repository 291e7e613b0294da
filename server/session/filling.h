// One value for parts of a tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/ops/scalar.h"
#include "core/problem/loop_modes.h"
#include "core/view/view.h"
#include "server/engine/engine.h"

namespace tensord::server {

/// What is to be filled in a tensor, and with what.
///
/// Threads  immutable value; share freely.
class Filling {
 public:
  /// Fills nothing.
  Filling() = default;
  /// Offsets of `parts` count from the tensor's first element.
  Filling(absl::Span<const core::StridedView> parts,
          core::ElementType element_type, const core::ElementBytes& value);

  bool is_empty() const { return parts_.empty(); }

  /// Queues filling the tensor whose first element is at `first`.
  /// Errors  those of core::Backend::Fill().
  absl::Status Queue(Device& device, std::byte* first,
                     core::Stream& stream) const;

 private:
  struct Part {
    core::LoopModes<1> modes;
    int64_t offset_bytes;
  };

  std::vector<Part> parts_;
  int element_bytes_ = 0;
  core::ElementBytes value_ = {};
};

}  // namespace tensord::server
