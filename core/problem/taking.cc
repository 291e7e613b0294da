#include "core/problem/taking.h"

#include "core/base/status.h"

namespace tensord::core {

absl::Status CheckTakesNothing(const ElementwiseProblem& problem) {
  if (!problem.is_take()) return absl::OkStatus();
  return Unimplemented("TAKES_ELEMENTS", "it does not take by indices");
}

absl::Status IndexOutOfRange(const LoopMode<1>& taken, int64_t lowest,
                             int64_t highest) {
  const int64_t index = lowest < 0 ? lowest : highest;
  if (taken.extent == 0) {
    return InvalidArgument("INDEX_OUT_OF_RANGE", "index ", index,
                           " in b is out of range: the mode of a that is taken "
                           "from has extent 0, and so none");
  }
  return InvalidArgument("INDEX_OUT_OF_RANGE", "index ", index,
                         " in b is out of range: the mode of a that is taken "
                         "from has extent ",
                         taken.extent, ", wanted ", -taken.extent, " to ",
                         taken.extent - 1);
}

}  // namespace tensord::core
