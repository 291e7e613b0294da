#include "core/backend/cpu/direct/panel_pack.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/backend/cpu/block/transpose_block.h"
#include "core/base/checked_math.h"

namespace tensord::core {
namespace {

/// Elements along one mode.
struct Run {
  int64_t place, step;     // of the first, from one to the next
  int64_t offset, stride;  // in the tensor
  int64_t count;
};

/// Calls visit(place, offset) for all places whose coordinates along modes
/// `without` and `also_without` are 0.
template <typename Visitor>
void ForEachBase(const PackModes& places, size_t without, size_t also_without,
                 Visitor visit) {
  absl::InlinedVector<PackMode, 6> modes;
  for (size_t m = 0; m < places.modes.size(); ++m) {
    if (m != without && m != also_without) modes.push_back(places.modes[m]);
  }
  absl::InlinedVector<int64_t, 6> at(modes.size(), 0);
  int64_t place = 0, offset = 0;
  while (true) {
    visit(place, offset);
    size_t m = 0;
    for (; m < modes.size(); ++m) {
      place += modes[m].step;
      offset += modes[m].stride;
      if (++at[m] < modes[m].size) break;
      place -= modes[m].size * modes[m].step;
      offset -= modes[m].size * modes[m].stride;
      at[m] = 0;
    }
    if (m == modes.size()) return;
  }
}

/// Calls visit(run) for the runs along mode `along`, none of which goes on in
/// another panel of `panel_lanes`, where those of `other` begin.
template <typename Visitor>
void ForEachRun(const PackModes& places, size_t along, size_t other,
                int64_t panel_lanes, Visitor visit) {
  const PackMode mode = places.modes.empty()
                            ? PackMode{.size = 1, .step = 1, .stride = 0}
                            : places.modes[along];
  ForEachBase(places, along, other, [&](int64_t place, int64_t offset) {
    if (mode.step != 1) {
      visit(Run{place, mode.step, offset, mode.stride, mode.size});
      return;
    }
    for (int64_t done = 0; done < mode.size;) {
      const int64_t first = place + done;
      const int64_t count =
          std::min(mode.size - done, panel_lanes - first % panel_lanes);
      visit(Run{first, 1, offset + done * mode.stride, mode.stride, count});
      done += count;
    }
  });
}

/// Where a block is and goes.
struct Packing {
  int64_t element_bytes;
  const PackModes& lanes;
  const PackModes& terms;
  const std::byte* tensor;
  int64_t panel_lanes;
  std::byte* panels;

  const std::byte* from(int64_t offset) const {
    return tensor + offset * element_bytes;
  }
  std::byte* to(int64_t lane, int64_t term) const {
    return panels + (lane / panel_lanes * panel_bytes()) +
           (term * panel_lanes + lane % panel_lanes) * element_bytes;
  }
  int64_t panel_bytes() const {
    return terms.places * panel_lanes * element_bytes;
  }
  int64_t term_bytes() const { return panel_lanes * element_bytes; }
};

void CopyLanes(const Packing& p) {
  ForEachRun(p.terms, 0, kNoMode, p.terms.places, [&](const Run& term) {
    ForEachRun(p.lanes, 0, kNoMode, p.panel_lanes, [&](const Run& lane) {
      CopyRows({.a = p.from(lane.offset + term.offset),
                .d = p.to(lane.place, term.place),
                .rows = term.count,
                .columns = lane.count * p.element_bytes,
                .a_row_bytes = term.stride * p.element_bytes,
                .d_row_bytes = term.step * p.term_bytes()},
               Stores::kCached, 0);
    });
  });
}

void TransposeTerms(const Packing& p) {
  const size_t along = UnitMode(p.terms);
  ForEachRun(p.lanes, 0, kNoMode, p.panel_lanes, [&](const Run& lane) {
    ForEachRun(p.terms, along, kNoMode, p.terms.places, [&](const Run& term) {
      TransposePiece(p.element_bytes,
                     {.a = p.from(lane.offset + term.offset),
                      .d = p.to(lane.place, term.place),
                      .rows = lane.count,
                      .columns = term.count,
                      .a_row_bytes = lane.stride * p.element_bytes,
                      .d_row_bytes = term.step * p.term_bytes()},
                     Stores::kCached,
                     lane.count * lane.stride * p.element_bytes);
    });
  });
}

void TransposeLanes(const Packing& p) {
  const size_t along = UnitMode(p.lanes);
  const PackMode& unit = p.lanes.modes[along];
  // The same lanes of the next term.
  const int64_t ahead =
      p.terms.modes.empty() ? 0 : p.terms.modes[0].stride * p.element_bytes;
  ForEachRun(p.lanes, 0, along, p.panel_lanes, [&](const Run& lane) {
    ForEachBase(p.terms, kNoMode, kNoMode, [&](int64_t term, int64_t offset) {
      TransposePiece(
          p.element_bytes,
          {.a = p.from(lane.offset + offset),
           .d = p.to(lane.place, term),
           .rows = lane.count,
           .columns = unit.size,
           .a_row_bytes = lane.stride * p.element_bytes,
           .d_row_bytes = unit.step / p.panel_lanes * p.panel_bytes()},
          Stores::kCached, ahead);
    });
  });
}

template <typename T>
void Gather(const Packing& p) {
  const T* const tensor = reinterpret_cast<const T*>(p.tensor);
  ForEachRun(p.lanes, 0, kNoMode, p.panel_lanes, [&](const Run& lane) {
    ForEachBase(p.terms, kNoMode, kNoMode, [&](int64_t term, int64_t offset) {
      const T* const from = tensor + lane.offset + offset;
      T* const to = reinterpret_cast<T*>(p.to(lane.place, term));
      for (int64_t i = 0; i < lane.count; ++i) to[i] = from[i * lane.stride];
    });
  });
}

/// Zeroes the panels that have lanes without elements.
void ZeroPadding(const Packing& p) {
  const int64_t count = p.lanes.element_count();
  if (count == RoundUp(p.lanes.places, p.panel_lanes)) return;
  const int64_t panels = CeilDivide(p.lanes.places, p.panel_lanes);
  const int64_t first = count == p.lanes.places ? panels - 1 : 0;
  std::memset(p.panels + first * p.panel_bytes(), 0,
              static_cast<size_t>((panels - first) * p.panel_bytes()));
}

}  // namespace

size_t UnitMode(const PackModes& places) {
  for (size_t m = 0; m < places.modes.size(); ++m) {
    if (places.modes[m].stride == 1) return m;
  }
  return kNoMode;
}

PackKind PackKindOf(const PackModes& lanes, const PackModes& terms,
                    int64_t panel_lanes) {
  const size_t unit = UnitMode(lanes);
  if (unit == 0) return PackKind::kCopyLanes;
  if (UnitMode(terms) != kNoMode) return PackKind::kTransposeTerms;
  return unit != kNoMode && lanes.modes[unit].step % panel_lanes == 0
             ? PackKind::kTransposeLanes
             : PackKind::kGather;
}

void Pack(int64_t element_bytes, const PackModes& lanes, const PackModes& terms,
          const void* tensor, int64_t panel_lanes, void* panels) {
  const Packing packing{.element_bytes = element_bytes,
                        .lanes = lanes,
                        .terms = terms,
                        .tensor = static_cast<const std::byte*>(tensor),
                        .panel_lanes = panel_lanes,
                        .panels = static_cast<std::byte*>(panels)};
  ZeroPadding(packing);
  switch (PackKindOf(lanes, terms, panel_lanes)) {
    case PackKind::kCopyLanes: return CopyLanes(packing);
    case PackKind::kTransposeTerms: return TransposeTerms(packing);
    case PackKind::kTransposeLanes: return TransposeLanes(packing);
    case PackKind::kGather:
      return element_bytes == 4 ? Gather<uint32_t>(packing)
                                : Gather<uint64_t>(packing);
  }
}

}  // namespace tensord::core
