// Operands in few words, for problems that are written out.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/ops/operand.h"

namespace tensord::test {

/// A packed operand, first mode fastest, its modes the letters of `modes`.
inline core::OperandDesc Packed(
    core::ElementType type, absl::string_view modes, core::ModeVector extents,
    core::UnaryOperator unary = core::UnaryOperator::kIdentity) {
  return {type, core::PackedLayout(extents, core::Order::kFirstModeFastest),
          core::Modes(modes.begin(), modes.end()), unary};
}

/// The same with the extents of modes by their letters.
inline core::OperandDesc PackedBy(const std::map<char, int64_t>& extents,
                                  core::ElementType type,
                                  absl::string_view modes) {
  core::ModeVector sizes;
  for (const char mode : modes) sizes.push_back(extents.at(mode));
  return Packed(type, modes, std::move(sizes));
}

/// The same with strides of one's own.
inline core::OperandDesc Strided(
    core::ElementType type, absl::string_view modes, core::ModeVector extents,
    core::ModeVector strides,
    core::UnaryOperator unary = core::UnaryOperator::kIdentity) {
  return {type,
          {std::move(extents), std::move(strides)},
          core::Modes(modes.begin(), modes.end()),
          unary};
}

}  // namespace tensord::test
