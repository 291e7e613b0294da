// Networks to search, and what trees cost by the definition.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "core/notation/path/network.h"

namespace tensord::test {

struct NetworkShape {
  int min_inputs = 1;
  int max_inputs = 6;
  int max_indices = 10;
  int max_extent = 5;       // extents from 1
  int max_occurrences = 3;  // of an index, in inputs
};

/// Of every sort: indices that one input has, that three have, that inputs and
/// output have; parts that share nothing; inputs without indices.
core::Network RandomNetwork(std::mt19937& rng, const NetworkShape& shape);

/// A connected network in which each input shares about `degree` indices of
/// `extent` with others.
core::Network RegularNetwork(std::mt19937& rng, int input_count, int degree,
                             int64_t extent);

/// Whether every node but the last is used once, by a later step.
bool IsTree(int input_count, const core::ContractionTree& tree);

/// The cost by the definition: the indices of a node are looked for in the
/// inputs below and beside it, and what is alive is kept in a list.
core::TreeCost CostByDefinition(const core::Network& network,
                                const core::ContractionTree& tree,
                                const std::vector<int32_t>& sliced = {});

/// Of every step the product of the extents of all its indices.
double MultiplicationsByDefinition(const core::Network& network,
                                   const core::ContractionTree& tree);

/// The least flops of all trees, by trying them.
double LeastFlops(const core::Network& network);

/// A tree of which every pair is chosen blindly.
core::ContractionTree RandomTree(std::mt19937& rng, int input_count);

}  // namespace tensord::test
