#include "core/backend/cuda/contraction/side_order.h"

#include <algorithm>
#include <numeric>

#include "core/backend/cuda/kernel/index_space.h"
#include "core/base/checked_math.h"

namespace tensord::core::cuda {
namespace {

using Problem = ContractionProblem;
using Piece = SideOrder::Piece;
using ModeNumbers = absl::InlinedVector<size_t, 8>;

ModeNumbers SortedBy(size_t operand, const LoopModes<3>& modes) {
  ModeNumbers numbers(modes.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  std::stable_sort(numbers.begin(), numbers.end(), [&](size_t x, size_t y) {
    return modes[x].strides[operand] < modes[y].strides[operand];
  });
  return numbers;
}

/// How many of the pieces' elements, from the first on, lie next to each other.
int64_t RunOf(const LoopModes<3>& modes, size_t operand, const Piece* begin,
              const Piece* end) {
  int64_t run = 1;
  for (const Piece* piece = begin; piece != end; ++piece) {
    if (modes[piece->mode].strides[operand] * piece->multiple != run) break;
    run *= piece->extent;
  }
  return run;
}

SideOrder Whole(const LoopModes<3>& modes, const ModeNumbers& numbers) {
  SideOrder order;
  for (const size_t number : numbers) {
    order.pieces.push_back({.mode = number, .extent = modes[number].extent});
    order.count *= modes[number].extent;
  }
  const Piece* const first = order.pieces.data();
  const Piece* const end = first + order.pieces.size();
  order.run_d = RunOf(modes, Problem::kFreeD, first, end);
  order.run_input = RunOf(modes, Problem::kFreeInput, first, end);
  return order;
}

/// Adds pieces to an order until all modes are in it.
class BlockBuilder {
 public:
  explicit BlockBuilder(const LoopModes<3>& modes)
      : modes_(modes), left_(modes.size()) {
    for (size_t i = 0; i < modes.size(); ++i) left_[i] = modes[i].extent;
  }

  /// Pieces of `numbers`, which are sorted by `operand`, of `wanted` elements
  /// in all. Returns how many there are.
  int64_t AddBlock(size_t operand, const ModeNumbers& numbers, int64_t wanted,
                   int64_t& run) {
    const size_t first = order_.pieces.size();
    int64_t have = 1;
    for (const size_t number : numbers) {
      if (left_[number] == 1) continue;
      const bool is_cut = std::any_of(
          order_.pieces.begin(), order_.pieces.end(),
          [number](const Piece& piece) { return piece.mode == number; });
      // Beyond the other block's cut no run begins.
      if (is_cut || wanted / have < 2) break;
      const int64_t block = std::min(wanted / have, left_[number]);
      Piece piece{.mode = number, .extent = block};
      if (block < left_[number]) {
        piece.cut = cut_count_;
        order_.cut_extents[cut_count_++] = left_[number];
      }
      left_[number] = CeilDivide(left_[number], block);
      order_.pieces.push_back(piece);
      have *= block;
    }
    const Piece* const pieces = order_.pieces.data();
    run = RunOf(modes_, operand, pieces + first, pieces + order_.pieces.size());
    return have;
  }

  /// What is left, in the order of d.
  SideOrder Finish() {
    const size_t block_pieces = order_.pieces.size();
    for (size_t mode = 0; mode < left_.size(); ++mode) {
      if (left_[mode] == 1) continue;
      Piece piece{.mode = mode, .extent = left_[mode]};
      for (size_t i = 0; i < block_pieces; ++i) {
        const Piece& block = order_.pieces[i];
        if (block.mode != mode) continue;
        piece.multiple = block.extent;
        piece.cut = block.cut;
      }
      order_.pieces.push_back(piece);
    }
    for (const Piece& piece : order_.pieces) order_.count *= piece.extent;
    return order_;
  }

  SideOrder& order() { return order_; }

 private:
  const LoopModes<3>& modes_;
  absl::InlinedVector<int64_t, 8> left_;  // of each mode
  int cut_count_ = 0;
  SideOrder order_;
};

}  // namespace

SideOrder OrderOfD(const LoopModes<3>& modes) {
  ModeNumbers numbers(modes.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  return Whole(modes, numbers);
}

SideOrder OrderOfInput(const LoopModes<3>& modes) {
  return Whole(modes, SortedBy(Problem::kFreeInput, modes));
}

std::optional<SideOrder> OrderInBlocks(const LoopModes<3>& modes,
                                       uint32_t log_d, uint32_t log_input) {
  BlockBuilder builder(modes);
  SideOrder& order = builder.order();
  const int64_t of_d =
      builder.AddBlock(Problem::kFreeD, SortedBy(Problem::kFreeD, modes),
                       int64_t{1} << log_d, order.run_d);
  const int64_t of_input = builder.AddBlock(
      Problem::kFreeInput, SortedBy(Problem::kFreeInput, modes),
      int64_t{1} << log_input, order.run_input);
  if (of_d == 1 || of_input == 1) return std::nullopt;
  if (of_d == int64_t{1} << log_d && of_input == int64_t{1} << log_input) {
    order.log_d = log_d;
    order.log_input = log_input;
  }
  SideOrder finished = builder.Finish();
  if (finished.count > kMaxIndex) return std::nullopt;
  return finished;
}

}  // namespace tensord::core::cuda
