// The solutions of reference kernels.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "core/backend/kernel.h"
#include "core/problem/heap_bytes.h"

namespace tensord::core {

/// Of a kernel that has nothing to decide: run(problem, operands, stream) goes
/// by the problem itself.
template <typename Problem, typename Operands, typename Run>
class ReferenceSolution final : public Solution<Operands> {
 public:
  ReferenceSolution(double predicted_nanoseconds, const Problem& problem,
                    Run run)
      : Solution<Operands>(predicted_nanoseconds),
        problem_(problem),
        run_(std::move(run)) {}

  std::string decision() const override { return "element by element"; }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(problem_);
  }
  absl::Status Launch(const Operands& operands, Workspace&,
                      Stream& stream) const override {
    return run_(problem_, operands, stream);
  }

 private:
  const Problem problem_;
  const Run run_;  // holds nothing
};

template <typename Operands, typename Problem, typename Run>
std::unique_ptr<const Solution<Operands>> SolveByReference(
    double predicted_nanoseconds, const Problem& problem, Run run) {
  return std::make_unique<ReferenceSolution<Problem, Operands, Run>>(
      predicted_nanoseconds, problem, std::move(run));
}

}  // namespace tensord::core
