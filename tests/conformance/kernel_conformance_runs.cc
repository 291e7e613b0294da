// Runs of neighbouring elements of every length, aligned and not: kernels take
// them in wide accesses, and what is left over otherwise.
#include <array>
#include <random>
#include <vector>

#include "core/ops/type_tables.h"
#include "tests/conformance/kernel_conformance.h"
#include "tests/testing/case_share.h"
#include "tests/testing/operands.h"

namespace tensord::test {
namespace {

using core::BinaryOperator;
using core::ElementType;
using core::UnaryOperator;

// Around the widths of accesses, of warps and of blocks, for elements of every
// size.
constexpr std::array<int64_t, 30> kLengths = {
    1,   2,   3,   4,   5,   7,    8,    9,    15,   16,
    17,  31,  32,  33,  63,  64,   127,  128,  129,  130,
    255, 256, 257, 511, 513, 1000, 1025, 2049, 4095, 4097};
// From which on lengths are tried on few runs only.
constexpr int64_t kLong = 600;

/// The operators in turn that elements of `type` may be reduced by.
BinaryOperator OperatorInTurn(ElementType type, uint32_t& turn) {
  constexpr uint32_t kReducing =
      static_cast<uint32_t>(BinaryOperator::kMin) + 1;
  while (true) {
    const auto op = static_cast<BinaryOperator>(turn++ % kReducing);
    if (core::ValidateBinary(op, type).ok()) return op;
  }
}

/// Calls `visit` for each type row of reductions with its operators in turn;
/// `number` is another one each time.
template <typename Visitor>
void ForEachReduction(Visitor&& visit) {
  uint32_t number = 0;
  for (const auto& types : core::ReductionTypeTable()) {
    for (const int64_t length : kLengths) {
      const BinaryOperator op = OperatorInTurn(types.a, number);
      visit(types, length, op, number);
    }
  }
}

DataKind DataFor(BinaryOperator op) {
  return op == BinaryOperator::kMul ? DataKind::kNearOne : DataKind::kUniform;
}

TEST_P(KernelConformance, ReducesRowsOfEveryLength) {
  ForEachReduction([&](const auto& types, int64_t length, BinaryOperator op,
                       uint32_t number) {
    for (const int64_t rows : {1, 3, 33}) {
      if (length > kLong && rows > 3) continue;
      // Packed, and with rows that begin at multiples of 16 elements.
      for (const int64_t pitch : {length, (length + 31) / 16 * 16}) {
        Case<core::ReductionDesc> sums{
            .desc = {.a = Strided(types.a, "ij", {length, rows}, {1, pitch}),
                     .c = std::nullopt,
                     .d = Packed(types.c, "j", {rows}),
                     .op = op,
                     .compute_type = types.compute},
            .data_a = DataFor(op),
            .seed = number + static_cast<uint32_t>(rows)};
        if (number % 3 == 0) {
          sums.desc.c = Strided(types.c, "j", {rows}, {2});
          sums.alpha = {2, 0};
          sums.beta = {-1, 0};
        }
        runner_.Check(sums);
      }
    }
  });
}

TEST_P(KernelConformance, ReducesColumnsOfEveryLength) {
  ForEachReduction([&](const auto& types, int64_t length, BinaryOperator op,
                       uint32_t number) {
    for (const int64_t rows : {1, 3, 37}) {
      if (length > kLong && rows > 3) continue;
      // The length is that of the columns, or of what they are reduced along.
      for (const bool is_long_sum : {false, true}) {
        const int64_t kept = is_long_sum ? rows : length;
        const int64_t reduced = is_long_sum ? length : rows;
        for (const int64_t pitch : {kept, (kept + 31) / 16 * 16}) {
          Case<core::ReductionDesc> sums{
              .desc = {.a = Strided(types.a, "ij", {kept, reduced}, {1, pitch}),
                       .c = std::nullopt,
                       .d = Packed(types.c, "i", {kept}),
                       .op = op,
                       .compute_type = types.compute},
              .data_a = DataFor(op),
              .seed = number + static_cast<uint32_t>(rows)};
          if (number % 3 == 1) {
            sums.desc.c = Strided(types.c, "i", {kept}, {2});
            sums.alpha = {2, 0};
            sums.beta = {-1, 0};
          }
          runner_.Check(sums);
        }
      }
    }
  });
}

// Runs of both kinds in one operand, and modes of d in another order.
TEST_P(KernelConformance, ReducesSeveralModesAroundRuns) {
  for (const auto& types : core::ReductionTypeTable()) {
    for (const int64_t run : {3, 8, 16, 21, 48, 130}) {
      for (const char* kept : {"", "i", "j", "k", "ki", "lj", "il", "lkj"}) {
        core::ModeVector extents;
        for (const char* mode = kept; *mode != 0; ++mode) {
          extents.push_back(*mode == 'i'   ? run
                            : *mode == 'l' ? 7
                                           : *mode - 'h');
        }
        const int64_t pitch = (run + 15) / 16 * 16;
        for (const int64_t step : {run, pitch}) {
          runner_.Check(Case<core::ReductionDesc>{
              .desc = {.a = Strided(types.a, "ijkl", {run, 2, 3, 7},
                                    {1, step, 2 * step, 6 * step + step}),
                       .c = std::nullopt,
                       .d = Packed(types.c, kept, extents),
                       .compute_type = types.compute},
              .seed = static_cast<uint32_t>(run)});
        }
      }
    }
  }
}

TEST_P(KernelConformance, ReducesRunsThatOverlap) {
  // Each row is the one before, one element on.
  for (const auto& types : core::ReductionTypeTable()) {
    for (const char* kept : {"i", "j"}) {
      runner_.Check(Case<core::ReductionDesc>{
          .desc = {.a = Strided(types.a, "ij", {48, 64}, {1, 1}),
                   .c = std::nullopt,
                   .d = Packed(types.c, kept, {*kept == 'i' ? 48 : 64}),
                   .compute_type = types.compute}});
    }
  }
}

TEST_P(KernelConformance, ReducesFewColumnsAndManyShortRows) {
  constexpr int64_t kMany = 20'011;
  for (const ElementType type :
       {ElementType::kFloat16, ElementType::kFloat32, ElementType::kFloat64,
        ElementType::kComplex64, ElementType::kInt32, ElementType::kInt8}) {
    for (const int64_t few : {1, 2, 3, 5, 8}) {
      for (const auto& extents :
           {core::ModeVector{few, kMany}, core::ModeVector{kMany, few}}) {
        for (const char* kept : {"i", "j"}) {
          runner_.Check(Case<core::ReductionDesc>{
              .desc = {.a = Packed(type, "ij", extents),
                       .c = std::nullopt,
                       .d = Packed(type, kept, {extents[*kept == 'j']}),
                       .compute_type = core::DefaultComputeType(type)},
              .data_a = DataKind::kPositive,
              .seed = static_cast<uint32_t>(few)});
        }
      }
    }
  }
}

// So long that threads of a small GPU add in more than one level.
TEST_P(KernelConformance, ReducesLongRunsInSeveralLevels) {
  constexpr auto kC128 = ElementType::kComplex128;
  constexpr auto kF64 = ElementType::kFloat64;
  runner_.Check(Case<core::ReductionDesc>{
      .desc = {.a = Packed(kC128, "i", {600'011}),
               .c = std::nullopt,
               .d = Packed(kC128, "", {}),
               .compute_type = core::ComputeType::kFloat64},
      .data_a = DataKind::kPositive});
  runner_.Check(Case<core::ReductionDesc>{
      .desc = {.a = Packed(kF64, "ij", {2048, 601}),
               .c = std::nullopt,
               .d = Packed(kF64, "i", {2048}),
               .compute_type = core::ComputeType::kFloat64},
      .data_a = DataKind::kPositive});
}

// The order of additions is that of the problem, whatever the address.
TEST_P(KernelConformance, ReductionsGiveTheSameBitsAtEveryAddress) {
  constexpr int64_t kRows = 517, kColumns = 208;
  for (const ElementType type :
       SomeOf<ElementType>({ElementType::kFloat32, ElementType::kFloat16,
                            ElementType::kFloat64, ElementType::kComplex64},
                           1)) {
    SCOPED_TRACE(core::NameOf(type));
    const ElementType part = core::RealPartOf(type);
    const auto part_bytes = static_cast<size_t>(core::SizeOf(part));
    std::mt19937 rng(7);
    std::vector<std::byte> bits(
        static_cast<size_t>(kRows * kColumns * core::SizeOf(type)));
    for (size_t at = 0; at < bits.size(); at += part_bytes) {
      StoreNumber(part, std::uniform_real_distribution<double>(-1, 1)(rng),
                  &bits[at]);
    }
    for (const char* kept : {"", "i", "j"}) {
      core::ModeVector extents;
      if (*kept != 0) extents.push_back(*kept == 'i' ? kColumns : kRows);
      Case<core::ReductionDesc> sums{
          .desc = {.a = Packed(type, "ij", {kColumns, kRows}),
                   .c = std::nullopt,
                   .d = Packed(type, kept, extents),
                   .compute_type = core::DefaultComputeType(type)},
          .bits_of_a = bits};
      const KernelRunner::Images images = runner_.Run(sums);
      // Seeds draw how far from a multiple of 16 bytes operands lie.
      for (sums.seed = 1; sums.seed < 6; ++sums.seed) {
        EXPECT_EQ(images, runner_.Run(sums)) << "seed " << sums.seed;
      }
    }
  }
}

TEST_P(KernelConformance, ComputesRunsOfEveryLength) {
  uint32_t turn = 0;
  uint32_t number = 0;
  for (const auto& types : core::ElementwiseTypeTable()) {
    for (const int64_t length : kLengths) {
      // b is there whole, broadcast along either mode, or not at all.
      for (const char* modes_of_b : {"ij", "i", "j", "-"}) {
        ++number;
        const int64_t rows = length > kLong ? 2 : 5;
        // Packed, and with rows that begin at multiples of 16 elements.
        const int64_t pitch =
            number % 2 == 0 ? length : (length + 31) / 16 * 16;
        const core::ModeVector extents = {length, rows};
        const auto whole = [&](ElementType type) {
          return Strided(type, "ij", extents, {1, pitch});
        };
        Case<core::ElementwiseDesc> random{
            .desc = {.a = whole(types.a),
                     .c = whole(types.c),
                     .d = whole(types.c),
                     .op_abc = OperatorInTurn(types.c, turn),
                     .compute_type = types.compute},
            .beta = core::kOne,
            .gamma = core::kOne,
            .seed = number};
        core::ElementwiseDesc& desc = random.desc;
        if (*modes_of_b != '-') {
          desc.op_ab = OperatorInTurn(types.c, turn);
          desc.b = modes_of_b[1] != 0
                       ? whole(types.b)
                       : Packed(types.b, modes_of_b,
                                {*modes_of_b == 'i' ? length : rows});
        }
        if (number % 3 == 0) random.alpha = {-2, 0};
        if (number % 5 == 0) random.gamma = {3, 0};
        if (number % 7 == 0) desc.c.unary = UnaryOperator::kNeg;
        if (number % 11 == 0) random.beta = core::kZero;
        if (number % 4 == 0) random.alias = Alias::kDIsC;
        runner_.Check(random);
      }
    }
  }
}

/// `op`, which does not reduce, of rows of `length`, which lie in a as
/// `modes_a` says.
Case<core::ElementwiseDesc> RowsJoined(const core::ElementwiseTypes& types,
                                       BinaryOperator op, int64_t length,
                                       absl::string_view modes_a) {
  constexpr int64_t kRows = 5;
  const auto packed = [&](ElementType type, absl::string_view modes) {
    core::ModeVector extents;
    for (const char mode : modes)
      extents.push_back(mode == 'i' ? length : kRows);
    return Packed(type, modes, extents);
  };
  const bool is_steep =
      op == BinaryOperator::kDiv || op == BinaryOperator::kPow;
  const DataKind data = is_steep && !core::IsInteger(types.c)
                            ? DataKind::kAboveOne
                            : DataKind::kSmallIntegers;
  Case<core::ElementwiseDesc> rows{
      .desc = {.a = packed(types.a, modes_a),
               .c = packed(types.c, length % 2 == 0 ? "ij" : "j"),
               .d = packed(
                   core::IsComparison(op) ? ElementType::kBool : types.c, "ij"),
               .op_abc = op,
               .compute_type = types.compute},
      .beta = core::kOne,
      .gamma = core::kOne,
      .data_a = data,
      .data_c = data,
      .seed = static_cast<uint32_t>(length)};
  if (op == BinaryOperator::kWhere) {
    rows.desc.b = packed(ElementType::kBool, length % 3 == 0 ? "ji" : "i");
  }
  return rows;
}

TEST_P(KernelConformance, DividesComparesAndChooses) {
  for (const auto& types : core::ElementwiseTypeTable()) {
    for (int i = 0; i < core::kBinaryOperatorCount; ++i) {
      const auto op = static_cast<BinaryOperator>(i);
      if (core::Reduces(op) || op == BinaryOperator::kTake ||
          !core::ValidateBinary(op, types.c).ok()) {
        continue;
      }
      for (const int64_t length : {1, 17, 64, 129, 1026}) {
        for (const char* modes_a : {"ij", "ji", "i", ""}) {
          runner_.Check(RowsJoined(types, op, length, modes_a));
        }
      }
    }
  }
}

TEST_P(KernelConformance, ComputesWithStridesAlongTheRun) {
  for (const auto& types : core::ElementwiseTypeTable()) {
    for (const int64_t length : {1, 7, 64, 65, 200}) {
      runner_.Check(Case<core::ElementwiseDesc>{
          .desc = {.a = Strided(types.a, "ij", {length, 4}, {2, 2 * length}),
                   .c = Strided(types.c, "ij", {length, 4}, {1, length}),
                   .d = Strided(types.c, "ij", {length, 4}, {3, 3 * length}),
                   .compute_type = types.compute},
          .gamma = core::kOne,
          .seed = static_cast<uint32_t>(length)});
    }
  }
}

}  // namespace
}  // namespace tensord::test
