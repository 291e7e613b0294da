#include "core/backend/cpu/block/gather.h"

#include <algorithm>
#include <cstring>

namespace tensord::core {
namespace {

// Some milliseconds of work.
constexpr int64_t kElementsPerPart = int64_t{1} << 16;

template <size_t element_bytes>
void GatherPart(const GatherSteps& steps, const GatherOperands& operands,
                int64_t begin, int64_t end) {
  const auto* const storage = static_cast<const std::byte*>(operands.storage);
  std::byte* to = static_cast<std::byte*>(operands.d) +
                  begin * static_cast<int64_t>(element_bytes);
  for (int64_t index = begin; index < end; ++index, to += element_bytes) {
    const int64_t element = Locate(steps, index);
    const std::byte* const from =
        element == GatherSteps::kPadding
            ? operands.padding.data()
            : storage + element * static_cast<int64_t>(element_bytes);
    std::memcpy(to, from, element_bytes);
  }
}

}  // namespace

void Gather(ThreadPool& threads, const GatherSteps& steps,
            const GatherOperands& operands) {
  const int64_t count = steps.element_count;
  const int64_t parts = (count + kElementsPerPart - 1) / kElementsPerPart;
  threads.ParallelFor(parts, [&](int64_t part) {
    const int64_t begin = part * kElementsPerPart;
    const int64_t end = std::min(count, begin + kElementsPerPart);
    switch (operands.element_bytes) {
      case 1: return GatherPart<1>(steps, operands, begin, end);
      case 2: return GatherPart<2>(steps, operands, begin, end);
      case 4: return GatherPart<4>(steps, operands, begin, end);
      case 8: return GatherPart<8>(steps, operands, begin, end);
      default: return GatherPart<16>(steps, operands, begin, end);
    }
  });
}

}  // namespace tensord::core
