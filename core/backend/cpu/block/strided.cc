#include "core/backend/cpu/block/strided.h"

#include <algorithm>
#include <cstring>

#include "core/backend/cpu/block/loop_runs.h"
#include "core/backend/cpu/block/transpose_block.h"

namespace tensord::core {
namespace {

template <typename Element>
void CopyRun(const Element* from, int64_t from_stride, Element* to,
             int64_t to_stride, int64_t count) {
  if (from_stride == 1 && to_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(Element));
  } else if (from_stride == -1 && to_stride == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[-i];
  } else {
    for (int64_t i = 0; i < count; ++i) {
      to[i * to_stride] = from[i * from_stride];
    }
  }
}

}  // namespace

void Fill(ThreadPool& threads, const FillOperands& operands) {
  VisitWord(operands.element_bytes, [&](auto value) {
    using Element = decltype(value);
    std::memcpy(&value, operands.value.data(), sizeof value);
    auto* const d = static_cast<Element*>(operands.d);
    ForEachRun(threads, operands.modes,
               [&](const auto& offsets, const auto& strides, int64_t count) {
                 Element* const to = d + offsets[0];
                 if (strides[0] == 1) {
                   std::fill_n(to, count, value);
                   return;
                 }
                 for (int64_t i = 0; i < count; ++i) to[i * strides[0]] = value;
               });
  });
}

void Copy(ThreadPool& threads, const CopyOperands& operands) {
  constexpr size_t kA = CopyOperands::kA, kD = CopyOperands::kD;
  VisitWord(operands.element_bytes, [&](auto zero) {
    using Element = decltype(zero);
    const auto* const a = static_cast<const Element*>(operands.a);
    auto* const d = static_cast<Element*>(operands.d);
    ForEachRun(threads, operands.modes,
               [&](const auto& offsets, const auto& strides, int64_t count) {
                 CopyRun(a + offsets[kA], strides[kA], d + offsets[kD],
                         strides[kD], count);
               });
  });
}

}  // namespace tensord::core
