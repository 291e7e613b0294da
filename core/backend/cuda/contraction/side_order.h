// In what order the tiles of a contraction count the elements of m (or n).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "core/problem/contraction_problem.h"

namespace tensord::core::cuda {

/// Pieces of the modes of m (or n), fastest first.
///
/// An input and d seldom have the same fastest mode. In blocks of both orders,
/// `run_d` elements are neighbours in d, and from each of them on `run_input`
/// elements are neighbours in the input: so tiles read and write whole sectors.
///
/// Threads  immutable value; share freely.
struct SideOrder {
  static constexpr int kMostCuts = 2;

  /// A mode, or a part of one: `extent` steps of `multiple` elements each.
  struct Piece {
    size_t mode;
    int64_t extent;
    int64_t multiple = 1;
    int cut = -1;  // which of the cut modes it is a part of; -1: it is whole
  };

  absl::InlinedVector<Piece, 8> pieces;
  /// Extents of the modes that are cut: their blocks may reach beyond.
  std::array<int64_t, kMostCuts> cut_extents = {1, 1};
  int64_t count = 1;  // product of the pieces' extents
  // How many elements in a row are neighbours in d, and in the input.
  int64_t run_d = 1;
  int64_t run_input = 1;
  // log2 of a block's elements along d and along the input, where all blocks
  // have such powers of two; otherwise 0.
  uint32_t log_d = 0;
  uint32_t log_input = 0;
};

/// `modes` as they are: in the order of d.
SideOrder OrderOfD(const LoopModes<3>& modes);

/// By the input's strides.
SideOrder OrderOfInput(const LoopModes<3>& modes);

/// In blocks of 2^log_d elements in the order of d and 2^log_input in that of
/// the input.
///
/// None  where a block would have but one element along d or along the input,
///       or where indices would exceed kMaxIndex.
std::optional<SideOrder> OrderInBlocks(const LoopModes<3>& modes,
                                       uint32_t log_d, uint32_t log_input);

}  // namespace tensord::core::cuda
