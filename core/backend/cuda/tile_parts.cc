#include "core/backend/cuda/tile_parts.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace tensord::core::cuda {

int64_t Volume(const Parts& parts) {
  return std::accumulate(parts.begin(), parts.end(), int64_t{1},
                         std::multiplies<>());
}

void Grow(const std::vector<int64_t>& extents, const std::vector<size_t>& order,
          int64_t target, bool splits, Parts& parts) {
  int64_t run = 1;
  for (const size_t m : order) {
    if (run >= target) return;
    const int64_t needed = CeilDivide(target, run);
    const int64_t part =
        !splits || extents[m] <= 2 * needed ? extents[m] : needed;
    parts[m] = std::max(parts[m], part);
    if (parts[m] < extents[m]) return;
    run *= extents[m];
  }
}

}  // namespace tensord::core::cuda
