// How fast the machine's memory is, measured next to what is compared with it.
#pragma once

#include <cstdint>

#include "core/backend/cpu/thread_pool.h"

namespace tensord::test {

/// Seconds to copy `bytes` bytes from `a` to `d` on all threads, with stores
/// that go past the caches where the machine has them.
/// Requires  d aligned to 64 bytes.
double SecondsToCopy(const void* a, void* d, int64_t bytes,
                     core::ThreadPool& threads);

/// Seconds to read `bytes` bytes on all threads.
double SecondsToRead(const void* a, int64_t bytes, core::ThreadPool& threads);

}  // namespace tensord::test
