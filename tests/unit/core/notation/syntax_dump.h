// Syntax trees as text in which all but positions shows.
#pragma once

#include <string>

#include "core/notation/parse_einsum.h"
#include "core/notation/syntax.h"

namespace tensord::core::test {

/// Equal for trees that are equal but for positions, and for those only.
std::string Dump(const ProgramSyntax& program);
std::string Dump(const Sum& sum);

/// The texts, with a comma between labels and a bar between operands.
std::string Dump(const Labels& labels);
std::string Dump(const EinsumSyntax& einsum);

}  // namespace tensord::core::test
