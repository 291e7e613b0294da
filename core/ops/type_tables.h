// Which element and compute types go together, row by row, as in cuTENSOR 2.
//
// Integers are this project's extension: permutation, element-wise operations,
// reduction and contraction of equal integer types, in integer arithmetic that
// wraps (bool: ADD is or, MUL is and).
#pragma once

#include <span>

#include "absl/status/status.h"
#include "core/base/element_type.h"

namespace tensord::core {

struct PermutationTypes {
  ElementType a, d;
  ComputeType compute;
  bool operator==(const PermutationTypes&) const = default;
};
struct ElementwiseTypes {
  ElementType a, b, c;
  ComputeType compute;
  bool operator==(const ElementwiseTypes&) const = default;
};
struct ReductionTypes {
  ElementType a, c;
  ComputeType compute;
  bool operator==(const ReductionTypes&) const = default;
};
struct ContractionTypes {
  ElementType a, b, c;
  ComputeType compute;
  bool operator==(const ContractionTypes&) const = default;
};

/// The rows, integers included, floating-point rows first. Permutations also
/// convert between any other two types, except from complex types to integers;
/// from complex to real ones with the operators ABS, REAL and IMAG alone.
///
/// Conversions to integers: floating-point numbers lose their fraction, and
/// become the nearest integer of the type where they are beyond it, NaN 0;
/// integers wrap. Whatever is not 0 becomes true.
std::span<const PermutationTypes> PermutationTypeTable();
std::span<const ElementwiseTypes> ElementwiseTypeTable();
std::span<const ReductionTypes> ReductionTypeTable();
std::span<const ContractionTypes> ContractionTypeTable();
/// Of reductions that sort: real elements, and their indices.
std::span<const ReductionTypes> SortingTypeTable();

/// OK when `types` is a row.
/// Errors  UNIMPLEMENTED: names the rows that differ in the fewest columns.
absl::Status ValidatePermutationTypes(const PermutationTypes& types);
absl::Status ValidateElementwiseTypes(const ElementwiseTypes& types);
absl::Status ValidateReductionTypes(const ReductionTypes& types);
absl::Status ValidateSortingTypes(const ReductionTypes& types);
absl::Status ValidateContractionTypes(const ContractionTypes& types);

/// The compute type of a request that names none: of the rows with these
/// element types the most precise one that is not slower than the widest
/// operand needs (float16 -> float32, float32 -> float32, float64 -> float64,
/// integers -> integer).
ComputeType DefaultComputeType(ElementType widest);

/// The compute type of the row by which a permutation converts.
ComputeType ConversionComputeType(ElementType from, ElementType to);

/// The type that arithmetic on elements stored as `x` and `y` runs in: float32
/// or wider, complex when either is; among integers y.
ElementType ComputeElement(ElementType x, ElementType y, ComputeType compute);

/// Of two element types the one that arithmetic must be able to hold.
ElementType WidestOf(ElementType x, ElementType y);

/// The element type that NumPy gives the sum of elements of both.
ElementType PromotedType(ElementType x, ElementType y);

}  // namespace tensord::core
