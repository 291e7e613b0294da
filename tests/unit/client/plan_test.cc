// Plans and the plan cache through the client, against the server in a process
// of its own.
#include "tensord/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tensord/plan_cache.h"
#include "tensord/session.h"
#include "tests/testing/places.h"
#include "tests/testing/server_process.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;
using testing::ServerProcess;
using ::testing::SizeIs;
using Values = std::vector<float>;

class PlanTest : public ::testing::Test {
 protected:
  RemoteTensor Matrix(const Values& values) {
    return session_.Upload(HostView<float>{values.data(), {2, 2}}).value();
  }

  ServerProcess server_{testing::Built("tensord")};
  Session session_ =
      Session::Connect(server_.address(), {.job = "plans"}).value();
  PlanCache cache_{server_.address()};
};

TEST_F(PlanTest, IsPreparedOnceAndRunOften) {
  const RemoteTensor a = Matrix({1, 2, 3, 4}), b = Matrix({0, 1, 1, 0});
  auto plan = session_.PlanContract({a, "ik"}, {b, "kj"}, "ij");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->info().operation, "contract");
  EXPECT_EQ(plan->info().explanation.flops, 16);
  EXPECT_EQ(plan->Execute({.a = &a, .b = &b})->Download<float>().value(),
            (Values{2, 1, 4, 3}));
  const auto d = plan->Execute({.a = &b, .b = &a}, {.alpha = 10});
  EXPECT_EQ(d->Download<float>().value(), (Values{30, 40, 10, 20}));
  EXPECT_EQ(plan->Describe()->execution_count, 2);
  const RemoteTensor row = a.Index({0}).value();
  EXPECT_EQ(ReasonOf(plan->Execute({.a = &row, .b = &b}).status()),
            "PLAN_OPERAND_DIFFERS");
  EXPECT_EQ(ReasonOf(plan->Execute({.a = &a}).status()), "INPUT_MISSING");
}

TEST_F(PlanTest, EveryOperationCanBePrepared) {
  const RemoteTensor a = Matrix({1, 2, 3, 4});
  const auto values = [](const absl::StatusOr<Plan>& plan,
                         const PlanInputs& inputs) {
    return plan->Execute(inputs)->Download<float>().value();
  };
  EXPECT_EQ(values(session_.PlanPermute({a, "ij"}, "ji"), {.a = &a}),
            (Values{1, 3, 2, 4}));
  EXPECT_EQ(values(session_.PlanReduce(BinaryOperator::kMax, {a, "ij"}, "j"),
                   {.a = &a}),
            (Values{3, 4}));
  EXPECT_EQ(values(session_.PlanElementwise({a, "ij"}, BinaryOperator::kMul,
                                            {a, "ij"}, "ij"),
                   {.a = &a, .c = &a}),
            (Values{1, 4, 9, 16}));
  EXPECT_EQ(values(session_.PlanElementwise({a, "ij"}, BinaryOperator::kAdd,
                                            {a, "ij"}, BinaryOperator::kMul,
                                            {a, "ij"}, "ij"),
                   {.a = &a, .b = &a, .c = &a}),
            (Values{2, 8, 18, 32}));
}

TEST_F(PlanTest, LeavesTheServerWithItsHandle) {
  const RemoteTensor a = Matrix({1, 2, 3, 4});
  const Server server(server_.address());
  {
    const auto plan = session_.PlanPermute({a, "ij"}, "ji");
    EXPECT_THAT(server.Plans(session_.name()).value(), SizeIs(1));
  }
  EXPECT_THAT(server.Plans(session_.name()).value(), SizeIs(0));
  auto kept =
      session_.PlanPermute({a, "ij"}, "ji", {}, {.name = "turn"}).value();
  kept.Release();
  EXPECT_THAT(server.Plans(session_.name()).value()[0].name,
              HasSubstr("/plans/turn"));
}

TEST_F(PlanTest, IncrementalSelectionIsToldSampleBySample) {
  const RemoteTensor a = Matrix({1, 2, 3, 4});
  ContractOptions options;
  options.execution.selection = Selection::kIncremental;
  const auto plan =
      session_.PlanContract({a, "ik"}, {a, "kj"}, "ij", options).value();
  ASSERT_TRUE(plan.Execute({.a = &a, .b = &a}).ok());
  const PlanInfo begun = plan.Describe().value();
  EXPECT_EQ(begun.sample_count, 1);
  ASSERT_GT(begun.wanted_sample_count, 1);
  for (int i = 1; i < begun.wanted_sample_count; ++i) {
    ASSERT_TRUE(plan.Execute({.a = &a, .b = &a}).ok());
  }
  const PlanInfo tuned = plan.Describe().value();
  EXPECT_EQ(tuned.sample_count, tuned.wanted_sample_count);
  double measured = 0;
  for (const KernelCandidate& candidate : tuned.explanation.candidates) {
    measured += candidate.measured_nanoseconds;
  }
  EXPECT_GT(measured, 0);
}

TEST_F(PlanTest, TheCacheIsShownPinnedDumpedAndLoaded) {
  const RemoteTensor a = Matrix({1, 2, 3, 4});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(session_.Contract({a, "ik"}, {a, "kj"}, "ij").ok());
  }
  const PlanCacheState state = cache_.State().value();
  EXPECT_EQ(state.entry_count, 1);
  EXPECT_EQ(state.hit_count, 2);
  ASSERT_THAT(state.jobs, SizeIs(1));
  EXPECT_EQ(state.jobs[0].job, "plans");
  EXPECT_EQ(state.store.path, "");
  const std::vector<PlanCacheEntry> entries =
      cache_.Entries(/*by_hits=*/true).value();
  ASSERT_THAT(entries, SizeIs(1));
  EXPECT_EQ(entries[0].hit_count, 2);
  EXPECT_EQ(ToString(entries[0].source), "planned");
  ASSERT_TRUE(cache_.Pin(entries[0].id).ok());
  EXPECT_EQ(cache_.Clear(false).value(), 0);
  ASSERT_TRUE(cache_.Unpin(entries[0].id).ok());
  std::string snapshot;
  const auto append = [&](std::string_view bytes) {
    snapshot += bytes;
    return absl::OkStatus();
  };
  ASSERT_TRUE(cache_.Dump(append).ok());
  ASSERT_TRUE(cache_.Remove(entries[0].id).ok());
  EXPECT_EQ(ReasonOf(cache_.Remove(entries[0].id)), "PLAN_NOT_FOUND");
  EXPECT_EQ(cache_.Load(snapshot, false)->taken_count, 1);
  ASSERT_TRUE(session_.Contract({a, "ik"}, {a, "kj"}, "ij").ok());
  EXPECT_EQ(ToString(cache_.Entries(false).value()[0].source), "loaded");
  EXPECT_EQ(cache_.Load(snapshot, true)->entry_count, 1);
  EXPECT_EQ(ReasonOf(cache_.Load("junk", false).status()), "SNAPSHOT_FOREIGN");
  const auto refuse = [](std::string_view) {
    return absl::UnavailableError("the disk is full");
  };
  EXPECT_EQ(cache_.Dump(refuse).message(), "the disk is full");
}

TEST_F(PlanTest, KernelsAreListed) {
  const Server server(server_.address());
  const auto kernels = server.Kernels().value();
  EXPECT_THAT(kernels.front().name, HasSubstr("cpu."));
  EXPECT_EQ(ReasonOf(server.Kernels("tpu:0").status()), "DEVICE_NOT_FOUND");
}

}  // namespace
}  // namespace tensord
