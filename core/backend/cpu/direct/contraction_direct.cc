#include "core/backend/cpu/direct/contraction_direct.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/backend/cpu/contraction_scale.h"
#include "core/backend/cpu/direct/direct_execution.h"
#include "core/backend/cpu/direct/direct_way.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

using Problem = ContractionProblem;

class DirectContractionSolution final : public ContractionSolution {
 public:
  DirectContractionSolution(const Problem& problem, DirectWay way,
                            ThreadPool& threads)
      : Solution(LaunchNanoseconds(way, threads) + way.nanoseconds,
                 DirectWorkspaceBytes(way, threads.thread_count())),
        way_(std::move(way)),
        without_terms_(ScalingOf(problem)),
        threads_(threads) {}

  std::string decision() const override {
    return absl::StrCat(
        "tiles of ", way_.tile.rows, " x ", way_.tile.columns, ", ",
        way_.rows.block_count(), " x ", way_.columns.block_count(), " x ",
        way_.terms.block_count(), " blocks, ", way_.task_count(),
        way_.task_count() == 1 ? " task" : " tasks",
        way_.swaps ? ", rows from b" : ", rows from a",
        way_.streams ? ", written past the caches" : "");
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + way_.heap_bytes() +
           HeapBytes(without_terms_.modes);
  }

  absl::Status Launch(const ContractionOperands& operands, Workspace& workspace,
                      Stream&) const override {
    if (operands.alpha.IsZero()) {
      ScaleResult(threads_, without_terms_, operands);
    } else {
      ExecuteDirectWay(way_, operands, threads_, workspace);
    }
    return absl::OkStatus();
  }

 private:
  /// Where there is work for others, until they are awake and done.
  static double LaunchNanoseconds(const DirectWay& way,
                                  const ThreadPool& threads) {
    return threads.thread_count() > 1 && way.task_count() > 1 ? 4000 : 700;
  }

  const DirectWay way_;
  const ResultCopy without_terms_;
  ThreadPool& threads_;
};

}  // namespace

std::unique_ptr<const ContractionKernel> CreateDirectContraction(
    ThreadPool& threads, const GemmRates& rates) {
  return std::make_unique<SimpleContraction>(
      "cpu.contract.direct",
      [&threads, rates](const Problem& problem) -> ContractionKernel::Solved {
        TENSORD_ASSIGN_OR_RETURN(DirectWay way,
                                 ChooseDirectWay(problem, rates));
        return std::make_unique<DirectContractionSolution>(
            problem, std::move(way), threads);
      });
}

}  // namespace tensord::core
