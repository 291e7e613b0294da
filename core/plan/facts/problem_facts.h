// What there is to know of the problems of each operation.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "core/plan/plan.h"

namespace tensord::core {

/// Defined for each operation in a file of its own; documented where they are
/// asked of any problem: in plan.h, explain.h and check_problem.h.
template <typename Problem>
struct Facts {
  static bool IsEmpty(const Problem& p);
  static double FlopCount(const Problem& p);
  static int64_t MovedBytes(const Problem& p);
  static std::string Summarize(const Problem& p);
  static absl::Status Check(const Problem& p);
};

}  // namespace tensord::core
