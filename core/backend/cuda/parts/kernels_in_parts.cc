#include "core/backend/cuda/parts/kernels_in_parts.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "core/backend/cuda/parts/problem_parts.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

// A launch a part: more of them would keep the caller too long.
constexpr int64_t kMostParts = 4096;

/// Null stays null. Others need not be read, and may then lead anywhere.
template <typename Pointer>
void Advance(Pointer& pointer, int64_t bytes) {
  if (pointer == nullptr) return;
  pointer = reinterpret_cast<Pointer>(reinterpret_cast<uintptr_t>(pointer) +
                                      static_cast<uintptr_t>(bytes));
}

/// The operands of part `number`.
template <typename Problem, typename Operands>
Operands OperandsOf(const ProblemParts<Problem>& parts, int64_t number,
                    Operands operands) {
  const std::array<int64_t, 4> bytes = ElementBytes(parts.problem(number));
  const std::array<int64_t, 4> offsets = parts.offsets(number);
  Advance(operands.a, offsets[0] * bytes[0]);
  if constexpr (requires { operands.b; }) {
    Advance(operands.b, offsets[1] * bytes[1]);
  }
  if constexpr (requires { operands.c; }) {
    Advance(operands.c, offsets[2] * bytes[2]);
  }
  Advance(operands.d, offsets[3] * bytes[3]);
  return operands;
}

template <typename Problem, typename Operands>
absl::Status SupportsAll(const Kernel<Problem, Operands>& kernel,
                         const ProblemParts<Problem>& parts) {
  if (parts.count() > kMostParts) {
    return Unimplemented("TOO_MANY_PARTS", "it would run in ", parts.count(),
                         " parts, at most ", kMostParts, " are possible");
  }
  for (const Problem& problem : parts.problems) {
    TENSORD_RETURN_IF_ERROR(kernel.Supports(problem));
  }
  return absl::OkStatus();
}

template <typename Problem, typename Operands>
int64_t LargestWorkspace(const Kernel<Problem, Operands>& kernel,
                         const ProblemParts<Problem>& parts) {
  int64_t largest = 0;
  for (const Problem& problem : parts.problems) {
    largest = std::max(largest, kernel.WorkspaceBytes(problem));
  }
  return largest;
}

template <typename Problem, typename Operands>
double SumOfNanoseconds(const Kernel<Problem, Operands>& kernel,
                        const ProblemParts<Problem>& parts) {
  double sum = 0;
  for (size_t shape = 0; shape < parts.problems.size(); ++shape) {
    sum += static_cast<double>(parts.loops.shapes()[shape].count) *
           kernel.PredictNanoseconds(parts.problems[shape]);
  }
  return sum;
}

/// Divides the elements of d: each part is a problem of the kernel.
template <typename Problem, typename Operands>
class KeptInParts final : public Kernel<Problem, Operands> {
 public:
  using Inner = Kernel<Problem, Operands>;

  KeptInParts(std::unique_ptr<const Inner> kernel, int64_t limit)
      : kernel_(std::move(kernel)), limit_(limit) {}

  absl::string_view name() const override { return kernel_->name(); }

  absl::Status Supports(const Problem& problem) const override {
    if (IsWhole(problem)) return kernel_->Supports(problem);
    return SupportsAll(*kernel_, DivideKept(problem, limit_));
  }

  int64_t WorkspaceBytes(const Problem& problem) const override {
    if (IsWhole(problem)) return kernel_->WorkspaceBytes(problem);
    return LargestWorkspace(*kernel_, DivideKept(problem, limit_));
  }

  double PredictNanoseconds(const Problem& problem) const override {
    if (IsWhole(problem)) return kernel_->PredictNanoseconds(problem);
    return SumOfNanoseconds(*kernel_, DivideKept(problem, limit_));
  }

  absl::Status Launch(const Problem& problem, const Operands& operands,
                      Workspace& workspace, Stream& stream) const override {
    if (IsWhole(problem)) {
      return kernel_->Launch(problem, operands, workspace, stream);
    }
    const ProblemParts<Problem> parts = DivideKept(problem, limit_);
    for (int64_t number = 0; number < parts.count(); ++number) {
      Workspace of_part = workspace;  // the same for each: they take turns
      TENSORD_RETURN_IF_ERROR(kernel_->Launch(
          parts.problem(number), OperandsOf(parts, number, operands), of_part,
          stream));
    }
    return absl::OkStatus();
  }

 private:
  /// Nothing is divided that has no elements: limits are 1 or more.
  bool IsWhole(const Problem& problem) const {
    return KeptCount(problem) <= limit_;
  }

  const std::unique_ptr<const Inner> kernel_;
  const int64_t limit_;
};

absl::Status CheckPartialSums(const ReductionProblem&, int64_t) {
  return absl::OkStatus();
}
absl::Status CheckPartialSums(const ContractionProblem& problem,
                              int64_t limit) {
  if (IsInteger(problem.type_d) || SizeOf(RealPartOf(problem.type_d)) >= 4) {
    return absl::OkStatus();
  }
  return Unimplemented("TOO_MANY_TERMS", "it sums ", TermCount(problem),
                       " terms, at most ", limit, " are possible where d is ",
                       NameOf(problem.type_d),
                       ": parts of a sum would be rounded to it");
}

/// Divides the terms of d's elements: the kernel reduces each part of them to
/// workspace, and another kernel makes d of that.
template <typename Problem, typename Operands>
class TermsInParts final : public Kernel<Problem, Operands> {
 public:
  using Inner = Kernel<Problem, Operands>;

  /// Lifetime  `join` outlives *this.
  TermsInParts(std::unique_ptr<const Inner> kernel, const ReductionKernel& join,
               int64_t limit)
      : kernel_(std::move(kernel)), join_(join), limit_(limit) {}

  absl::string_view name() const override { return kernel_->name(); }

  absl::Status Supports(const Problem& problem) const override {
    if (IsWhole(problem)) return kernel_->Supports(problem);
    TENSORD_RETURN_IF_ERROR(CheckPartialSums(problem, limit_));
    const ProblemParts<Problem> parts = DivideTerms(problem, limit_);
    TENSORD_RETURN_IF_ERROR(SupportsAll(*kernel_, parts));
    return join_.Supports(JoinOf(problem, parts.count()));
  }

  int64_t WorkspaceBytes(const Problem& problem) const override {
    if (IsWhole(problem)) return kernel_->WorkspaceBytes(problem);
    const ProblemParts<Problem> parts = DivideTerms(problem, limit_);
    const ReductionProblem join = JoinOf(problem, parts.count());
    return Workspace::BytesFor(parts.count() * PartialBytes(join)) +
           std::max(LargestWorkspace(*kernel_, parts),
                    join_.WorkspaceBytes(join));
  }

  double PredictNanoseconds(const Problem& problem) const override {
    if (IsWhole(problem)) return kernel_->PredictNanoseconds(problem);
    const ProblemParts<Problem> parts = DivideTerms(problem, limit_);
    return SumOfNanoseconds(*kernel_, parts) +
           join_.PredictNanoseconds(JoinOf(problem, parts.count()));
  }

  absl::Status Launch(const Problem& problem, const Operands& operands,
                      Workspace& workspace, Stream& stream) const override {
    if (IsWhole(problem)) {
      return kernel_->Launch(problem, operands, workspace, stream);
    }
    const ProblemParts<Problem> parts = DivideTerms(problem, limit_);
    const ReductionProblem join = JoinOf(problem, parts.count());
    const int64_t partial_bytes = PartialBytes(join);
    auto* const partial =
        workspace.Take<std::byte>(parts.count() * partial_bytes);
    Operands of_terms = operands;
    of_terms.c = nullptr;
    of_terms.alpha = kOne;
    of_terms.beta = kZero;
    // Without alpha there are no terms.
    const int64_t count = operands.alpha.IsZero() ? 0 : parts.count();
    for (int64_t number = 0; number < count; ++number) {
      of_terms.d = partial + number * partial_bytes;
      Workspace of_part = workspace;  // the same for each: they take turns
      TENSORD_RETURN_IF_ERROR(kernel_->Launch(
          parts.problem(number), OperandsOf(parts, number, of_terms), of_part,
          stream));
    }
    return join_.Launch(join,
                        {.a = partial,
                         .c = operands.c,
                         .d = operands.d,
                         .alpha = operands.alpha,
                         .beta = operands.beta},
                        workspace, stream);
  }

 private:
  bool IsWhole(const Problem& problem) const {
    return TermCount(problem) <= limit_;
  }

  /// Bytes from what one part of the terms comes to on to the next.
  static int64_t PartialBytes(const ReductionProblem& join) {
    return join.reduced[0].strides[0] * SizeOf(join.type_a);
  }

  const std::unique_ptr<const Inner> kernel_;
  const ReductionKernel& join_;
  const int64_t limit_;
};

/// Replaces each kernel but the last by what `decorate` makes of it.
template <typename Kernel, typename Decorate>
void ReplaceAllButLast(KernelList<Kernel>& list, Decorate&& decorate) {
  for (size_t i = 0; i + 1 < list.size(); ++i) {
    list[i] = decorate(std::move(list[i]));
  }
}

/// Both the elements of d and their terms in parts.
template <typename Problem, typename Operands>
std::unique_ptr<const Kernel<Problem, Operands>> BothInParts(
    std::unique_ptr<const Kernel<Problem, Operands>> kernel,
    const ReductionKernel& join, int64_t limit) {
  auto terms = std::make_unique<TermsInParts<Problem, Operands>>(
      std::move(kernel), join, limit);
  return std::make_unique<KeptInParts<Problem, Operands>>(std::move(terms),
                                                          limit);
}

}  // namespace

KernelLists InParts(KernelLists lists, int64_t limit) {
  using Permutation = KeptInParts<PermutationProblem, PermutationOperands>;
  using Elementwise = KeptInParts<ElementwiseProblem, ElementwiseOperands>;
  // Stays where it is when its list gets what owns it from then on.
  const ReductionKernel& join = *lists.reduction.front();
  ReplaceAllButLast(lists.permutation, [&](auto kernel) {
    return std::make_unique<Permutation>(std::move(kernel), limit);
  });
  ReplaceAllButLast(lists.elementwise, [&](auto kernel) {
    return std::make_unique<Elementwise>(std::move(kernel), limit);
  });
  ReplaceAllButLast(lists.reduction, [&](auto kernel) {
    return BothInParts(std::move(kernel), join, limit);
  });
  ReplaceAllButLast(lists.contraction, [&](auto kernel) {
    return BothInParts(std::move(kernel), join, limit);
  });
  return lists;
}

}  // namespace tensord::core::cuda
