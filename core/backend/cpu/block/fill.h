// One value everywhere.
#pragma once

#include "core/backend/backend.h"
#include "core/backend/cpu/thread_pool.h"

namespace tensord::core {

/// As Backend::Fill; done on return.
void Fill(ThreadPool& threads, const FillOperands& operands);

}  // namespace tensord::core
