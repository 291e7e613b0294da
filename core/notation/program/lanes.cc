#include "core/notation/program/lanes.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tensord::core {
namespace {

/// Memory that a step reads or writes: a whole tensor, or its part of the
/// arena.
struct Access {
  ProgramTensor::Place place;
  int64_t begin;
  int64_t end;
  bool is_write;
};

bool Conflict(const Access& x, const Access& y) {
  return (x.is_write || y.is_write) && x.place == y.place && x.begin < y.end &&
         y.begin < x.end;
}

Access AccessTo(const Program& program, int32_t t, bool is_write) {
  using Place = ProgramTensor::Place;
  const ProgramTensor& tensor = program.tensors[t];
  if (tensor.place == Place::kTemporary || tensor.place == Place::kConstant) {
    int64_t bytes = SizeOf(tensor.element_type);
    for (const int64_t extent : tensor.layout.extents) bytes *= extent;
    return {Place::kTemporary, tensor.arena_offset_bytes,
            tensor.arena_offset_bytes + bytes, is_write};
  }
  return {tensor.place, t, t + 1, is_write};
}

std::vector<Access> AccessesOf(const Program& program,
                               const ProgramStep& step) {
  std::vector<Access> accesses;
  for (const StepOperand* const output : step.outputs()) {
    accesses.push_back(AccessTo(program, output->tensor, true));
  }
  for (const StepOperand* const input : step.inputs()) {
    accesses.push_back(AccessTo(program, input->tensor, false));
  }
  return accesses;
}

/// The steps before `step` that have to end before it begins.
std::vector<int32_t> NeededBy(const std::vector<std::vector<Access>>& accesses,
                              int32_t step) {
  std::vector<int32_t> needed;
  for (int32_t before = 0; before < step; ++before) {
    const bool conflicts =
        std::ranges::any_of(accesses[before], [&](const Access& theirs) {
          return std::ranges::any_of(accesses[step], [&](const Access& ours) {
            return Conflict(theirs, ours);
          });
        });
    if (conflicts) needed.push_back(before);
  }
  return needed;
}

class LaneAssignment {
 public:
  LaneAssignment(absl::Span<const double> costs, int32_t most_lanes)
      : costs_(costs), most_lanes_(most_lanes) {}

  void Add(int32_t step, const std::vector<int32_t>& needed,
           bool needs_scratch) {
    const int32_t lane = needs_scratch ? 0 : Choose(needed);
    if (lane == std::ssize(lanes_)) lanes_.emplace_back();
    LaneStep& placed = steps_.emplace_back();
    placed.lane = lane;
    // Per lane: the last step certain to have ended. The latest ones that it
    // waits for go first, since they may imply earlier ones.
    std::vector<int32_t> ended(lanes_.size(), -1);
    if (lanes_[lane].last >= 0) Join(ended, ended_[lanes_[lane].last]);
    for (size_t i = needed.size(); i-- > 0;) {
      const int32_t before = needed[i];
      const int32_t other = steps_[before].lane;
      if (ended[other] >= before) continue;
      if (other != lane) {
        placed.after.push_back(before);
        steps_[before].is_awaited = true;
      }
      Join(ended, ended_[before]);
    }
    ended[lane] = step;
    ended_.push_back(std::move(ended));
    lanes_[lane].last = step;
    lanes_[lane].cost += costs_[step];
  }

  std::vector<LaneStep> Finish() && { return std::move(steps_); }

 private:
  struct Lane {
    int32_t last = -1;  // step
    double cost = 0;
  };

  int32_t Choose(const std::vector<int32_t>& needed) const {
    std::optional<int32_t> continued;
    for (const int32_t before : needed) {
      const int32_t lane = steps_[before].lane;
      if (lanes_[lane].last == before) continued = lane;
    }
    if (continued) return *continued;
    const auto unused = std::ranges::find(lanes_, -1, &Lane::last);
    if (unused != lanes_.end()) {
      return static_cast<int32_t>(unused - lanes_.begin());
    }
    if (std::ssize(lanes_) < most_lanes_) {
      return static_cast<int32_t>(lanes_.size());
    }
    return static_cast<int32_t>(
        std::ranges::min_element(lanes_, {}, &Lane::cost) - lanes_.begin());
  }

  /// The later of both, by lane.
  static void Join(std::vector<int32_t>& ended,
                   const std::vector<int32_t>& other) {
    for (size_t lane = 0; lane < other.size(); ++lane) {
      ended[lane] = std::max(ended[lane], other[lane]);
    }
  }

  const absl::Span<const double> costs_;
  const int32_t most_lanes_;
  std::vector<Lane> lanes_ = std::vector<Lane>(1);
  std::vector<LaneStep> steps_;
  // (step)(lane): the last step of the lane that has ended when the step has.
  std::vector<std::vector<int32_t>> ended_;
};

}  // namespace

std::vector<LaneStep> AssignLanes(const Program& program,
                                  const ProgramBlock& block,
                                  absl::Span<const double> costs,
                                  const std::vector<bool>& needs_scratch,
                                  int32_t most_lanes) {
  std::vector<std::vector<Access>> accesses;
  LaneAssignment lanes(costs, most_lanes);
  for (const ProgramStep& step : block.steps) {
    accesses.push_back(AccessesOf(program, step));
    const auto number = static_cast<int32_t>(accesses.size()) - 1;
    lanes.Add(number, NeededBy(accesses, number), needs_scratch[number]);
  }
  return std::move(lanes).Finish();
}

}  // namespace tensord::core
