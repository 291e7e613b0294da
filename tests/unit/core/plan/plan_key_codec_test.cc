#include "core/plan/plan_key_codec.h"

#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/plan/check_problem.h"
#include "gtest/gtest.h"
#include "tests/unit/core/plan/fake_backend.h"
#include "tests/unit/core/plan/random_key.h"

namespace tensord::core {
namespace {

using tensord::test::RandomKey;
using tensord::test::Transpose;

constexpr uint32_t kSeeds = 4000;

PlanKey KeyOf(const AnyProblem& problem) {
  return {.problem = problem, .device = "fake:0"};
}

/// Malformed, or another key's bytes: never a second spelling.
void ExpectRefusedOrFaithful(const std::string& bytes) {
  const auto key = DecodePlanKey(bytes);
  if (key.ok()) {
    ASSERT_EQ(EncodePlanKey(*key), bytes);
    ASSERT_TRUE(CheckProblem(key->problem).ok());
  } else {
    ASSERT_EQ(key.status().code(), absl::StatusCode::kInvalidArgument);
    ASSERT_EQ(ReasonOf(key.status()), "PLAN_KEY_MALFORMED");
  }
}

TEST(PlanKeyCodecTest, KeysOfAllKindsComeBackEqual) {
  std::array<int, std::variant_size_v<AnyProblem>> kinds = {};
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const PlanKey key = RandomKey(rng);
    const auto decoded = DecodePlanKey(EncodePlanKey(key));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    ASSERT_EQ(*decoded, key);
    ASSERT_EQ(EncodePlanKey(*decoded), EncodePlanKey(key));
    ++kinds[key.problem.index()];
  }
  for (const int count : kinds) EXPECT_GT(count, 0);
}

TEST(PlanKeyCodecTest, KeysAreEqualWhenTheirBytesAre) {
  std::map<std::string, PlanKey> keys;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    std::mt19937 rng(seed);
    const PlanKey key = RandomKey(rng);
    const auto [entry, inserted] = keys.emplace(EncodePlanKey(key), key);
    ASSERT_EQ(entry->second, key) << seed;
  }
  EXPECT_GT(keys.size(), 3000u);
}

// Plans that were stored before there were others stay good.
TEST(PlanKeyCodecTest, ReductionsAlongAModeAreOfAnotherKind) {
  const ReductionProblem plain{.kept = {{4, {1, 1, 1}}}, .reduced = {}};
  ReductionProblem along = plain;
  along.along = {5, {4, 4, 4}};
  ReductionProblem other = along;
  other.along.extent = 6;
  const std::string bytes = EncodePlanKey(KeyOf(plain));
  EXPECT_EQ(bytes[1], 2);
  EXPECT_EQ(EncodePlanKey(KeyOf(along))[1], 7);
  EXPECT_NE(EncodePlanKey(KeyOf(along)), EncodePlanKey(KeyOf(other)));
  EXPECT_EQ(DecodePlanKey(EncodePlanKey(KeyOf(along)))->problem,
            AnyProblem(along));
  std::string spoilt = EncodePlanKey(KeyOf(other));
  ExpectRefusedOrFaithful(spoilt.replace(1, 1, 1, 2));
}

TEST(PlanKeyCodecTest, SamplesAndExponentialsAreOfOtherKinds) {
  const FactorizationProblem svd{.method = FactorizationMethod::kSvd,
                                 .rows = {{9, {1, 1}}},
                                 .columns = {{8, {9, 1}}},
                                 .inner_extent = 2,
                                 .inner_stride_left = 9,
                                 .inner_stride_right = 8};
  FactorizationProblem sampled = svd;
  sampled.sampled = 5;
  FactorizationProblem iterated = sampled;
  iterated.power_iterations = 1;
  const LinearSolveProblem inverse{.has_b = false};
  LinearSolveProblem exponential = inverse;
  exponential.function = MatrixFunction::kExponential;
  const std::pair<AnyProblem, int> kinds[] = {
      {svd, 5}, {sampled, 9}, {iterated, 9}, {inverse, 6}, {exponential, 8}};
  std::set<std::string> all;
  for (const auto& [problem, kind] : kinds) {
    std::string bytes = EncodePlanKey(KeyOf(problem));
    EXPECT_EQ(bytes[1], kind);
    EXPECT_EQ(DecodePlanKey(bytes)->problem, problem);
    EXPECT_TRUE(all.insert(bytes).second);
    for (char other = 0; other < 10; ++other) {
      ExpectRefusedOrFaithful(bytes.replace(1, 1, 1, other));
    }
  }
}

TEST(PlanKeyCodecTest, EveryFieldChangesTheBytes) {
  const PlanKey key = KeyOf(Transpose());
  std::vector<PlanKey> others(6, key);
  others[0].device = "fake:1";
  others[1].workspace_limit_bytes = 0;
  others[2].workspace_limit_bytes = kNoWorkspaceLimit - 1;
  others[3].kernel = "reference";
  others[4].deterministic = true;
  others[5].selection = Selection::kIncremental;
  for (size_t i = 0; i < others.size(); ++i) {
    EXPECT_NE(EncodePlanKey(others[i]), EncodePlanKey(key)) << i;
    EXPECT_EQ(*DecodePlanKey(EncodePlanKey(others[i])), others[i]) << i;
  }
}

TEST(PlanKeyCodecTest, ManyModesAndLongNamesFit) {
  PlanKey key = KeyOf(ReductionProblem());
  auto& problem = std::get<ReductionProblem>(key.problem);
  // Every other element, mode by mode, so that no two modes merge.
  int64_t stride = 1;
  for (int i = 0; i < 20; ++i, stride *= 3) {
    problem.kept.push_back({2, {stride, stride, stride}});
  }
  key.device = std::string(kMaxKeyNameBytes, 'd');
  key.kernel = std::string(kMaxKeyNameBytes, 'k');
  const auto decoded = DecodePlanKey(EncodePlanKey(key));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, key);
  key.device.push_back('d');
  EXPECT_FALSE(DecodePlanKey(EncodePlanKey(key)).ok());
}

TEST(PlanKeyCodecTest, EveryPrefixIsRefused) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const std::string bytes = EncodePlanKey(RandomKey(rng));
    for (size_t size = 0; size < bytes.size(); ++size) {
      ASSERT_FALSE(DecodePlanKey(bytes.substr(0, size)).ok()) << size;
    }
    ASSERT_FALSE(DecodePlanKey(bytes + '\0').ok());
  }
}

TEST(PlanKeyCodecTest, EveryFlippedBitIsRefusedOrAnotherKey) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const std::string bytes = EncodePlanKey(RandomKey(rng));
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
      ASSERT_NO_FATAL_FAILURE(ExpectRefusedOrFaithful(flipped)) << bit;
    }
  }
}

TEST(PlanKeyCodecTest, NoiseIsRefusedOrAnotherKey) {
  for (uint32_t seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    std::string bytes = EncodePlanKey(RandomKey(rng));
    for (uint32_t i = 0; i < 1 + rng() % 4; ++i) {
      bytes[2 + rng() % (bytes.size() - 2)] = static_cast<char>(rng());
    }
    ASSERT_NO_FATAL_FAILURE(ExpectRefusedOrFaithful(bytes));
  }
}

TEST(PlanKeyCodecTest, OtherVersionsAreRefused) {
  std::string bytes = EncodePlanKey(KeyOf(Transpose()));
  bytes[0] = 2;
  EXPECT_EQ(ReasonOf(DecodePlanKey(bytes).status()), "PLAN_KEY_MALFORMED");
}

// An id that changes would lose every pin and every record.
TEST(PlanKeyCodecTest, IdsStayWhatTheyAre) {
  EXPECT_EQ(PlanIdText(PlanIdOf(EncodePlanKey(KeyOf(Transpose())))),
            "83228e76add820cf");
  EXPECT_NE(PlanIdOf(EncodePlanKey(KeyOf(Transpose(4, 5)))),
            PlanIdOf(EncodePlanKey(KeyOf(Transpose(5, 4)))));
}

TEST(PlanKeyCodecTest, IdsOfDifferentKeysDiffer) {
  std::map<uint64_t, std::string> ids;
  for (int64_t rows = 1; rows <= 300; ++rows) {
    for (int64_t columns = 1; columns <= 300; ++columns) {
      const std::string key = EncodePlanKey(KeyOf(Transpose(rows, columns)));
      const auto [entry, inserted] = ids.emplace(PlanIdOf(key), key);
      ASSERT_EQ(entry->second, key);
    }
  }
}

TEST(PlanKeyCodecTest, IdsAreSixteenDigits) {
  EXPECT_EQ(PlanIdText(0x12abu), "00000000000012ab");
  EXPECT_EQ(PlanIdFromText("00000000000012ab"), 0x12abu);
  EXPECT_EQ(PlanIdFromText(PlanIdText(UINT64_MAX)), UINT64_MAX);
  for (const absl::string_view text :
       {"", "12ab", "00000000000012aB", "00000000000012a ", "+000000000012ab0",
        "000000000000012ab"}) {
    EXPECT_EQ(PlanIdFromText(text), std::nullopt) << text;
  }
}

TEST(CheckProblemTest, AcceptsWhatCanonicalizeGives) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    std::mt19937 rng(seed);
    const PlanKey key = RandomKey(rng);
    ASSERT_TRUE(CheckProblem(key.problem).ok())
        << seed << ": " << CheckProblem(key.problem);
  }
}

TEST(CheckProblemTest, RefusesWhatKernelsDoNotExpect) {
  std::vector<AnyProblem> problems;
  const auto change = [&](auto problem, auto edit) {
    edit(problem);
    problems.push_back(problem);
  };
  const PermutationProblem permutation = Transpose();
  ASSERT_TRUE(CheckProblem(permutation).ok());
  const auto change_modes = [&](LoopModes<2> modes) {
    change(permutation, [&](auto& p) { p.modes = modes; });
  };
  change_modes({{4, {1, 0}}});               // d broadcast
  change_modes({{4, {1, 1}}, {5, {8, 2}}});  // d overlaps itself
  change_modes({{1, {1, 1}}});               // not dropped
  change_modes({{4, {1, 1}}, {5, {4, 4}}});  // not merged
  change_modes({{5, {1, 4}}, {4, {5, 1}}});  // not sorted
  change_modes({{-4, {1, 1}}});
  change_modes({{4, {-1, 1}}});
  change_modes({{INT64_MAX / 2, {2, 3}}});
  change_modes({{1 << 20, {0, 1}}, {INT64_MAX >> 20, {1, 1 << 20}}});
  change(permutation, [](auto& p) { p.type_a = ElementType::kComplex64; });
  change(permutation, [](auto& p) { p.unary = UnaryOperator::kReal; });
  change(permutation, [](auto& p) { p.unary = UnaryOperator::kConj; });
  change(permutation, [](auto& p) { p.alignment_bytes = 16; });
  change(permutation, [](auto& p) {
    p.is_move = true;
    p.alignment_bytes = 12;
  });
  change(permutation, [](auto& p) {
    p.is_move = true;
    p.unary = UnaryOperator::kNeg;
  });
  const ElementwiseProblem elementwise{
      .types = {ElementType::kFloat32, ElementType::kFloat32,
                ElementType::kFloat32, ElementType::kFloat32},
      .modes = {{4, {1, 0, 1, 1}}}};
  ASSERT_TRUE(CheckProblem(elementwise).ok()) << CheckProblem(elementwise);
  change(elementwise, [](auto& p) { p.modes = {{4, {1, 1, 1, 1}}}; });
  change(elementwise, [](auto& p) { p.op_ab = BinaryOperator::kMax; });
  change(elementwise, [](auto& p) { p.types[3] = ElementType::kFloat64; });
  change(elementwise, [](auto& p) { p.op_abc = BinaryOperator::kLess; });
  change(elementwise, [](auto& p) { p.op_abc = BinaryOperator::kWhere; });
  ElementwiseProblem take = elementwise;
  take.op_abc = BinaryOperator::kTake;
  take.types[1] = ElementType::kInt32;
  take.has_b = true;
  take.taken = {5, {4}};
  ASSERT_TRUE(CheckProblem(take).ok()) << CheckProblem(take);
  change(take, [](auto& p) { p.types[1] = ElementType::kBool; });
  change(take, [](auto& p) { p.has_b = false; });
  change(take, [](auto& p) { p.taken = {5, {-4}}; });
  change(take, [](auto& p) { p.op_ab = BinaryOperator::kMax; });
  change(take, [](auto& p) { p.op_abc = BinaryOperator::kAdd; });
  change(take, [](auto& p) { p.taken = {INT64_MAX, {4}}; });
  const ReductionProblem reduction;
  ASSERT_TRUE(CheckProblem(reduction).ok()) << CheckProblem(reduction);
  change(reduction, [](auto& p) { p.kept = {{4, {0, 1, 1}}}; });
  change(reduction, [](auto& p) { p.op = BinaryOperator::kDiv; });
  change(reduction, [](auto& p) { p.reduced = {{4, {0}}}; });
  change(reduction, [](auto& p) { p.sorting = Sorting::kAscending; });
  change(reduction, [](auto& p) { p.along = {0, {1, 1, 1}}; });
  change(reduction, [](auto& p) { p.along = {1, {1, 1, 1}}; });
  ReductionProblem along = reduction;
  along.along = {5, {3, 2, 1}};
  ASSERT_TRUE(CheckProblem(along).ok()) << CheckProblem(along);
  change(along, [](auto& p) { p.reduced = {{4, {1}}}; });
  change(along, [](auto& p) { p.along = {5, {3, 2, 0}}; });
  change(along, [](auto& p) { p.along = {INT64_MAX, {3, 2, 1}}; });
  change(along, [](auto& p) { p.kept = {{4, {1, 1, 2}}}; });
  ReductionProblem sorted = along;
  sorted.sorting = Sorting::kDescending;
  sorted.type_d = ElementType::kInt64;
  sorted.compute_type = ComputeType::kInteger;
  ASSERT_TRUE(CheckProblem(sorted).ok()) << CheckProblem(sorted);
  change(sorted, [](auto& p) { p.op = BinaryOperator::kMax; });
  change(sorted, [](auto& p) { p.unary_a = UnaryOperator::kNeg; });
  change(sorted, [](auto& p) { p.type_a = ElementType::kComplex64; });
  change(sorted, [](auto& p) { p.type_d = ElementType::kInt32; });
  const FactorizationProblem sampled{.method = FactorizationMethod::kSvd,
                                     .rows = {{9, {1, 1}}},
                                     .columns = {{8, {9, 1}}},
                                     .inner_extent = 2,
                                     .inner_stride_left = 9,
                                     .inner_stride_right = 8,
                                     .sampled = 5,
                                     .power_iterations = 2};
  ASSERT_TRUE(CheckProblem(sampled).ok()) << CheckProblem(sampled);
  change(sampled, [](auto& p) { p.sampled = 1; });
  change(sampled, [](auto& p) { p.sampled = 8; });
  change(sampled, [](auto& p) { p.sampled = 0; });
  change(sampled, [](auto& p) { p.power_iterations = -1; });
  change(sampled, [](auto& p) { p.method = FactorizationMethod::kQr; });
  const LinearSolveProblem exponential{.function = MatrixFunction::kExponential,
                                       .has_b = false,
                                       .rows = {{4, {1, 1}}},
                                       .columns = {{4, {4, 0}}},
                                       .sides = {{4, {0, 4}}}};
  ASSERT_TRUE(CheckProblem(exponential).ok()) << CheckProblem(exponential);
  change(exponential, [](auto& p) { p.function = MatrixFunction::kInverse; });
  change(exponential, [](auto& p) { p.has_b = true; });
  change(exponential,
         [](auto& p) { p.structure = MatrixStructure::kPositiveDefinite; });
  const ContractionProblem contraction;
  ASSERT_TRUE(CheckProblem(contraction).ok()) << CheckProblem(contraction);
  change(contraction, [](auto& p) { p.conj_a = true; });
  change(contraction, [](auto& p) { p.alignment_bytes = 0; });
  change(contraction, [](auto& p) { p.k = {{4, {0, 1}}}; });
  change(contraction, [](auto& p) {
    p.m = {{4, {1, 1, 1}}};
    p.n = {{4, {1, 1, 1}}};
  });
  for (size_t i = 0; i < problems.size(); ++i) {
    EXPECT_FALSE(CheckProblem(problems[i]).ok()) << i;
  }
}

}  // namespace
}  // namespace tensord::core
