// Pipelines of the client, against the server in a process of its own.
#include "tensord/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <optional>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "tensord/session.h"
#include "tests/testing/places.h"
#include "tests/testing/server_process.h"

namespace tensord {
namespace {

using testing::ServerProcess;
using Code = absl::StatusCode;

class PipelineTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_.emplace(testing::Built("tensord")); }
  static void TearDownTestSuite() { server_.reset(); }

  RemoteTensor Upload(const std::vector<double>& values) {
    return session_
        .Upload(HostView<double>{values.data(),
                                 {static_cast<int64_t>(values.size())}})
        .value();
  }
  static std::vector<double> Values(const RemoteTensor& tensor) {
    return tensor.Download<double>().value();
  }
  /// x = x + c, in place.
  static PendingTensor Add(Pipeline& pipeline, const RemoteTensor& x,
                           const RemoteTensor& c) {
    return pipeline.Elementwise({x, "i"}, BinaryOperator::kAdd, {c, "i"}, "i",
                                {.execution = {.output = &x}});
  }

  static std::optional<ServerProcess> server_;
  Session session_ = Session::Connect(server_->address()).value();
};

std::optional<ServerProcess> PipelineTest::server_;

TEST_F(PipelineTest, AbandonedPipelinesLeaveNoTensors) {
  const RemoteTensor x = Upload({0, 1});
  for (int round = 0; round < 5; ++round) {
    Pipeline pipeline = session_.StartPipeline();
    for (int i = 0; i < 200; ++i) {
      pipeline.Elementwise({x, "i"}, BinaryOperator::kAdd, {x, "i"}, "i");
    }
  }
  const absl::Time latest = absl::Now() + absl::Seconds(20);
  while (session_.List().value().size() > 1 && absl::Now() < latest) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_EQ(session_.List().value().size(), 1u);
}

TEST_F(PipelineTest, OperationsTakeEffectInTheOrderOfAdding) {
  const RemoteTensor one = Upload({1, 1});
  const RemoteTensor x = Upload({0, 1});
  for (int round = 1; round <= 50; ++round) {
    Pipeline pipeline = session_.StartPipeline();
    for (int i = 0; i < 20; ++i) Add(pipeline, x, i % 2 == 0 ? x : one);
    const absl::Status done = pipeline.Finish();
    ASSERT_TRUE(done.ok()) << done;
    // Ten times 2 x + 1; another order gives another x.
    ASSERT_EQ(Values(x), (std::vector<double>{1023, 2047})) << round;
    const std::vector<double> start = {0, 1};
    ASSERT_TRUE(session_.Refill(x, std::as_bytes(std::span(start))).ok());
  }
}

TEST_F(PipelineTest, EveryKindOfOperationGivesItsResult) {
  const RemoteTensor a = Upload({1, 4, 9});
  const std::vector<double> three(3);
  const RemoteTensor root = Upload(three);
  Pipeline pipeline = session_.StartPipeline();
  auto written = pipeline.Permute({a, "i", UnaryOperator::kSqrt}, "i",
                                  {.execution = {.output = &root}});
  auto product = pipeline.Contract({root, "i"}, {root, "j"}, "ij");
  auto largest = pipeline.Reduce(BinaryOperator::kMax, {root, "i"}, "");
  auto sum = pipeline.Elementwise({a, "i"}, BinaryOperator::kMul, {root, "i"},
                                  BinaryOperator::kAdd, {root, "i"}, "i");
  // Awaited in another order than added.
  EXPECT_EQ(Values(sum.Await().value()), (std::vector<double>{2, 10, 30}));
  EXPECT_EQ(Values(largest.Await().value()), (std::vector<double>{3}));
  EXPECT_EQ(Values(product.Await().value()),
            (std::vector<double>{1, 2, 3, 2, 4, 6, 3, 6, 9}));
  const RemoteTensor borrowed = written.Await().value();
  EXPECT_EQ(borrowed.name(), root.name());
  EXPECT_FALSE(borrowed.owns());
  EXPECT_FALSE(borrowed.report().kernel.empty());
  EXPECT_EQ(ReasonOf(written.Await().status()), "RESULT_TAKEN");
  EXPECT_TRUE(pipeline.Finish().ok());
}

TEST_F(PipelineTest, FailedOperationsDoNotEndThePipeline) {
  const RemoteTensor one = Upload({1, 1});
  const RemoteTensor x = Upload({0, 0});
  const RemoteTensor empty =
      session_.Create(ElementType::kFloat64, {{2}}).value();
  const RemoteTensor longer = Upload({1, 2, 3});
  Pipeline pipeline = session_.StartPipeline();
  auto good = Add(pipeline, x, one);
  auto not_ready = Add(pipeline, x, empty);
  auto misfit = Add(pipeline, x, longer);
  auto refused = pipeline.Permute(
      {x, "i"}, "i", {.execution = {.deadline = absl::Seconds(1)}});
  auto last = Add(pipeline, x, one);
  EXPECT_EQ(ReasonOf(refused.Await().status()), "DEADLINE_NOT_APPLICABLE");
  EXPECT_TRUE(last.Await().ok());
  EXPECT_TRUE(good.Await().ok());
  EXPECT_EQ(misfit.Await().status().code(), Code::kInvalidArgument);
  EXPECT_EQ(ReasonOf(misfit.Await().status()), "MODE_EXTENT_MISMATCH");
  EXPECT_EQ(CutensorStatusOf(misfit.Await().status()), "INVALID_VALUE");
  // The first in the order of adding.
  const absl::Status done = pipeline.Finish();
  EXPECT_EQ(done.code(), Code::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(done), "TENSOR_NOT_READY");
  EXPECT_EQ(not_ready.Await().status(), done);
  EXPECT_EQ(Values(x), (std::vector<double>{2, 2}));
  EXPECT_EQ(pipeline.Finish(), done);
  EXPECT_EQ(ReasonOf(Add(pipeline, x, one).Await().status()),
            "PIPELINE_FINISHED");
}

TEST_F(PipelineTest, AnyNumberOfOperationsIsOnItsWay) {
  const RemoteTensor one = Upload({1, 1});
  const RemoteTensor x = Upload({0, 1});
  Pipeline pipeline = session_.StartPipeline();
  for (int i = 0; i < 5000; ++i) Add(pipeline, x, one);
  ASSERT_TRUE(pipeline.Finish().ok());
  EXPECT_EQ(Values(x), (std::vector<double>{5000, 5001}));
}

TEST_F(PipelineTest, ResultsThatNobodyTakesLeaveTheServer) {
  const RemoteTensor x = Upload({0, 1});
  std::optional<PendingTensor> kept;
  {
    Pipeline pipeline = session_.StartPipeline();
    for (int i = 0; i < 10; ++i) pipeline.Permute({x, "i"}, "i");
    kept = pipeline.Permute({x, "i"}, "i");
    EXPECT_TRUE(pipeline.Finish().ok());
  }
  EXPECT_EQ(session_.List().value().size(), 2u);
  EXPECT_EQ(Values(kept->Await().value()), Values(x));
  EXPECT_EQ(session_.List().value().size(), 1u);
}

TEST_F(PipelineTest, EmptyPipelineFinishes) {
  EXPECT_TRUE(session_.StartPipeline().Finish().ok());
}

TEST_F(PipelineTest, PipelineThatIsNotFinishedIsCancelled) {
  const RemoteTensor one = Upload({1, 1});
  const RemoteTensor x = Upload({0, 1});
  const RemoteTensor a =
      session_.Create(ElementType::kFloat64, {{1200, 1200}}).value();
  const RemoteTensor d =
      session_.Create(ElementType::kFloat64, {{1200, 1200}}).value();
  const std::vector<double> zeros(1200 * 1200);
  ASSERT_TRUE(session_.Refill(a, std::as_bytes(std::span(zeros))).ok());
  std::optional<PendingTensor> never;
  {
    Pipeline pipeline = session_.StartPipeline();
    for (int i = 0; i < 20; ++i) {  // a second or so
      pipeline.Contract({a, "ik"}, {a, "kj"}, "ij",
                        {.execution = {.output = &d}});
    }
    never = Add(pipeline, x, one);
  }
  EXPECT_EQ(never->Await().status().code(), Code::kCancelled);
  EXPECT_EQ(Values(x), (std::vector<double>{0, 1}));
}

TEST(StoppedServerTest, PipelineEndsAtItsDeadline) {
  ServerProcess server(testing::Built("tensord"));
  {
    auto session = Session::Connect(server.address()).value();
    const std::vector<double> values = {0, 1};
    const auto x = session.Upload(HostView<double>{values.data(), {2}}).value();
    Pipeline pipeline = session.StartPipeline({.deadline = absl::Seconds(2)});
    EXPECT_TRUE(pipeline.Permute({x, "i"}, "i").Await().ok());
    server.Signal(SIGSTOP);
    const absl::Time start = absl::Now();
    auto pending = pipeline.Permute({x, "i"}, "i");
    EXPECT_EQ(pipeline.Finish().code(), Code::kDeadlineExceeded);
    EXPECT_EQ(pending.Await().status().code(), Code::kDeadlineExceeded);
    EXPECT_LT(absl::Now() - start, absl::Seconds(20));
    server.Signal(SIGCONT);
  }
}

TEST(KilledServerTest, PipelineEndsAsUnavailable) {
  ServerProcess server(testing::Built("tensord"));
  auto session =
      Session::Connect(server.address(), {.deadline = absl::Seconds(5)})
          .value();
  const std::vector<double> values = {0, 1};
  const auto x = session.Upload(HostView<double>{values.data(), {2}}).value();
  Pipeline pipeline = session.StartPipeline();
  EXPECT_TRUE(pipeline.Permute({x, "i"}, "i").Await().ok());
  server.Signal(SIGKILL);
  auto pending = pipeline.Permute({x, "i"}, "i");
  EXPECT_EQ(pending.Await().status().code(), Code::kUnavailable);
  EXPECT_EQ(pipeline.Finish().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace tensord
