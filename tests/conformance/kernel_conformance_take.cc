// Elements that are taken by indices: of every type, from every side.
#include <array>

#include "absl/strings/string_view.h"
#include "core/ops/type_tables.h"
#include "tests/conformance/kernel_conformance.h"
#include "tests/testing/operands.h"

namespace tensord::test {
namespace {

using core::BinaryOperator;
using core::ElementType;
using core::UnaryOperator;

constexpr std::array kIndexTypes = {ElementType::kInt8, ElementType::kInt16,
                                    ElementType::kInt32, ElementType::kInt64,
                                    ElementType::kUint8};

/// Mode z, of `taken` elements, is that which is taken from, i has `length`,
/// and j and k have few.
struct TakeShape {
  int64_t length, taken;

  core::OperandDesc Of(ElementType type, absl::string_view modes) const {
    core::ModeVector extents;
    for (const char mode : modes) {
      extents.push_back(mode == 'i'   ? length
                        : mode == 'z' ? taken
                        : mode == 'j' ? 5
                                      : 3);
    }
    return Packed(type, modes, extents);
  }
};

Case<core::ElementwiseDesc> Taken(const core::ElementwiseTypes& types,
                                  ElementType index, const TakeShape& shape,
                                  absl::string_view a, absl::string_view b,
                                  absl::string_view d) {
  return {.desc = {.a = shape.Of(types.a, a),
                   .b = shape.Of(index, b),
                   .c = shape.Of(types.c, d),
                   .d = shape.Of(types.c, d),
                   .op_abc = BinaryOperator::kTake,
                   .compute_type = types.compute},
          .beta = core::kOne,
          .gamma = core::kZero,
          .data_b = DataKind::kSmallIntegers,
          .seed = static_cast<uint32_t>(shape.length)};
}

TEST_P(KernelConformance, TakesByIndices) {
  struct Modes {
    absl::string_view a, b, d;
  };
  constexpr std::array<Modes, 8> kModes = {{{"iz", "j", "ij"},    // rows
                                            {"zi", "j", "ij"},    // columns
                                            {"iz", "j", "ji"},    // turned
                                            {"z", "i", "i"},      // a table
                                            {"izj", "ij", "ij"},  // one each
                                            {"jz", "", "j"},      // one for all
                                            {"kzi", "ji", "jik"},  // in between
                                            {"z", "jk", "ikj"}}};  // repeated
  for (const auto& types : core::ElementwiseTypeTable()) {
    size_t turn = 0;
    for (const int64_t length : {1, 7, 64, 1030}) {
      for (const Modes& modes : kModes) {
        // Indices are from -9 to 9: all are there.
        auto taken = Taken(types, kIndexTypes[turn++ % 4], {length, 10},
                           modes.a, modes.b, modes.d);
        runner_.Check(taken);
        taken.alpha = {-2, 0};
        runner_.Check(taken);
        // Not all, and c stands for those that are not.
        taken = Taken(types, kIndexTypes[turn++ % 5], {length, 4}, modes.a,
                      modes.b, modes.d);
        taken.gamma = core::kOne;
        runner_.Check(taken);
        taken.alias = Alias::kDIsC;
        taken.alpha = core::kZero;
        taken.beta = {-1, 0};
        runner_.Check(taken);
      }
    }
  }
}

TEST_P(KernelConformance, TakesFromStridesAndByOperators) {
  for (const auto& types : core::ElementwiseTypeTable()) {
    auto taken = Taken(types, ElementType::kInt32, {65, 12}, "iz", "ij", "ij");
    taken.desc.a = Strided(types.a, "iz", {65, 12}, {2, 131});
    taken.desc.d = Strided(types.c, "ij", {65, 5}, {6, 1});
    runner_.Check(taken);
    taken.desc.b->unary = UnaryOperator::kAbs;
    taken.desc.a.unary = UnaryOperator::kNeg;
    if (!core::ValidateUnary(UnaryOperator::kNeg, types.a, "a").ok()) continue;
    runner_.Check(taken);
    // From nothing nothing is taken but c; and nothing may be taken of much.
    taken = Taken(types, ElementType::kInt64, {33, 0}, "iz", "ij", "ij");
    taken.gamma = core::kOne;
    runner_.Check(taken);
    runner_.Check(Taken(types, ElementType::kInt64, {0, 5}, "iz", "ij", "ij"));
  }
}

}  // namespace
}  // namespace tensord::test
