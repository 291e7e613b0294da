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
/// An input and d seldom have the same fastest mode. Counted in blocks of both,
/// neighbours are `run_d` elements of d next to each other and, from each of
/// them on, `run_input` elements of the input: a tile reads and writes whole
/// sectors.
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
  // Elements that lie next to each other, of neighbours and of block by block.
  int64_t run_d = 1;
  int64_t run_input = 1;
  // The logarithms of what a block has of both, where they are powers of two
  // without exception; 0 of other orders.
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
/// None  where that is no other order, or blocks would reach beyond an index.
std::optional<SideOrder> OrderInBlocks(const LoopModes<3>& modes,
                                       uint32_t log_d, uint32_t log_input);

}  // namespace tensord::core::cuda
