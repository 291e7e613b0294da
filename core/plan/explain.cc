#include "core/plan/explain.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/checked_math.h"

namespace tensord::core {
namespace {

template <size_t n>
double Count(const LoopModes<n>& modes) {
  return static_cast<double>(ElementCount(modes));
}

/// Elements of `operand` that the loops visit: broadcast modes count once.
template <size_t n>
int64_t Visited(const LoopModes<n>& modes, size_t operand) {
  int64_t count = 1;
  for (const auto& mode : modes) {
    if (mode.strides[operand] != 0 || mode.extent == 0) count *= mode.extent;
  }
  return count;
}

template <size_t n>
void AppendModes(std::string* out, absl::string_view group,
                 const LoopModes<n>& modes) {
  if (modes.empty()) return;
  absl::StrAppend(out, " ", group);
  for (const auto& mode : modes) {
    absl::StrAppend(out, " ", mode.extent, ":(");
    for (size_t i = 0; i < n; ++i) {
      absl::StrAppend(out, i == 0 ? "" : ",", mode.strides[i]);
    }
    absl::StrAppend(out, ")");
  }
}

struct Flops {
  double operator()(const PermutationProblem& p) const {
    return (p.unary == UnaryOperator::kIdentity ? 0.0 : 1.0) * Count(p.modes);
  }
  double operator()(const ElementwiseProblem& p) const {
    double per_element = p.has_b ? 2 : 1;
    for (const UnaryOperator op : p.unary) {
      per_element += op == UnaryOperator::kIdentity ? 0 : 1;
    }
    if (IsComplex(p.types[ElementwiseProblem::kD])) per_element *= 2;
    return per_element * Count(p.modes);
  }
  double operator()(const ReductionProblem& p) const {
    const double per_element = (IsComplex(p.type_a) ? 2 : 1) +
                               (p.unary_a == UnaryOperator::kIdentity ? 0 : 1);
    return per_element * Count(p.kept) * Count(p.reduced);
  }
  double operator()(const ContractionProblem& p) const {
    const bool a = IsComplex(p.type_a), b = IsComplex(p.type_b);
    const double per_term = a && b ? 8 : a || b ? 4 : 2;
    return per_term * Count(p.batch) * Count(p.m) * Count(p.n) * Count(p.k);
  }
};

/// Sums stop at what fits: operands of plans need not exist.
struct Bytes {
  int64_t operator()(const PermutationProblem& p) const {
    return SaturatingAdd(
        Visited(p.modes, PermutationProblem::kA) * SizeOf(p.type_a),
        ElementCount(p.modes) * SizeOf(p.type_d));
  }
  int64_t operator()(const ElementwiseProblem& p) const {
    int64_t bytes = 0;
    for (size_t i = 0; i < p.types.size(); ++i) {
      if (i == ElementwiseProblem::kB && !p.has_b) continue;
      bytes = SaturatingAdd(bytes, Visited(p.modes, i) * SizeOf(p.types[i]));
    }
    return bytes;
  }
  int64_t operator()(const ReductionProblem& p) const {
    const int64_t kept = ElementCount(p.kept);
    return SaturatingAdd(kept * ElementCount(p.reduced) * SizeOf(p.type_a),
                         kept * SizeOf(p.type_d));
  }
  int64_t operator()(const ContractionProblem& p) const {
    const int64_t batch = ElementCount(p.batch), m = ElementCount(p.m),
                  n = ElementCount(p.n), k = ElementCount(p.k);
    const int64_t inputs = SaturatingAdd(
        batch * m * k * ElementCount(p.a_only) * SizeOf(p.type_a),
        batch * k * n * ElementCount(p.b_only) * SizeOf(p.type_b));
    return SaturatingAdd(inputs, batch * m * n * SizeOf(p.type_d));
  }
};

struct Summary {
  std::string operator()(const PermutationProblem& p) const {
    std::string text = absl::StrCat(
        "permutation ", NameOf(p.type_a), " -> ", NameOf(p.type_d), " in ",
        NameOf(p.compute_type), ", ", NameOf(p.unary), ":");
    AppendModes(&text, "modes", p.modes);
    return text;
  }
  std::string operator()(const ElementwiseProblem& p) const {
    std::string text = absl::StrCat(
        p.has_b ? "trinary " : "binary ",
        NameOf(p.types[ElementwiseProblem::kA]), " -> ",
        NameOf(p.types[ElementwiseProblem::kD]), " in ", NameOf(p.compute_type),
        ", ", NameOf(p.op_ab), ", ", NameOf(p.op_abc), ":");
    AppendModes(&text, "modes", p.modes);
    return text;
  }
  std::string operator()(const ReductionProblem& p) const {
    std::string text =
        absl::StrCat("reduction ", NameOf(p.type_a), " -> ", NameOf(p.type_d),
                     " in ", NameOf(p.compute_type), ", ", NameOf(p.op), ":");
    AppendModes(&text, "kept", p.kept);
    AppendModes(&text, "reduced", p.reduced);
    return text;
  }
  std::string operator()(const ContractionProblem& p) const {
    std::string text = absl::StrCat("contraction ", NameOf(p.type_a), " ",
                                    NameOf(p.type_b), " -> ", NameOf(p.type_d),
                                    " in ", NameOf(p.compute_type), ":");
    AppendModes(&text, "batch", p.batch);
    AppendModes(&text, "m", p.m);
    AppendModes(&text, "n", p.n);
    AppendModes(&text, "k", p.k);
    AppendModes(&text, "a_only", p.a_only);
    AppendModes(&text, "b_only", p.b_only);
    return text;
  }
};

}  // namespace

double FlopCount(const AnyProblem& problem) {
  return std::visit(Flops{}, problem);
}

int64_t MovedBytes(const AnyProblem& problem) {
  return std::visit(Bytes{}, problem);
}

std::string Summarize(const AnyProblem& problem) {
  return std::visit(Summary{}, problem);
}

}  // namespace tensord::core
