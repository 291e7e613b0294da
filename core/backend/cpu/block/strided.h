// Filling and copying along strides.
#pragma once

#include "core/backend/backend.h"
#include "core/backend/cpu/thread_pool.h"

namespace tensord::core {

/// As Backend::Fill; done on return.
void Fill(ThreadPool& threads, const FillOperands& operands);

/// As Backend::Copy; done on return.
void Copy(ThreadPool& threads, const CopyOperands& operands);

}  // namespace tensord::core
