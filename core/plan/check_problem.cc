#include "core/plan/check_problem.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/base/checked_math.h"
#include "core/base/layout.h"
#include "core/base/status.h"
#include "core/ops/type_tables.h"

namespace tensord::core {
namespace {

constexpr absl::string_view kReason = "PROBLEM_NOT_CANONICAL";

absl::Status CheckThat(bool condition, absl::string_view fact) {
  return condition ? absl::OkStatus()
                   : InvalidArgument(kReason, "not a canonical problem: ", fact,
                                     " is wanted");
}

/// Where `operand` lies along `modes`. A mode that it is broadcast along is
/// left out where `may_broadcast`.
template <size_t n>
void AppendModes(const LoopModes<n>& modes, size_t operand, bool may_broadcast,
                 Layout& layout) {
  for (const auto& mode : modes) {
    const int64_t stride = mode.strides[operand];
    if (stride == 0 && (may_broadcast || mode.extent == 0)) continue;
    layout.extents.push_back(mode.extent);
    layout.strides.push_back(stride);
  }
}

/// What Canonical() computes on its way must not overflow either.
template <size_t n>
absl::Status CheckLoops(const LoopModes<n>& modes, size_t leading,
                        absl::string_view name) {
  TENSORD_RETURN_IF_ERROR(CheckThat(
      modes.size() <= kMaxModes, absl::StrCat("at most 64 modes in ", name)));
  int64_t count = 1;
  for (const auto& mode : modes) {
    bool fits = mode.extent >= 0;
    for (const int64_t stride : mode.strides) {
      fits = fits && stride >= 0 && CheckedMultiply(mode.extent, stride);
    }
    const auto more = CheckedMultiply(count, mode.extent);
    TENSORD_RETURN_IF_ERROR(CheckThat(
        fits && more,
        absl::StrCat("extents and strides that can be computed with in ",
                     name)));
    count = *more;
  }
  // Modes of equal strides may come in any order: merging lets them grow.
  const LoopModes<n> canonical = Canonical(modes, leading);
  const bool is_canonical = std::ranges::equal(
      canonical, modes, {}, &LoopMode<n>::strides, &LoopMode<n>::strides);
  return CheckThat(is_canonical,
                   absl::StrCat("the canonical order of modes in ", name));
}

absl::Status CheckInput(const Layout& layout, ElementType type,
                        absl::string_view name) {
  return ValidateLayout(layout, SizeOf(type), name);
}

absl::Status CheckOutput(const Layout& layout, ElementType type) {
  TENSORD_RETURN_IF_ERROR(ValidateLayout(layout, SizeOf(type), "d"));
  return CheckThat(IsInjective(layout), "d that does not overlap itself");
}

absl::Status CheckUnary(UnaryOperator op, ElementType type,
                        absl::string_view name) {
  TENSORD_RETURN_IF_ERROR(ValidateUnary(op, type, name));
  return CheckThat(op != UnaryOperator::kConj || IsComplex(type),
                   "IDENTITY for CONJ of real numbers");
}

absl::Status CheckAlignment(int64_t bytes, int64_t widest) {
  return CheckThat(bytes >= 1 && bytes <= widest &&
                       std::has_single_bit(static_cast<uint64_t>(bytes)),
                   "an alignment of 1, 2, 4, 8 or 16 bytes");
}

struct Check {
  absl::Status operator()(const PermutationProblem& p) const {
    using P = PermutationProblem;
    TENSORD_RETURN_IF_ERROR(
        ValidatePermutationTypes({p.type_a, p.type_d, p.compute_type}));
    TENSORD_RETURN_IF_ERROR(CheckUnary(p.unary, p.type_a, "a"));
    TENSORD_RETURN_IF_ERROR(CheckUnary(p.unary, p.type_d, "a"));
    TENSORD_RETURN_IF_ERROR(
        CheckAlignment(p.alignment_bytes, p.is_move ? P::kWidestAccess : 1));
    TENSORD_RETURN_IF_ERROR(CheckThat(
        !p.is_move ||
            (p.type_a == p.type_d && p.unary == UnaryOperator::kIdentity),
        "equal types and no operator where bits are moved"));
    TENSORD_RETURN_IF_ERROR(CheckLoops(p.modes, P::kD, "modes"));
    Layout a, d;
    AppendModes(p.modes, P::kA, true, a);
    AppendModes(p.modes, P::kD, false, d);
    TENSORD_RETURN_IF_ERROR(CheckInput(a, p.type_a, "a"));
    return CheckOutput(d, p.type_d);
  }

  absl::Status operator()(const ElementwiseProblem& p) const {
    using P = ElementwiseProblem;
    TENSORD_RETURN_IF_ERROR(ValidateElementwiseTypes(
        {p.types[P::kA], p.types[P::kB], p.types[P::kC], p.compute_type}));
    TENSORD_RETURN_IF_ERROR(
        CheckThat(p.types[P::kC] == p.types[P::kD], "c of d's type"));
    constexpr absl::string_view kNames[] = {"a", "b", "c"};
    for (size_t i = 0; i < p.unary.size(); ++i) {
      TENSORD_RETURN_IF_ERROR(CheckUnary(p.unary[i], p.types[i], kNames[i]));
    }
    TENSORD_RETURN_IF_ERROR(ValidateBinary(p.op_ab, p.types[P::kA]));
    TENSORD_RETURN_IF_ERROR(ValidateBinary(p.op_abc, p.types[P::kD]));
    TENSORD_RETURN_IF_ERROR(CheckLoops(p.modes, P::kD, "modes"));
    Layout d;
    for (size_t i = 0; i < p.unary.size(); ++i) {
      Layout input;
      AppendModes(p.modes, i, true, input);
      TENSORD_RETURN_IF_ERROR(CheckInput(input, p.types[i], kNames[i]));
      if (i == P::kB && !p.has_b) {
        TENSORD_RETURN_IF_ERROR(CheckThat(
            input.extents.empty() && p.types[P::kB] == p.types[P::kA] &&
                p.unary[P::kB] == UnaryOperator::kIdentity &&
                p.op_ab == BinaryOperator::kAdd,
            "nothing about b where there is none"));
      }
    }
    AppendModes(p.modes, P::kD, false, d);
    return CheckOutput(d, p.types[P::kD]);
  }

  absl::Status operator()(const ReductionProblem& p) const {
    using P = ReductionProblem;
    TENSORD_RETURN_IF_ERROR(
        ValidateReductionTypes({p.type_a, p.type_d, p.compute_type}));
    TENSORD_RETURN_IF_ERROR(ValidateBinary(p.op, p.type_a));
    TENSORD_RETURN_IF_ERROR(CheckUnary(p.unary_a, p.type_a, "a"));
    TENSORD_RETURN_IF_ERROR(CheckUnary(p.unary_c, p.type_d, "c"));
    TENSORD_RETURN_IF_ERROR(CheckLoops(p.kept, P::kD, "kept"));
    TENSORD_RETURN_IF_ERROR(CheckLoops(p.reduced, 0, "reduced"));
    Layout a, c, d;
    AppendModes(p.kept, P::kA, false, a);
    AppendModes(p.reduced, 0, false, a);
    AppendModes(p.kept, P::kC, false, c);
    AppendModes(p.kept, P::kD, false, d);
    TENSORD_RETURN_IF_ERROR(CheckInput(a, p.type_a, "a"));
    TENSORD_RETURN_IF_ERROR(CheckInput(c, p.type_d, "c"));
    return CheckOutput(d, p.type_d);
  }

  absl::Status operator()(const ContractionProblem& p) const {
    using P = ContractionProblem;
    TENSORD_RETURN_IF_ERROR(ValidateContractionTypes(
        {p.type_a, p.type_b, p.type_d, p.compute_type}));
    TENSORD_RETURN_IF_ERROR(CheckThat((!p.conj_a || IsComplex(p.type_a)) &&
                                          (!p.conj_b || IsComplex(p.type_b)) &&
                                          (!p.conj_c || IsComplex(p.type_d)),
                                      "CONJ of complex types only"));
    TENSORD_RETURN_IF_ERROR(
        CheckAlignment(p.alignment_bytes, P::kWidestAccess));
    TENSORD_RETURN_IF_ERROR(CheckLoops(p.batch, P::kBatchD, "batch"));
    TENSORD_RETURN_IF_ERROR(CheckLoops(p.m, P::kFreeD, "m"));
    TENSORD_RETURN_IF_ERROR(CheckLoops(p.n, P::kFreeD, "n"));
    TENSORD_RETURN_IF_ERROR(CheckLoops(p.k, P::kSumA, "k"));
    TENSORD_RETURN_IF_ERROR(CheckLoops(p.a_only, 0, "a_only"));
    TENSORD_RETURN_IF_ERROR(CheckLoops(p.b_only, 0, "b_only"));
    Layout a, b, c, d;
    AppendModes(p.batch, P::kBatchA, false, a);
    AppendModes(p.m, P::kFreeInput, false, a);
    AppendModes(p.k, P::kSumA, false, a);
    AppendModes(p.a_only, 0, false, a);
    AppendModes(p.batch, P::kBatchB, false, b);
    AppendModes(p.n, P::kFreeInput, false, b);
    AppendModes(p.k, P::kSumB, false, b);
    AppendModes(p.b_only, 0, false, b);
    AppendModes(KeptModesOf(p), 2, false, c);
    AppendModes(KeptModesOf(p), 3, false, d);
    TENSORD_RETURN_IF_ERROR(CheckInput(a, p.type_a, "a"));
    TENSORD_RETURN_IF_ERROR(CheckInput(b, p.type_b, "b"));
    TENSORD_RETURN_IF_ERROR(CheckInput(c, p.type_d, "c"));
    return CheckOutput(d, p.type_d);
  }
};

}  // namespace

absl::Status CheckProblem(const AnyProblem& problem) {
  return std::visit(Check{}, problem);
}

}  // namespace tensord::core
