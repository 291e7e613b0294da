// Reductions along a mode: cumulative ones, and indices that sort.
#include <array>
#include <cstring>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/ops/type_tables.h"
#include "tests/conformance/kernel_conformance.h"
#include "tests/testing/operands.h"

namespace tensord::test {
namespace {

using core::BinaryOperator;
using core::ElementType;
using core::ReductionTypes;
using core::Sorting;
using core::UnaryOperator;

constexpr std::array kOperators = {BinaryOperator::kAdd, BinaryOperator::kMul,
                                   BinaryOperator::kMax, BinaryOperator::kMin};
constexpr std::array kOrders = {Sorting::kAscending, Sorting::kDescending};

Case<core::ReductionDesc> Cumulative(BinaryOperator op,
                                     const ReductionTypes& types,
                                     core::OperandDesc a, core::OperandDesc d,
                                     char along) {
  return {.desc = {.a = std::move(a),
                   .c = std::nullopt,
                   .d = std::move(d),
                   .op = op,
                   .compute_type = types.compute,
                   .along = core::Along{along}},
          .data_a = op == BinaryOperator::kMul ? DataKind::kNearOne
                                               : DataKind::kUniform};
}

Case<core::ReductionDesc> Sorted(Sorting sorting, core::OperandDesc a,
                                 core::OperandDesc d, char along,
                                 DataKind data) {
  return {.desc = {.a = std::move(a),
                   .c = std::nullopt,
                   .d = std::move(d),
                   .compute_type = core::ComputeType::kInteger,
                   .along = core::Along{along, sorting}},
          .data_a = data};
}

TEST_P(KernelConformance, AddsUpAlongEveryMode) {
  for (const ReductionTypes& types : core::ReductionTypeTable()) {
    for (const BinaryOperator op : kOperators) {
      if (!core::ValidateBinary(op, types.a).ok()) continue;
      for (const char along : {'i', 'j', 'k'}) {
        const auto a = Packed(types.a, "ijk", {37, 5, 19});
        runner_.Check(Cumulative(op, types, a,
                                 Packed(types.c, "ijk", {37, 5, 19}), along));
        runner_.Check(Cumulative(op, types, a,
                                 Packed(types.c, "kji", {19, 5, 37}), along));
      }
    }
  }
}

// Around the lengths at which kernels change what they do.
TEST_P(KernelConformance, AddsUpAlongModesOfAnyLength) {
  constexpr std::array kTypes = {ElementType::kFloat32,
                                 ElementType::kComplex128,
                                 ElementType::kFloat16, ElementType::kInt8};
  for (const int64_t extent : {1, 2, 31, 33, 255, 256, 1025, 2050, 4100}) {
    for (const ElementType type : kTypes) {
      const ReductionTypes types{type, type, core::DefaultComputeType(type)};
      for (const BinaryOperator op :
           {BinaryOperator::kAdd, BinaryOperator::kMul}) {
        const auto check = [&](absl::string_view modes,
                               const core::ModeVector& extents) {
          runner_.Check(Cumulative(op, types, Packed(type, modes, extents),
                                   Packed(type, modes, extents), 'i'));
        };
        check("i", {extent});
        check("ij", {extent, 3});
        check("ji", {3, extent});
        check("ji", {40, extent});
      }
    }
  }
}

// So long that the mode is cut into chunks.
TEST_P(KernelConformance, AddsUpAlongLongModes) {
  for (const ElementType type : {ElementType::kFloat32, ElementType::kInt64}) {
    const ReductionTypes types{type, type, core::DefaultComputeType(type)};
    for (const char* modes : {"i", "ij", "ji"}) {
      core::ModeVector extents;
      for (const char* mode = modes; *mode != 0; ++mode) {
        extents.push_back(*mode == 'j' ? 3 : 200'001);
      }
      for (const BinaryOperator op :
           {BinaryOperator::kAdd, BinaryOperator::kMax}) {
        runner_.Check(Cumulative(op, types, Packed(type, modes, extents),
                                 Packed(type, modes, extents), 'i'));
      }
    }
  }
}

TEST_P(KernelConformance, AddsUpByStridesFactorsAndOperators) {
  for (const ReductionTypes& types : core::ReductionTypeTable()) {
    auto sums = Cumulative(BinaryOperator::kAdd, types,
                           Strided(types.a, "ij", {300, 7}, {3, 1000}),
                           Strided(types.c, "ji", {7, 300}, {2, 15}), 'i');
    runner_.Check(sums);
    sums.desc.c = Strided(types.c, "ji", {7, 300}, {301, 1});
    sums.alpha = {-2, 0};
    sums.beta = {3, 0};
    runner_.Check(sums);
    sums.desc.c = sums.desc.d;
    sums.alias = Alias::kDIsC;
    runner_.Check(sums);
    sums.alpha = core::kZero;
    runner_.Check(sums);
    sums.alpha = core::kOne;
    sums.desc.a.unary = UnaryOperator::kAbs;
    sums.desc.c->unary = UnaryOperator::kNeg;
    if (!core::ValidateUnary(UnaryOperator::kNeg, types.c, "c").ok()) continue;
    runner_.Check(sums);
    // Along a mode that repeats, and of nothing.
    runner_.Check(Cumulative(BinaryOperator::kAdd, types,
                             Strided(types.a, "ij", {70, 3}, {1, 1}),
                             Packed(types.c, "ij", {70, 3}), 'j'));
    runner_.Check(Cumulative(BinaryOperator::kAdd, types,
                             Packed(types.a, "ij", {0, 3}),
                             Packed(types.c, "ij", {0, 3}), 'i'));
  }
}

TEST_P(KernelConformance, PassesOnWhatIsNoNumber) {
  for (const ElementType type :
       {ElementType::kFloat32, ElementType::kFloat64, ElementType::kBfloat16}) {
    const ReductionTypes types{type, type, core::DefaultComputeType(type)};
    for (const BinaryOperator op : kOperators) {
      auto some = Cumulative(op, types, Packed(type, "ij", {301, 3}),
                             Packed(type, "ij", {301, 3}), 'i');
      some.data_a = DataKind::kSparseNan;
      runner_.Check(some);
      some.desc.along->mode = 'j';
      runner_.Check(some);
    }
  }
}

TEST_P(KernelConformance, SortsEveryType) {
  for (const auto& [type, index, compute] : core::SortingTypeTable()) {
    for (const Sorting sorting : kOrders) {
      for (const char along : {'i', 'j', 'k'}) {
        runner_.Check(Sorted(sorting, Packed(type, "ijk", {37, 5, 19}),
                             Packed(ElementType::kInt64, "ijk", {37, 5, 19}),
                             along, DataKind::kUniform));
        runner_.Check(Sorted(sorting, Packed(type, "ijk", {37, 5, 19}),
                             Packed(ElementType::kInt64, "kij", {19, 37, 5}),
                             along, DataKind::kSmallIntegers));
      }
    }
  }
}

TEST_P(KernelConformance, SortsModesOfAnyLength) {
  constexpr std::array kTypes = {ElementType::kFloat32, ElementType::kFloat64,
                                 ElementType::kInt64};
  for (const int64_t extent :
       {1, 2, 31, 128, 129, 256, 257, 2048, 2049, 4999}) {
    for (const ElementType type : kTypes) {
      for (const char* modes : {"i", "ij", "ji"}) {
        core::ModeVector extents;
        for (const char* mode = modes; *mode != 0; ++mode) {
          extents.push_back(*mode == 'j' ? 3 : extent);
        }
        const bool has_nan = type != ElementType::kInt64;
        for (const DataKind data :
             {has_nan ? DataKind::kSparseNan : DataKind::kUniform,
              DataKind::kSmallIntegers}) {
          runner_.Check(
              Sorted(data == DataKind::kSmallIntegers ? Sorting::kDescending
                                                      : Sorting::kAscending,
                     Packed(type, modes, extents),
                     Packed(ElementType::kInt64, modes, extents), 'i', data));
        }
      }
    }
  }
}

TEST_P(KernelConformance, SortsByStridesAndFactors) {
  for (const ElementType type : {ElementType::kFloat16, ElementType::kUint8}) {
    auto sorted =
        Sorted(Sorting::kAscending, Strided(type, "ij", {130, 7}, {3, 1000}),
               Strided(ElementType::kInt64, "ji", {7, 130}, {2, 15}), 'i',
               DataKind::kSmallIntegers);
    runner_.Check(sorted);
    sorted.desc.c = Strided(ElementType::kInt64, "ji", {7, 130}, {131, 1},
                            UnaryOperator::kNeg);
    sorted.alpha = {-2, 0};
    sorted.beta = {3, 0};
    runner_.Check(sorted);
    sorted.alpha = core::kZero;
    runner_.Check(sorted);
    sorted.desc.c = sorted.desc.d;
    sorted.alias = Alias::kDIsC;
    sorted.alpha = core::kOne;
    runner_.Check(sorted);
    runner_.Check(Sorted(Sorting::kAscending, Packed(type, "ij", {0, 3}),
                         Packed(ElementType::kInt64, "ij", {0, 3}), 'i',
                         DataKind::kUniform));
  }
}

template <typename Bits>
std::vector<std::byte> BytesOf(const std::vector<Bits>& bits) {
  std::vector<std::byte> bytes(bits.size() * sizeof(Bits));
  std::memcpy(bytes.data(), bits.data(), bytes.size());
  return bytes;
}

// NaN of either sign, zeros of either sign, infinities, what is subnormal, and
// the ends of ranges of integers.
TEST_P(KernelConformance, SortsSpecialNumbers) {
  const auto check = [&](ElementType type, const auto& bits) {
    const auto count = static_cast<int64_t>(bits.size());
    for (const Sorting sorting : kOrders) {
      auto sorted = Sorted(sorting, Packed(type, "i", {count}),
                           Packed(ElementType::kInt64, "i", {count}), 'i',
                           DataKind::kUniform);
      sorted.bits_of_a = BytesOf(bits);
      runner_.Check(sorted);
    }
  };
  check(ElementType::kFloat32,
        std::vector<uint32_t>{0x7fc00000, 0x80000000, 0xffc00001, 0, 0x7f800000,
                              0xff800000, 1, 0x80000001, 0x80000000, 0x3f800000,
                              0xbf800000, 0x7f7fffff, 0xff7fffff, 0x7f800001});
  check(ElementType::kFloat64,
        std::vector<uint64_t>{0x7ff8000000000000, 0x8000000000000000, 0,
                              0xfff8000000000001, 0x7ff0000000000000,
                              0xfff0000000000000, 1, 0x8000000000000001,
                              0x3ff0000000000000, 0xbff0000000000000, 0});
  check(ElementType::kFloat16,
        std::vector<uint16_t>{0x7e00, 0x8000, 0, 0xfe01, 0x7c00, 0xfc00, 1,
                              0x8001, 0x3c00, 0xbc00, 0x7bff, 0xfbff, 0x7c01});
  check(ElementType::kBfloat16,
        std::vector<uint16_t>{0x7fc0, 0x8000, 0, 0xffc1, 0x7f80, 0xff80, 1,
                              0x8001, 0x3f80, 0xbf80, 0x7f7f, 0xff7f, 0x7f81});
  check(ElementType::kInt64,
        std::vector<uint64_t>{0, 0x8000000000000000, 0x7fffffffffffffff, 1,
                              0xffffffffffffffff, 0x100000000, 0});
  check(ElementType::kInt8, std::vector<uint8_t>{0, 0x80, 0x7f, 0xff, 1, 0x80});
  check(ElementType::kUint8,
        std::vector<uint8_t>{0, 0x80, 0x7f, 0xff, 1, 0x80});
}

}  // namespace
}  // namespace tensord::test
