#include "core/plan/plan_record.h"

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "core/base/status.h"
#include "core/plan/plan_key_codec.h"
#include "core/plan/planner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/plan/fake_backend.h"
#include "tests/unit/core/plan/random_key.h"

namespace tensord::core {
namespace {

using tensord::test::FakeBackend;
using tensord::test::RandomKey;
using tensord::test::Transpose;
using ::testing::HasSubstr;

PlanKey Key() { return {.problem = Transpose(), .device = "fake:0"}; }

FakeBackend TwoKernels() {
  return FakeBackend({{.name = "fast",
                       .nanoseconds = 10,
                       .workspace_bytes = 4096,
                       .version = 3},
                      {.name = "slow", .nanoseconds = 20}});
}

PlanRecord Record(const PlanKey& key = Key()) {
  return {.key = EncodePlanKey(key),
          .kernel = "fast",
          .kernel_version = 3,
          .predicted_nanoseconds = 11,
          .planning_nanoseconds = 5000};
}

PlanRecord RandomRecord(std::mt19937& rng) {
  PlanRecord record = Record(RandomKey(rng));
  record.selection = static_cast<Selection>(rng() % 3);
  record.measured_nanoseconds = rng() % 2 == 0 ? 0 : 1e3 / (1 + rng() % 1000);
  for (uint32_t i = 0; i < rng() % 4; ++i) {
    KernelTimes& times = record.times.emplace_back();
    times.kernel = std::string(rng() % 30, 'k');
    times.version = static_cast<int>(rng() % 300);
    for (uint32_t j = 0; j < rng() % 4; ++j) {
      times.nanoseconds.push_back(rng() / 7.0);
    }
  }
  return record;
}

std::string ReasonFor(const PlanRecord& record, const PlanKey& asked,
                      const Backend& backend = TwoKernels()) {
  const auto plan = Resolve(backend, record, asked);
  EXPECT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  return ReasonOf(plan.status());
}

TEST(PlanRecordTest, ComesBackEqual) {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const PlanRecord record = RandomRecord(rng);
    const std::string bytes = EncodePlanRecord(record);
    const auto decoded = DecodePlanRecord(bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    ASSERT_EQ(*decoded, record);
    ASSERT_EQ(KeyOfRecord(bytes), record.key);
  }
}

TEST(PlanRecordTest, EveryPrefixIsRefused) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 rng(seed);
    const std::string bytes = EncodePlanRecord(RandomRecord(rng));
    for (size_t size = 0; size < bytes.size(); ++size) {
      ASSERT_FALSE(DecodePlanRecord(bytes.substr(0, size)).ok())
          << seed << " " << size;
    }
    ASSERT_FALSE(DecodePlanRecord(bytes + '\0').ok());
  }
  EXPECT_EQ(KeyOfRecord(""), "");
  EXPECT_EQ(KeyOfRecord("\x01\x7fkey"), "");
}

TEST(PlanRecordTest, EveryFlippedBitIsRefusedOrAnotherRecord) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const std::string bytes = EncodePlanRecord(RandomRecord(rng));
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
      const auto decoded = DecodePlanRecord(flipped);
      if (decoded.ok()) {
        ASSERT_EQ(EncodePlanRecord(*decoded), flipped) << bit;
      } else {
        ASSERT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument);
      }
    }
  }
}

TEST(PlanRecordTest, TimesThatAreNoTimesAreRefused) {
  for (const double time : {-1.0, -0.0, std::nan(""), 1e300,
                            std::numeric_limits<double>::infinity()}) {
    PlanRecord record = Record();
    record.measured_nanoseconds = time;
    EXPECT_FALSE(DecodePlanRecord(EncodePlanRecord(record)).ok()) << time;
    record = Record();
    record.times = {{"fast", 1, {time}}};
    EXPECT_FALSE(DecodePlanRecord(EncodePlanRecord(record)).ok()) << time;
  }
  PlanRecord record = Record();
  record.planning_nanoseconds = int64_t{1} << 60;
  EXPECT_FALSE(DecodePlanRecord(EncodePlanRecord(record)).ok());
}

TEST(ResolveTest, GivesThePlanOfTheKernelAsItIsNow) {
  const FakeBackend backend = TwoKernels();
  PlanRecord record = Record();
  record.measured_nanoseconds = 0;
  const auto plan = Resolve(backend, record, Key());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->kernel_name(), "fast");
  EXPECT_EQ(plan->solution->decision(), "as fast was told");
  EXPECT_EQ(plan->workspace_bytes(), 4096);
  EXPECT_EQ(plan->predicted_nanoseconds(), 10);
  EXPECT_EQ(plan->selection, Selection::kHeuristic);
}

TEST(ResolveTest, KeysMustBeEqualInFull) {
  PlanKey other = Key();
  other.device = "fake:1";
  EXPECT_EQ(ReasonFor(Record(other), Key()), "PLAN_KEY_DIFFERS");
  EXPECT_THAT(
      std::string(
          Resolve(TwoKernels(), Record(other), Key()).status().message()),
      HasSubstr("device 'fake:1', asked for was 'fake:0'"));
  other = Key();
  other.problem = Transpose(5, 4);
  EXPECT_EQ(ReasonFor(Record(other), Key()), "PLAN_KEY_DIFFERS");
  other = Key();
  other.workspace_limit_bytes = 1 << 20;
  EXPECT_EQ(ReasonFor(Record(other), Key()), "PLAN_KEY_DIFFERS");
  PlanRecord lying = Record();
  lying.key = "key";
  EXPECT_EQ(ReasonFor(lying, Key()), "PLAN_KEY_DIFFERS");
}

TEST(ResolveTest, TheKernelMustBeThereInThatVersion) {
  PlanRecord record = Record();
  record.kernel = "quantum";
  EXPECT_EQ(ReasonFor(record, Key()), "PLAN_KERNEL_MISSING");
  record = Record();
  record.kernel_version = 2;
  EXPECT_EQ(ReasonFor(record, Key()), "PLAN_KERNEL_CHANGED");
}

TEST(ResolveTest, TheKernelMustSupportTheProblemWithinTheLimit) {
  const FakeBackend declining({{.name = "fast",
                                .supports = Unimplemented("NO", "too flat"),
                                .version = 3}});
  EXPECT_EQ(ReasonFor(Record(), Key(), declining), "PLAN_NOT_SUPPORTED");
  PlanKey tight = Key();
  tight.workspace_limit_bytes = 4095;
  EXPECT_EQ(ReasonFor(Record(tight), tight), "PLAN_NOT_SUPPORTED");
}

TEST(ResolveTest, TheKernelMustBeTheOneThatTheKeyNames) {
  PlanKey named = Key();
  named.kernel = "slow";
  EXPECT_EQ(ReasonFor(Record(named), named), "PLAN_KERNEL_DIFFERS");
}

TEST(ResolveTest, MeasurementIsTakenWhereItWasAskedFor) {
  PlanRecord record = Record();
  record.selection = Selection::kMeasure;
  EXPECT_EQ(ReasonFor(record, Key()), "PLAN_SELECTION_DIFFERS");
  PlanKey measured = Key();
  measured.selection = Selection::kMeasure;
  record = Record(measured);
  record.selection = Selection::kMeasure;
  record.measured_nanoseconds = 9;
  const auto plan = Resolve(TwoKernels(), record, measured);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->selection, Selection::kMeasure);
  EXPECT_EQ(plan->measured_nanoseconds, 9);
}

// Runs that must equal take the same kernel on every server.
TEST(ResolveTest, DeterministicPlansAreThoseThatPlanningGives) {
  PlanKey key = Key();
  key.deterministic = true;
  EXPECT_TRUE(Resolve(TwoKernels(), Record(key), key).ok());
  PlanRecord record = Record(key);
  record.kernel = "slow";
  record.kernel_version = 1;
  EXPECT_EQ(ReasonFor(record, key), "PLAN_KERNEL_DIFFERS");
}

TEST(ResolveTest, NothingToDoHasNoKernel) {
  PlanKey empty = Key();
  empty.problem = Transpose(0, 5);
  EXPECT_EQ(ReasonFor(Record(empty), empty), "PLAN_KERNEL_DIFFERS");
  PlanRecord record = Record(empty);
  record.kernel = "";
  EXPECT_EQ(Resolve(TwoKernels(), record, empty)->kernel_name(), "");
  record = Record();
  record.kernel = "";
  EXPECT_EQ(ReasonFor(record, Key()), "PLAN_KERNEL_DIFFERS");
}

}  // namespace
}  // namespace tensord::core
