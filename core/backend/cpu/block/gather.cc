#include "core/backend/cpu/block/gather.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

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

template <size_t element_bytes>
void ScatterPart(const GatherSteps& steps, const ScatterOperands& operands,
                 int64_t begin, int64_t end) {
  auto* const storage = static_cast<std::byte*>(operands.storage);
  const std::byte* from = static_cast<const std::byte*>(operands.a) +
                          begin * static_cast<int64_t>(element_bytes);
  for (int64_t index = begin; index < end; ++index, from += element_bytes) {
    const int64_t element = Locate(steps, index);
    if (element == GatherSteps::kPadding) continue;
    std::memcpy(storage + element * static_cast<int64_t>(element_bytes), from,
                element_bytes);
  }
}

/// Calls fn(width, begin, end), whose width is a std::integral_constant, for
/// parts of the linear indices.
template <typename Fn>
void ForEachPart(ThreadPool& threads, int64_t element_count, int element_bytes,
                 Fn fn) {
  const int64_t parts =
      (element_count + kElementsPerPart - 1) / kElementsPerPart;
  threads.ParallelFor(parts, [&](int64_t part) {
    const int64_t begin = part * kElementsPerPart;
    const int64_t end = std::min(element_count, begin + kElementsPerPart);
    switch (element_bytes) {
      case 1: return fn(std::integral_constant<size_t, 1>(), begin, end);
      case 2: return fn(std::integral_constant<size_t, 2>(), begin, end);
      case 4: return fn(std::integral_constant<size_t, 4>(), begin, end);
      case 8: return fn(std::integral_constant<size_t, 8>(), begin, end);
      default: return fn(std::integral_constant<size_t, 16>(), begin, end);
    }
  });
}

}  // namespace

void Gather(ThreadPool& threads, const GatherSteps& steps,
            const GatherOperands& operands) {
  ForEachPart(threads, steps.element_count, operands.element_bytes,
              [&](auto width, int64_t begin, int64_t end) {
                GatherPart<width()>(steps, operands, begin, end);
              });
}

void Scatter(ThreadPool& threads, const GatherSteps& steps,
             const ScatterOperands& operands) {
  ForEachPart(threads, steps.element_count, operands.element_bytes,
              [&](auto width, int64_t begin, int64_t end) {
                ScatterPart<width()>(steps, operands, begin, end);
              });
}

}  // namespace tensord::core
