// Packing pieces of a tensor into the panels that tile products read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace tensord::core {

/// What a block has of a mode: places `step` apart in the block, elements
/// `stride` apart in the tensor.
struct PackMode {
  int64_t size;
  int64_t step;
  int64_t stride;
};

/// The lanes (rows or columns) or the terms of a block, by mode.
struct PackModes {
  absl::InlinedVector<PackMode, 6> modes;  // the first one has step 1
  int64_t places = 1;                      // of the block, empty ones included

  int64_t element_count() const {
    int64_t count = 1;
    for (const PackMode& mode : modes) count *= mode.size;
    return count;
  }
};

/// The mode whose elements are neighbours in the tensor, or kNoMode.
inline constexpr size_t kNoMode = SIZE_MAX;
size_t UnitMode(const PackModes& places);

/// How elements get from a tensor into panels.
enum class PackKind : uint8_t {
  kCopyLanes,       // lanes that are neighbours in the tensor and in the panel
  kTransposeTerms,  // terms that are neighbours in the tensor
  kTransposeLanes,  // lanes that are neighbours there, across panels
  kGather,          // one by one
};

/// What Pack() does. Depends on which modes there are, and their steps and
/// strides, alone.
PackKind PackKindOf(const PackModes& lanes, const PackModes& terms,
                    int64_t panel_lanes);

/// panels (lane / panel_lanes, term, lane % panel_lanes) = the tensor's element
/// of that lane and term; 0 in empty lanes.
///
/// Units     `tensor` is the address of the block's first element.
/// Requires  element_bytes 4 or 8; terms have no padding; panels of
///           RoundUp(lanes.places, panel_lanes) * terms.places elements.
void Pack(int64_t element_bytes, const PackModes& lanes, const PackModes& terms,
          const void* tensor, int64_t panel_lanes, void* panels);

}  // namespace tensord::core
