// Work that cannot be stopped, and lets others go first all the same.
#pragma once

#include "absl/functional/function_ref.h"

namespace tensord::core {

/// Runs `work` on another thread and returns when it has ended. Meanwhile
/// others go first where this thread's CurrentWork allows it. `work` hears when
/// it is stopped, in places where it looks.
///
/// For calls of libraries that take long and hear nothing: it costs a thread.
void RunAside(absl::FunctionRef<void()> work);

}  // namespace tensord::core
