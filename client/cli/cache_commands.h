// tensorctl cache: what the server has learned about kernels.
#pragma once

#include <string>

#include "tensord/plan_cache.h"

namespace tensord::cli {

// Each prints to stdout, as JSON when asked to, and returns an exit code.

int PrintCacheState(const PlanCache& cache, bool json);
/// The first `count` entries, those with most hits first.
int PrintCacheEntries(const PlanCache& cache, int count, bool json);
/// `verb` is pin, unpin or remove.
int ChangeCacheEntry(const PlanCache& cache, const std::string& verb,
                     const std::string& id);
int ClearCache(const PlanCache& cache, bool pinned_too);
/// Writes a snapshot to a file, which appears when it is whole.
int DumpCache(const PlanCache& cache, const std::string& path);
int LoadCache(const PlanCache& cache, const std::string& path,
              bool problems_only);

}  // namespace tensord::cli
