#include "core/backend/cpu/direct/contraction_direct.h"

#include <cstddef>
#include <memory>
#include <utility>

#include "core/backend/cpu/contraction_scale.h"
#include "core/backend/cpu/direct/direct_execution.h"
#include "core/backend/cpu/direct/direct_way.h"
#include "core/base/memo.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

using Problem = ContractionProblem;

constexpr size_t kMostKnown = 1024;

class DirectContraction final : public ContractionKernel {
 public:
  DirectContraction(ThreadPool& threads, const GemmRates& rates)
      : threads_(threads), rates_(rates) {}

  absl::string_view name() const override { return "cpu.contract.direct"; }

  absl::Status Supports(const Problem& problem) const override {
    return KnownWay(problem).status();
  }

  int64_t WorkspaceBytes(const Problem& problem) const override {
    return DirectWorkspaceBytes(**KnownWay(problem), threads_.thread_count());
  }

  double PredictNanoseconds(const Problem& problem) const override {
    constexpr double kLaunch = 4000;
    return kLaunch + (*KnownWay(problem))->nanoseconds;
  }

  absl::Status Launch(const Problem& problem,
                      const ContractionOperands& operands, Workspace& workspace,
                      Stream&) const override {
    if (operands.alpha.IsZero()) {
      ScaleResult(threads_, problem, operands);
      return absl::OkStatus();
    }
    TENSORD_ASSIGN_OR_RETURN(const std::shared_ptr<const DirectWay> way,
                             KnownWay(problem));
    ExecuteDirectWay(*way, operands, threads_, workspace);
    return absl::OkStatus();
  }

 private:
  using Ways = Memo<Problem, DirectWay>;

  Ways::Answer KnownWay(const Problem& problem) const {
    return ways_.Get(problem, [&]() -> Ways::Answer {
      TENSORD_ASSIGN_OR_RETURN(DirectWay way, ChooseDirectWay(problem, rates_));
      return std::make_shared<const DirectWay>(std::move(way));
    });
  }

  ThreadPool& threads_;
  const GemmRates rates_;
  mutable Ways ways_{kMostKnown};  // so that launches need not decide
};

}  // namespace

std::unique_ptr<const ContractionKernel> CreateDirectContraction(
    ThreadPool& threads, const GemmRates& rates) {
  return std::make_unique<DirectContraction>(threads, rates);
}

}  // namespace tensord::core
