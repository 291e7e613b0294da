// Equal forms of what can be written in several ways.
#pragma once

#include <cstddef>
#include <vector>

#include "core/notation/syntax.h"

namespace tensord::core {

/// A sum of one factor.
Sum SumOf(Factor factor);

/// Conjugates a factor. A group of one factor is as good as that.
void Conjugate(Factor& factor);

/// Puts a comparison in the place of a group of nothing else: it stands in
/// parentheses anyway.
void UnwrapComparison(Factor& group);

/// Puts a factor in parentheses.
void Enclose(Factor& factor);

/// The factors of `a*b \ c*d \ e*f`, which have come in this order and of
/// which those at `starts` stand behind a `\`, as `e*f/c/d*a*b`.
std::vector<Factor> ProductOf(std::vector<Factor> factors,
                              const std::vector<size_t>& starts);

}  // namespace tensord::core
