#include "core/backend/cuda/parts/kernels_in_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/backend/cuda/parts/problem_parts.h"
#include "core/base/status.h"
#include "core/device/event.h"
#include "core/device/interruption.h"

namespace tensord::core::cuda {
namespace {

// A launch a part: more of them would keep the caller too long.
constexpr int64_t kMostParts = 4096;

// What takes long is divided unless that costs more than so much of its time.
constexpr double kMostLoss = 0.25;

// How long the parts may take that are queued: more than it takes to queue
// another one.
constexpr double kAheadNanoseconds = 8e6;

/// Null stays null. Others need not be read, and may then lead anywhere.
template <typename Pointer>
void Advance(Pointer& pointer, int64_t bytes) {
  if (pointer == nullptr) return;
  pointer = reinterpret_cast<Pointer>(reinterpret_cast<uintptr_t>(pointer) +
                                      static_cast<uintptr_t>(bytes));
}

/// How far launching is ahead of a stream.
class Pace {
 public:
  /// Lifetime  the stream outlives it.
  explicit Pace(Stream& stream) : stream_(stream) {}

  /// Waits until another part may be queued.
  /// Errors  CANCELLED: none is to be.
  absl::Status Await() {
    Interruption* const interruption = stream_.interruption();
    if (interruption == nullptr) return absl::OkStatus();
    while (ahead_ > kAheadNanoseconds && !interruption->is_stopped()) {
      const auto [event, nanoseconds] = queued_.front();
      if (event != nullptr) interruption->Await(event);
      ahead_ -= nanoseconds;
      queued_.pop_front();
    }
    if (!interruption->is_stopped()) return absl::OkStatus();
    return absl::CancelledError("the operation was stopped");
  }

  /// A part is, that should take so long.
  /// Errors  as Stream::Record().
  absl::Status Queued(double nanoseconds) {
    if (stream_.interruption() == nullptr) return absl::OkStatus();
    unmarked_ += nanoseconds;
    if (unmarked_ < kAheadNanoseconds / 4) return absl::OkStatus();
    TENSORD_ASSIGN_OR_RETURN(std::shared_ptr<Event> event, stream_.Record());
    ahead_ += unmarked_;
    queued_.emplace_back(std::move(event), std::exchange(unmarked_, 0));
    return absl::OkStatus();
  }

 private:
  Stream& stream_;
  // Points in its order, and what comes before each and behind the one before.
  std::deque<std::pair<std::shared_ptr<Event>, double>> queued_;
  double ahead_ = 0;     // of all of them
  double unmarked_ = 0;  // behind the last one
};

/// Every part of a problem, solved.
template <typename Problem, typename Operands>
class SolvedParts {
 public:
  /// Errors  UNIMPLEMENTED also: there are too many.
  static absl::StatusOr<SolvedParts> Of(const Kernel<Problem, Operands>& kernel,
                                        ProblemParts<Problem> parts) {
    if (parts.count() > kMostParts) {
      return Unimplemented("TOO_MANY_PARTS", "it would run in ", parts.count(),
                           " parts, at most ", kMostParts, " are possible");
    }
    SolvedParts solved(std::move(parts));
    for (const Problem& problem : solved.parts_.problems) {
      TENSORD_ASSIGN_OR_RETURN(auto solution, kernel.Solve(problem));
      solved.solutions_.push_back(std::move(solution));
    }
    solved.parts_.problems = {};  // have done their part
    return solved;
  }

  int64_t count() const { return parts_.count(); }

  int64_t largest_workspace_bytes() const {
    int64_t largest = 0;
    for (const auto& solution : solutions_) {
      largest = std::max(largest, solution->workspace_bytes());
    }
    return largest;
  }
  double sum_of_nanoseconds() const {
    double sum = 0;
    for (size_t shape = 0; shape < solutions_.size(); ++shape) {
      sum += static_cast<double>(parts_.loops.shapes()[shape].count) *
             solutions_[shape]->predicted_nanoseconds();
    }
    return sum;
  }
  std::string decision() const {
    return absl::StrCat("in ", count(),
                        " parts, each: ", solutions_.front()->decision());
  }
  int64_t heap_bytes() const {
    int64_t bytes = parts_.loops.heap_bytes() + HeapBytes(parts_.modes) +
                    HeapBytes(solutions_);
    for (const auto& solution : solutions_) bytes += HeapBytes(solution);
    return bytes;
  }

  /// Of `operands`, those of the whole, the part's are taken.
  absl::Status Launch(int64_t number, const Operands& operands,
                      Workspace workspace, Stream& stream, Pace& pace) const {
    const auto& solution = *solutions_[parts_.loops.shape(number)];
    TENSORD_RETURN_IF_ERROR(pace.Await());
    TENSORD_RETURN_IF_ERROR(
        solution.Launch(OperandsOf(number, operands), workspace, stream));
    return pace.Queued(solution.predicted_nanoseconds());
  }

 private:
  explicit SolvedParts(ProblemParts<Problem> parts)
      : parts_(std::move(parts)),
        element_bytes_(ElementBytes(parts_.problems.front())) {}

  Operands OperandsOf(int64_t number, Operands operands) const {
    const auto& bytes = element_bytes_;
    const std::array<int64_t, 4> offsets = parts_.offsets(number);
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

  ProblemParts<Problem> parts_;           // without problems
  std::array<int64_t, 4> element_bytes_;  // of a, b, c, d
  std::vector<std::unique_ptr<const Solution<Operands>>> solutions_;  // (shape)
};

/// Parts of d's elements, one after the other in the same workspace.
template <typename Problem, typename Operands>
class KeptSolution final : public Solution<Operands> {
 public:
  explicit KeptSolution(SolvedParts<Problem, Operands> parts)
      : Solution<Operands>(parts.sum_of_nanoseconds(),
                           parts.largest_workspace_bytes()),
        parts_(std::move(parts)) {}

  std::string decision() const override { return parts_.decision(); }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + parts_.heap_bytes();
  }

  absl::Status Launch(const Operands& operands, Workspace& workspace,
                      Stream& stream) const override {
    Pace pace(stream);
    for (int64_t number = 0; number < parts_.count(); ++number) {
      TENSORD_RETURN_IF_ERROR(
          parts_.Launch(number, operands, workspace, stream, pace));
    }
    return absl::OkStatus();
  }

 private:
  const SolvedParts<Problem, Operands> parts_;
};

/// The problem in parts of at most `limit` elements of d, that `kernel` takes.
template <typename Problem, typename Operands>
Kernel<Problem, Operands>::Solved SolveKept(
    const Kernel<Problem, Operands>& kernel, const Problem& problem,
    int64_t limit) {
  using Parts = SolvedParts<Problem, Operands>;
  TENSORD_ASSIGN_OR_RETURN(Parts parts,
                           Parts::Of(kernel, DivideKept(problem, limit)));
  return std::make_unique<KeptSolution<Problem, Operands>>(std::move(parts));
}

/// Divides the elements of d: each part is a problem of the kernel.
template <typename Problem, typename Operands>
class KeptInParts final : public Kernel<Problem, Operands> {
 public:
  using Inner = Kernel<Problem, Operands>;
  using typename Inner::Solved;

  KeptInParts(std::unique_ptr<const Inner> kernel, int64_t limit)
      : kernel_(std::move(kernel)), limit_(limit) {}

  absl::string_view name() const override { return kernel_->name(); }
  int version() const override { return kernel_->version(); }

  /// Nothing is divided that has no elements: limits are 1 or more.
  Solved Solve(const Problem& problem) const override {
    if (KeptCount(problem) <= limit_) return kernel_->Solve(problem);
    return SolveKept(*kernel_, problem, limit_);
  }

 private:
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

/// Parts of the terms, each to a place of its own, and what joins those.
template <typename Problem, typename Operands>
class TermsSolution final : public Solution<Operands> {
 public:
  /// `partial_bytes`: from what one part of the terms comes to to the next.
  TermsSolution(SolvedParts<Problem, Operands> parts,
                std::unique_ptr<const ReductionSolution> join,
                int64_t partial_bytes)
      : Solution<Operands>(
            parts.sum_of_nanoseconds() + join->predicted_nanoseconds(),
            Workspace::BytesFor(parts.count() * partial_bytes) +
                std::max(parts.largest_workspace_bytes(),
                         join->workspace_bytes())),
        parts_(std::move(parts)),
        join_(std::move(join)),
        partial_bytes_(partial_bytes) {}

  std::string decision() const override {
    return absl::StrCat("sums ", parts_.decision());
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + parts_.heap_bytes() +
           HeapBytes(join_);
  }

  absl::Status Launch(const Operands& operands, Workspace& workspace,
                      Stream& stream) const override {
    auto* const partial =
        workspace.Take<std::byte>(parts_.count() * partial_bytes_);
    Operands of_terms = operands;
    of_terms.c = nullptr;
    of_terms.d = partial;
    of_terms.alpha = kOne;
    of_terms.beta = kZero;
    // Without alpha there are no terms.
    const int64_t count = operands.alpha.IsZero() ? 0 : parts_.count();
    Pace pace(stream);
    for (int64_t number = 0; number < count; ++number) {
      of_terms.d = partial + number * partial_bytes_;
      TENSORD_RETURN_IF_ERROR(
          parts_.Launch(number, of_terms, workspace, stream, pace));
    }
    return join_->Launch({.a = partial,
                          .c = operands.c,
                          .d = operands.d,
                          .alpha = operands.alpha,
                          .beta = operands.beta},
                         workspace, stream);
  }

 private:
  const SolvedParts<Problem, Operands> parts_;
  const std::unique_ptr<const ReductionSolution> join_;
  const int64_t partial_bytes_;
};

/// The problem in parts of at most `limit` terms each, that `kernel` takes, and
/// what `join` makes of them.
template <typename Problem, typename Operands>
Kernel<Problem, Operands>::Solved SolveTerms(
    const Kernel<Problem, Operands>& kernel, const ReductionKernel& join,
    const Problem& problem, int64_t limit) {
  TENSORD_RETURN_IF_ERROR(CheckPartialSums(problem, limit));
  using Parts = SolvedParts<Problem, Operands>;
  TENSORD_ASSIGN_OR_RETURN(Parts parts,
                           Parts::Of(kernel, DivideTerms(problem, limit)));
  const ReductionProblem joined = JoinOf(problem, parts.count());
  TENSORD_ASSIGN_OR_RETURN(auto join_solution, join.Solve(joined));
  return std::make_unique<TermsSolution<Problem, Operands>>(
      std::move(parts), std::move(join_solution),
      joined.reduced[0].strides[0] * SizeOf(joined.type_a));
}

/// Divides the terms of d's elements: the kernel reduces each part of them to
/// workspace, and another kernel makes d of that.
template <typename Problem, typename Operands>
class TermsInParts final : public Kernel<Problem, Operands> {
 public:
  using Inner = Kernel<Problem, Operands>;
  using typename Inner::Solved;

  /// Lifetime  `join` outlives *this.
  TermsInParts(std::unique_ptr<const Inner> kernel, const ReductionKernel& join,
               int64_t limit)
      : kernel_(std::move(kernel)), join_(join), limit_(limit) {}

  absl::string_view name() const override { return kernel_->name(); }
  int version() const override { return kernel_->version(); }

  Solved Solve(const Problem& problem) const override {
    if (TermCount(problem) <= limit_) return kernel_->Solve(problem);
    return SolveTerms(*kernel_, join_, problem, limit_);
  }

 private:
  const std::unique_ptr<const Inner> kernel_;
  const ReductionKernel& join_;
  const int64_t limit_;
};

/// Divides what takes long.
template <typename Problem, typename Operands>
class LongInParts final : public Kernel<Problem, Operands> {
 public:
  using Inner = Kernel<Problem, Operands>;
  using typename Inner::Solved;

  /// Without `join` no terms are divided. Lifetime  it outlives *this.
  LongInParts(std::unique_ptr<const Inner> kernel, const ReductionKernel* join,
              double limit)
      : kernel_(std::move(kernel)), join_(join), limit_(limit) {}

  absl::string_view name() const override { return kernel_->name(); }
  int version() const override { return kernel_->version(); }

  Solved Solve(const Problem& problem) const override {
    Solved whole = kernel_->Solve(problem);
    if (!whole.ok() || (*whole)->predicted_nanoseconds() <= limit_) {
      return whole;
    }
    const double nanoseconds = (*whole)->predicted_nanoseconds();
    // Parts may become a few more than are asked for.
    const auto count = static_cast<int64_t>(
        std::min(std::ceil(4 * nanoseconds / limit_), double{kMostParts} / 2));
    const auto pays = [&](const Solved& parts) {
      return parts.ok() &&
             (*parts)->predicted_nanoseconds() <= (1 + kMostLoss) * nanoseconds;
    };
    if (const int64_t kept = KeptCount(problem); kept > 1) {
      Solved parts = SolveKept(*kernel_, problem, PartOf(kept, count));
      if (pays(parts)) return parts;
    }
    if constexpr (requires { TermCount(problem); }) {
      if (const int64_t terms = TermCount(problem);
          join_ != nullptr && terms > 1) {
        Solved parts =
            SolveTerms(*kernel_, *join_, problem, PartOf(terms, count));
        if (pays(parts)) return parts;
      }
    }
    return whole;
  }

 private:
  static int64_t PartOf(int64_t elements, int64_t count) {
    return std::max<int64_t>(1, elements / count);
  }

  const std::unique_ptr<const Inner> kernel_;
  const ReductionKernel* const join_;
  const double limit_;
};

template <typename Problem, typename Operands>
void DivideLong(
    std::vector<std::unique_ptr<const Kernel<Problem, Operands>>>& kernels,
    const ReductionKernel& join, double limit) {
  for (auto& kernel : kernels) {
    const bool is_last = &kernel == &kernels.back();
    kernel = std::make_unique<LongInParts<Problem, Operands>>(
        std::move(kernel), is_last ? nullptr : &join, limit);
  }
}

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

KernelLists InParts(KernelLists lists, const PartLimits& limits) {
  using Permutation = KeptInParts<PermutationProblem, PermutationOperands>;
  using Elementwise = KeptInParts<ElementwiseProblem, ElementwiseOperands>;
  const int64_t limit = limits.elements;
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
  DivideLong(lists.permutation, join, limits.nanoseconds);
  DivideLong(lists.elementwise, join, limits.nanoseconds);
  DivideLong(lists.reduction, join, limits.nanoseconds);
  DivideLong(lists.contraction, join, limits.nanoseconds);
  return lists;
}

}  // namespace tensord::core::cuda
