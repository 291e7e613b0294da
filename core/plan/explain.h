// Says in words and numbers what a problem is.
#pragma once

#include <cstdint>
#include <string>

#include "core/plan/plan.h"

namespace tensord::core {

/// Additions and multiplications that the problem needs; a complex
/// multiplication counts 6, a complex addition 2, a unary operator 1.
double FlopCount(const AnyProblem& problem);

/// Bytes of all operands, each read or written once, at most 2^63 - 1; the
/// addend c counts only where the operation always has one.
int64_t MovedBytes(const AnyProblem& problem);

/// The problem in one line, e.g.
/// "contraction float64 float64 -> float64 in float64: m 500:(2400,300,300)
/// ...": each mode as extent:(strides of its operands).
std::string Summarize(const AnyProblem& problem);

}  // namespace tensord::core
