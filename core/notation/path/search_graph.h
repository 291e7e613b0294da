// A network as the searches see it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "core/notation/path/network.h"

namespace tensord::core {

/// An index of a node, and how many inputs below the node have it.
struct Leg {
  int32_t index = 0;
  int32_t count = 0;
};

using Legs = absl::InlinedVector<Leg, 6>;  // ascending by index

/// Costs beyond this are all the same to the searches, so that sums stay
/// finite.
inline constexpr double kHugeCost = 1e290;

/// What an element of a result weighs beside a flop: enough to tell trees of
/// equal flops apart.
inline constexpr double kWriteWeight = 0x1p-32;

/// Invariant  there is no index that one input has alone, without the output:
///            it is summed first, whatever the tree. Indices of the same inputs
///            are merged into one.
struct SearchGraph {
  std::vector<Legs> inputs;
  std::vector<int32_t> totals;  // (index) inputs that have it, and the output
  std::vector<double> bits;     // (index) log2 of its extent

  int input_count() const { return static_cast<int>(inputs.size()); }
  int index_count() const { return static_cast<int>(bits.size()); }
};

/// The graph of `network` when the indices in `sliced` are fixed.
SearchGraph GraphOf(const Network& network,
                    absl::Span<const int32_t> sliced = {});

/// The contraction of two nodes.
struct Join {
  double bits = 0;         // log2 of the product of all extents
  double result_bits = 0;  // log2 of the elements of the result
  bool sums = false;
};

/// 2^`bits`, at most kHugeCost; a whole number where doubles hold those.
inline double SizeOf(double bits) {
  if (bits > 960) return kHugeCost;
  const double size = std::exp2(bits);
  return size < 0x1p52 ? std::nearbyint(size) : size;
}

/// What searches add up: the flops of a step and, with little weight, its
/// result.
inline double ScoreOf(const Join& join) {
  return SizeOf(join.bits) * (join.sums ? 2 : 1) +
         SizeOf(join.result_bits) * kWriteWeight;
}

/// The contraction of nodes with legs `a` and `b`; `put` takes each leg of the
/// result, ascending.
template <typename Put>
Join JoinLegs(const SearchGraph& graph, const Legs& a, const Legs& b, Put put) {
  Join join;
  const Leg *x = a.data(), *x_end = x + a.size();
  const Leg *y = b.data(), *y_end = y + b.size();
  while (x != x_end && y != y_end) {
    if (x->index < y->index) {
      join.result_bits += graph.bits[x->index];
      put(*x++);
    } else if (y->index < x->index) {
      join.result_bits += graph.bits[y->index];
      put(*y++);
    } else {
      const int32_t index = x->index;
      const int32_t count = x++->count + y++->count;
      if (count == graph.totals[index]) {
        join.bits += graph.bits[index];
        join.sums = true;
      } else {
        join.result_bits += graph.bits[index];
        put(Leg{index, count});
      }
    }
  }
  for (; x != x_end; ++x) {
    join.result_bits += graph.bits[x->index];
    put(*x);
  }
  for (; y != y_end; ++y) {
    join.result_bits += graph.bits[y->index];
    put(*y);
  }
  join.bits += join.result_bits;
  return join;
}

inline Join JoinLegs(const SearchGraph& graph, const Legs& a, const Legs& b) {
  return JoinLegs(graph, a, b, [](const Leg&) {});
}

/// As above, and the legs of the result in `result`.
inline Join JoinLegs(const SearchGraph& graph, const Legs& a, const Legs& b,
                     Legs& result) {
  result.clear();
  return JoinLegs(graph, a, b, [&](const Leg& leg) { result.push_back(leg); });
}

/// log2 of the elements of a node.
inline double BitsOf(const SearchGraph& graph, const Legs& legs) {
  double bits = 0;
  for (const Leg& leg : legs) bits += graph.bits[leg.index];
  return bits;
}

}  // namespace tensord::core
