// ComputeService.ExecuteStream with several requests in one message.
#include <random>

#include "tests/conformance/rpc_stream.h"

namespace tensord {
namespace {

class ExecuteStreamBatches : public ExecuteStream {
 protected:
  /// What came back, message by message, when each batch was one message.
  std::vector<Response> RunBatches(
      const std::vector<std::vector<Request>>& batches) {
    grpc::ClientContext context;
    const auto io = compute_->ExecuteStream(&context);
    std::thread sender([&] {
      for (const std::vector<Request>& batch : batches) {
        Request message;
        for (const Request& request : batch) *message.add_batch() = request;
        if (!io->Write(message)) break;
      }
      io->WritesDone();
    });
    std::vector<Response> messages;
    for (Response message; io->Read(&message);) messages.push_back(message);
    sender.join();
    EXPECT_TRUE(io->Finish().ok());
    return messages;
  }
};

/// The responses that messages hold, which must be in order.
std::vector<Response> Unpacked(const std::vector<Response>& messages) {
  std::vector<Response> responses;
  for (const Response& message : messages) {
    if (message.batch().empty()) responses.push_back(message);
    for (const Response& each : message.batch()) {
      EXPECT_TRUE(each.batch().empty());
      responses.push_back(each);
    }
  }
  for (size_t i = 0; i < responses.size(); ++i) {
    EXPECT_EQ(responses[i].index(), static_cast<int64_t>(i));
  }
  return responses;
}

TEST_F(ExecuteStreamBatches, RequestsTakeEffectInTheirOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    SCOPED_TRACE(round);
    ASSERT_THAT(Upload({Chunk(x_, 0, std::vector<float>{0, 1})}), IsOk());
    std::vector<std::vector<Request>> batches;
    for (int count = 0; count < 20;) {
      batches.emplace_back();
      const int size =
          std::uniform_int_distribution<int>(1, 20 - count)(random);
      for (int i = 0; i < size; ++i) batches.back().push_back(Step(count++));
    }
    const std::vector<Response> responses = Unpacked(RunBatches(batches));
    ASSERT_EQ(responses.size(), 20u);
    for (const Response& response : responses) {
      EXPECT_THAT(OutcomeOf(response), IsOk());
    }
    // Ten times 2 x + 1.
    ASSERT_EQ(Values(x_), (std::vector<float>{1023, 2047}));
  }
  EXPECT_EQ(server_.used_bytes(), before_);
}

TEST_F(ExecuteStreamBatches, LargerThanTheWindowIsAnsweredWhole) {
  const std::vector<Request> batch(5 * kWindow + 3, Increment());
  const std::vector<Response> messages = RunBatches({batch, batch});
  const std::vector<Response> responses = Unpacked(messages);
  EXPECT_EQ(responses.size(), 2 * batch.size());
  for (const Response& response : responses) {
    EXPECT_THAT(OutcomeOf(response), IsOk());
  }
  // Elsewhere one may end after the other.
  if (server_.device().info().uses_host_memory) {
    EXPECT_LE(messages.size(), responses.size() / 4);
  }
  EXPECT_EQ(Values(x_)[0], 2 * batch.size());
}

TEST_F(ExecuteStreamBatches, WhoSendsNoneGetsNone) {
  for (const Response& response : Run({200, Increment()})) {
    EXPECT_TRUE(response.batch().empty());
  }
}

TEST_F(ExecuteStreamBatches, ErrorsAreInTheirPlace) {
  Request nested;
  *nested.add_batch() = Increment();
  const std::vector<Response> responses =
      Unpacked(RunBatches({{Increment(), Request(), Increment(), nested},
                           {},  // a request without an operation
                           {Increment()}}));
  ASSERT_EQ(responses.size(), 6u);
  for (const size_t i : {0, 2, 5}) {
    EXPECT_THAT(OutcomeOf(responses[i]), IsOk());
  }
  for (const size_t i : {1, 3, 4}) {
    EXPECT_THAT(OutcomeOf(responses[i]),
                FailsWith(grpc::INVALID_ARGUMENT, "OPERATION_MISSING"));
  }
  EXPECT_EQ(Values(x_), (std::vector<float>{3, 4}));
}

TEST_F(ExecuteStreamBatches, LargeResultsAreDividedAmongMessages) {
  constexpr int kElements = 100'000;  // 400 kB
  const std::string large = Filled({kElements});
  const std::vector<Response> messages =
      RunBatches({std::vector<Request>(30, FetchOf(large))});
  const std::vector<Response> responses = Unpacked(messages);
  ASSERT_EQ(responses.size(), 30u);
  for (const Response& response : responses) {
    ASSERT_THAT(OutcomeOf(response), IsOk());
    EXPECT_EQ(response.result().data().size(), kElements * sizeof(float));
  }
  for (const Response& message : messages) {
    EXPECT_LE(message.ByteSizeLong(), size_t{2} << 20);
  }
}

TEST_F(ExecuteStreamBatches, CancelledOnesLeaveNothing) {
  for (int round = 0; round < 20; ++round) {
    grpc::ClientContext context;
    const auto io = compute_->ExecuteStream(&context);
    Request message;
    for (int i = 0; i < 10 * kWindow; ++i) *message.add_batch() = Increment();
    ASSERT_TRUE(io->Write(message));
    Response first;
    ASSERT_TRUE(io->Read(&first));
    context.TryCancel();
    while (io->Read(&first)) {
    }
    EXPECT_EQ(io->Finish().error_code(), grpc::CANCELLED);
  }
  EXPECT_TRUE(Soon([&] { return queued() == 0; }));
  EXPECT_THAT(OutcomeOf(Run({Increment()})[0]), IsOk());
  EXPECT_EQ(server_.used_bytes(), before_);
}

}  // namespace
}  // namespace tensord
