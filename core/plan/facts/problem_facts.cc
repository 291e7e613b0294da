#include "core/plan/facts/problem_facts.h"

#include <variant>

#include "core/plan/check_problem.h"
#include "core/plan/explain.h"

namespace tensord::core {

bool IsEmpty(const AnyProblem& problem) {
  return std::visit([]<typename P>(const P& p) { return Facts<P>::IsEmpty(p); },
                    problem);
}

double FlopCount(const AnyProblem& problem) {
  return std::visit(
      []<typename P>(const P& p) { return Facts<P>::FlopCount(p); }, problem);
}

int64_t MovedBytes(const AnyProblem& problem) {
  return std::visit(
      []<typename P>(const P& p) { return Facts<P>::MovedBytes(p); }, problem);
}

std::string Summarize(const AnyProblem& problem) {
  return std::visit(
      []<typename P>(const P& p) { return Facts<P>::Summarize(p); }, problem);
}

absl::Status CheckProblem(const AnyProblem& problem) {
  return std::visit([]<typename P>(const P& p) { return Facts<P>::Check(p); },
                    problem);
}

}  // namespace tensord::core
