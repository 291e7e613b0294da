// ComputeService.ExecuteStream: order, errors in place, back-pressure,
// cancellation, and no byte lost.
#include "tests/conformance/rpc_stream.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;

TEST_F(ExecuteStream, AnswersEveryKindOfOperation) {
  const std::string a = Filled({2, 2});
  v1::Tensor created;
  ASSERT_THAT(Create(CreateRequest({2, 2}), &created), IsOk());
  const std::string& d = created.name();
  std::vector<Request> requests(4);
  v1::PermuteRequest& permute = *requests[0].mutable_permute();
  permute = Permutation(a);
  permute.mutable_d()->set_tensor(d);
  v1::ReduceRequest& reduce = *requests[1].mutable_reduce();
  reduce.set_session(session_);
  *reduce.mutable_a() = Named(d, {1, 2});
  *reduce.mutable_d() = New({2});
  reduce.mutable_d()->set_inline_(true);
  reduce.set_op(v1::BINARY_OPERATOR_ADD);
  *requests[2].mutable_contract() = Contraction(a, d);
  requests[3] = Increment();
  const std::vector<Response> responses = Run(requests);
  for (const Response& response : responses) {
    EXPECT_THAT(OutcomeOf(response), IsOk());
    EXPECT_FALSE(response.result().report().kernel().empty());
  }
  EXPECT_EQ(Values(d), (std::vector<float>{0, 2, 1, 3}));
  float sums[2];
  ASSERT_EQ(responses[1].result().data().size(), sizeof(sums));
  std::memcpy(sums, responses[1].result().data().data(), sizeof(sums));
  EXPECT_EQ(sums[0], 2);
  EXPECT_EQ(sums[1], 4);
  // First mode fastest: a = [0 2; 1 3], d its transpose.
  const v1::Tensor& product = responses[2].result().tensor();
  EXPECT_EQ(Values(product.name()), (std::vector<float>{4, 6, 6, 10}));
  EXPECT_EQ(Values(x_), (std::vector<float>{1, 2}));
  EXPECT_EQ(server_.used_bytes(), before_ + 3 * 4 * 4);
}

TEST_F(ExecuteStream, OperationsTakeEffectInTheOrderOfTheStream) {
  std::vector<Request> requests;
  for (int i = 0; i < 20; ++i) requests.push_back(Step(i));
  for (int round = 0; round < 200; ++round) {
    ASSERT_THAT(Upload({Chunk(x_, 0, std::vector<float>{0, 1})}), IsOk());
    Run(requests);
    // Ten times 2 x + 1.
    ASSERT_EQ(Values(x_), (std::vector<float>{1023, 2047})) << round;
  }
  EXPECT_EQ(server_.used_bytes(), before_);
}

TEST_F(ExecuteStream, StreamWithoutRequestsIsOk) {
  EXPECT_TRUE(Run({}).empty());
}

TEST_F(ExecuteStream, FailedOperationsAreAnsweredInTheirPlace) {
  v1::OpenSessionResponse other;
  ASSERT_THAT(Open({}, &other), IsOk());
  v1::Tensor empty;
  ASSERT_THAT(Create(CreateRequest({2}), &empty), IsOk());
  const std::string a = Filled({2, 3});
  struct Case {
    grpc::StatusCode code;
    std::string reason;
    std::string message;
    Request request;
  };
  const v1::ContractRequest valid = Contraction(a, Filled({3, 2}));
  v1::ContractRequest misfit = Contraction(a, a);
  v1::ContractRequest integer = valid;
  integer.mutable_d()->set_element_type(v1::ELEMENT_TYPE_INT8);
  v1::ContractRequest outer = Contraction(a, Filled({3, 3}));
  outer.clear_d();
  outer.mutable_d()->set_tensor(a);
  outer.mutable_d()->add_modes('i');
  outer.mutable_d()->add_modes('j');
  Request elsewhere = Increment();
  elsewhere.mutable_elementwise()->set_session(other.session().name());
  Request nowhere = Increment();
  nowhere.mutable_elementwise()->set_session("sessions/none");
  Request second_session_tensor =
      Sum(x_, other.session().name() + "/tensors/t", x_);
  const std::vector<Case> cases = {
      {grpc::INVALID_ARGUMENT, "OPERATION_MISSING", "", Request()},
      {grpc::INVALID_ARGUMENT, "SESSION_DIFFERS", other.session().name(),
       elsewhere},
      {grpc::INVALID_ARGUMENT, "SESSION_DIFFERS", "sessions/none", nowhere},
      {grpc::INVALID_ARGUMENT, "MODE_EXTENT_MISMATCH",
       "mode 'k' has extent 3 in a but 2 in b", Of(misfit)},
      {grpc::INVALID_ARGUMENT, "OUTPUT_OVERLAPS_INPUT", "", Of(outer)},
      {grpc::UNIMPLEMENTED, "TYPES_NOT_SUPPORTED", "nearest", Of(integer)},
      {grpc::NOT_FOUND, "TENSOR_NOT_FOUND", "none",
       Sum(session_ + "/tensors/none", one_, x_)},
      {grpc::NOT_FOUND, "TENSOR_NOT_FOUND", other.session().name(),
       second_session_tensor},
      {grpc::FAILED_PRECONDITION, "TENSOR_NOT_READY", "no contents",
       Sum(empty.name(), one_, x_)},
  };
  const int64_t before = server_.used_bytes();
  std::vector<Request> requests;
  for (const Case& c : cases) {
    requests.push_back(Increment());
    requests.push_back(c.request);
  }
  const std::vector<Response> responses = Run(requests);
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_THAT(OutcomeOf(responses[2 * i]), IsOk());
    const Outcome outcome = OutcomeOf(responses[2 * i + 1]);
    EXPECT_THAT(outcome, FailsWith(cases[i].code, cases[i].reason));
    EXPECT_THAT(outcome.status.error_message(), HasSubstr(cases[i].message));
  }
  EXPECT_EQ(Values(x_), (std::vector<float>{9, 10}));
  EXPECT_EQ(server_.used_bytes(), before);
}

TEST_F(ExecuteStream, UnknownSessionIsAnErrorOfEachRequest) {
  session_ = "sessions/none";
  for (const Response& response : Run({Increment(), Increment()})) {
    EXPECT_THAT(OutcomeOf(response),
                FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
  }
}

TEST_F(ExecuteStream, OperationThatNeedsAFailedOneFailsToo) {
  v1::OpenSessionRequest open;
  open.set_memory_quota_bytes(1 << 20);
  v1::OpenSessionResponse opened;
  ASSERT_THAT(Open(open, &opened), IsOk());
  session_ = opened.session().name();
  const std::string a = Filled({400, 400});
  const int64_t before = server_.used_bytes();
  v1::ContractRequest outer = Contraction(a, a);  // 400^4 elements
  outer.mutable_a()->set_modes(1, 'x');
  outer.mutable_d()->add_modes('x');
  outer.mutable_d()->add_modes('k');
  outer.mutable_d()->set_tensor_id("big");
  v1::ReduceRequest reduce;
  reduce.set_session(session_);
  *reduce.mutable_a() = Named(session_ + "/tensors/big", {1, 2, 3, 4});
  *reduce.mutable_d() = New({});
  reduce.set_op(v1::BINARY_OPERATOR_ADD);
  Request needs_it;
  *needs_it.mutable_reduce() = reduce;

  Blocker blocker(server_.device().worker());
  Stream stream(*compute_);
  stream.Write(Of(outer));
  stream.Write(needs_it);
  stream.WritesDone();
  EXPECT_TRUE(Soon([&] { return queued() == 2; }));
  blocker.Release();
  const std::vector<Response> responses = stream.ReadAll();
  ASSERT_EQ(responses.size(), 2u);
  EXPECT_THAT(OutcomeOf(responses[0]),
              FailsWith(grpc::RESOURCE_EXHAUSTED, "MEMORY_LIMIT"));
  EXPECT_THAT(OutcomeOf(responses[1]),
              FailsWith(grpc::FAILED_PRECONDITION, "TENSOR_NOT_READY"));
  EXPECT_THAT(stream.Finish(), IsOk());
  EXPECT_EQ(server_.used_bytes(), before);
}

TEST_F(ExecuteStream, WindowHoldsUpTheClientAndNothingFails) {
  constexpr int kOperations = 600;
  const int64_t quota_before = server_.used_bytes();
  Blocker blocker(server_.device().worker());
  Stream stream(*compute_);
  std::thread sender([&] {
    for (int i = 0; i < kOperations; ++i) {
      EXPECT_TRUE(stream.Write(Increment()));
    }
    stream.WritesDone();
  });
  EXPECT_TRUE(Soon([&] { return queued() == kWindow; }));
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_EQ(queued(), kWindow);
  blocker.Release();
  const std::vector<Response> responses = stream.ReadAll();
  sender.join();
  EXPECT_EQ(responses.size(), kOperations);
  for (const Response& response : responses) {
    EXPECT_THAT(OutcomeOf(response), IsOk());
  }
  EXPECT_THAT(stream.Finish(), IsOk());
  EXPECT_EQ(Values(x_), (std::vector<float>{kOperations, kOperations + 1}));
  EXPECT_EQ(server_.used_bytes(), quota_before);
}

TEST_F(ExecuteStream, SlowReaderHoldsUpNobodyElse) {
  const Request fetch = FetchOf(Filled({1 << 16}));
  constexpr int kOperations = 300;  // more than all buffers on the way hold
  const int64_t before = server_.used_bytes();
  Stream slow(*compute_);
  std::thread sender([&] {
    for (int i = 0; i < kOperations; ++i) EXPECT_TRUE(slow.Write(fetch));
    slow.WritesDone();
  });
  // Until the window is full of results that nobody takes, in host memory.
  EXPECT_TRUE(Soon([&] { return RequestBytes() > 8 << 20; }));
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(OutcomeOf(Run({Increment()})[0]), IsOk());
  }
  EXPECT_EQ(Values(x_), (std::vector<float>{20, 21}));
  EXPECT_LE(RequestBytes(), (kWindow + 1) * (int64_t{1} << 19));
  EXPECT_EQ(server_.used_bytes(), before);
  EXPECT_EQ(slow.ReadAll().size(), kOperations);
  sender.join();
  EXPECT_THAT(slow.Finish(), IsOk());
  EXPECT_EQ(RequestBytes(), 0);
}

TEST_F(ExecuteStream, SlowReaderThatCancelsLeavesNothing) {
  const Request fetch = FetchOf(Filled({1 << 16}));
  const int64_t before = server_.used_bytes();
  Stream slow(*compute_);
  std::thread sender([&] {
    while (slow.Write(fetch)) {
    }
  });
  EXPECT_TRUE(Soon([&] { return RequestBytes() > 8 << 20; }));
  slow.Cancel();
  sender.join();
  EXPECT_EQ(slow.Finish().status.error_code(), grpc::CANCELLED);
  EXPECT_TRUE(Soon(
      [&] { return server_.used_bytes() == before && RequestBytes() == 0; }));
}

TEST_F(ExecuteStream, CancelledOperationsNeverRun) {
  Blocker blocker(server_.device().worker());
  Stream stream(*compute_);
  for (int i = 0; i < 20; ++i) stream.Write(Step(i));
  EXPECT_TRUE(Soon([&] { return queued() == 20; }));
  stream.Cancel();
  EXPECT_TRUE(Soon([&] { return queued() == 0; }));
  EXPECT_EQ(stream.Finish().status.error_code(), grpc::CANCELLED);
  blocker.Release();
  EXPECT_EQ(Describe(x_).state(), v1::TENSOR_STATE_READY);
  EXPECT_EQ(Values(x_), (std::vector<float>{0, 1}));
  EXPECT_EQ(server_.used_bytes(), before_);
}

TEST_F(ExecuteStream, WhatACancelledStreamHasDoneIsItsBeginning) {
  std::vector<std::vector<float>> states = {{0, 1}};
  for (int i = 0; i < 40; ++i) {
    std::vector<float> state = states.back();
    for (float& value : state) value = i % 2 == 0 ? value + value : value + 1;
    states.push_back(state);
  }
  for (int round = 0; round < 100; ++round) {
    ASSERT_THAT(Upload({Chunk(x_, 0, std::vector<float>{0, 1})}), IsOk());
    Blocker blocker(server_.device().worker());
    Stream stream(*compute_);
    for (int i = 0; i < 40; ++i) stream.Write(Step(i));
    ASSERT_TRUE(Soon([&] { return queued() == 40; }));
    stream.Cancel();
    absl::SleepFor(absl::Microseconds(10 * round));
    blocker.Release();  // Now the device and the cancellation race.
    stream.Finish();
    ASSERT_TRUE(
        Soon([&] { return Describe(x_).state() == v1::TENSOR_STATE_READY; }));
    EXPECT_THAT(states, ::testing::Contains(Values(x_))) << round;
  }
  EXPECT_EQ(server_.used_bytes(), before_);
}

TEST_F(ExecuteStream, ResultThatNobodyHearsOfGoes) {
  // Seconds, so that the cancellation comes while it runs.
  const std::string a = Filled({800, 800});
  v1::ContractRequest product = Contraction(a, a);
  product.mutable_options()->set_kernel(KernelPrefix() + ".contract.reference");
  const int64_t before = server_.used_bytes();
  const auto executed = [&] {
    return server_.device().worker().statistics().executed_count;
  };
  for (const bool streamed : {true, false}) {
    const int64_t executed_before = executed();
    grpc::ClientContext context;
    Stream stream(*compute_);
    std::thread caller;
    if (streamed) {
      stream.Write(Of(product));
    } else {
      caller = std::thread([&] {
        v1::ContractResponse response;
        compute_->Contract(&context, product, &response);
      });
    }
    EXPECT_TRUE(Soon([&] { return executed() > executed_before; }));
    stream.Cancel();
    context.TryCancel();
    if (caller.joinable()) caller.join();
    stream.Finish();
    EXPECT_TRUE(Soon([&] {
      return server_.used_bytes() == before &&
             server_.sessions().tensor_count() == 3;
    }));
  }
}

TEST_F(ExecuteStream, DeadlineEndsWhatIsQueued) {
  Blocker blocker(server_.device().worker());
  Stream stream(*compute_, absl::Milliseconds(200));
  Request makes_one = Increment();
  makes_one.mutable_elementwise()->mutable_d()->clear_tensor();
  for (int i = 0; i < 10; ++i) {
    stream.Write(Step(i));
    stream.Write(makes_one);
  }
  EXPECT_TRUE(stream.ReadAll().empty());
  EXPECT_EQ(stream.Finish().status.error_code(), grpc::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Soon([&] { return queued() == 0; }));
  EXPECT_TRUE(Soon([&] { return server_.sessions().tensor_count() == 2; }));
  blocker.Release();
  EXPECT_EQ(Values(x_), (std::vector<float>{0, 1}));
  EXPECT_EQ(server_.used_bytes(), before_);
}

TEST_F(ExecuteStream, HalfClosedStreamIsAnsweredToTheEnd) {
  Blocker blocker(server_.device().worker());
  Stream stream(*compute_);
  for (int i = 0; i < 20; ++i) stream.Write(Step(i));
  stream.WritesDone();
  EXPECT_TRUE(Soon([&] { return queued() == 20; }));
  blocker.Release();
  EXPECT_EQ(stream.ReadAll().size(), 20u);
  EXPECT_THAT(stream.Finish(), IsOk());
  EXPECT_EQ(Values(x_), (std::vector<float>{1023, 2047}));
}

TEST_F(ExecuteStream, ItEndsWithItsSession) {
  Stream stream(*compute_);
  stream.Write(Increment());
  Response response;
  ASSERT_TRUE(stream.Read(&response));
  EXPECT_THAT(OutcomeOf(response), IsOk());
  EXPECT_THAT(Close(session_), IsOk());
  EXPECT_EQ(stream.ReadAll().size(), 0u);
  EXPECT_THAT(stream.Finish(), FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
  EXPECT_EQ(server_.used_bytes(), 0);
}

// The first of them waited until gRPC had something else to write: an answer to
// a client's ping, or its own, after 20 s.
TEST_F(ExecuteStream, ResponsesThatAreReadyTogetherAreSentAtOnce) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // which pings
  const auto compute = v1::ComputeService::NewStub(grpc::CreateCustomChannel(
      server_.address(), grpc::InsecureChannelCredentials(), arguments));
  Blocker blocker(server_.device().worker());
  Stream stream(*compute, absl::Seconds(15));
  EXPECT_TRUE(stream.Write(Increment()));
  EXPECT_TRUE(stream.Write(Request()));  // ends when it is taken
  EXPECT_TRUE(stream.Write(Increment()));
  stream.WritesDone();
  EXPECT_TRUE(Soon([&] { return queued() == 2; }));
  blocker.Release();
  EXPECT_EQ(stream.ReadAll().size(), 3u);
  EXPECT_THAT(stream.Finish(), IsOk());
}

TEST_F(ExecuteStream, StreamsOfOneSessionKeepTheirOwnOrder) {
  // Each has a tensor of its own; the device takes them in turns.
  std::vector<std::thread> threads;
  std::vector<std::string> tensors;
  for (int t = 0; t < 3; ++t) {
    tensors.push_back(Filled({2}));
    ASSERT_THAT(Upload({Chunk(tensors[t], 0, std::vector<float>{0, 1})}),
                IsOk());
  }
  for (const std::string& x : tensors) {
    threads.emplace_back([&, x] {
      std::vector<Request> requests;
      for (int i = 0; i < 20; ++i) {
        requests.push_back(i % 2 == 0 ? Sum(x, x, x) : Sum(x, one_, x));
      }
      Run(requests);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& x : tensors) {
    EXPECT_EQ(Values(x), (std::vector<float>{1023, 2047}));
  }
}

TEST_F(ExecuteStream, DrainFinishesWhatWasTakenAndRefusesTheRest) {
  Blocker blocker(server_.device().worker());
  Stream stream(*compute_);
  for (int i = 0; i < 3; ++i) stream.Write(Increment());
  EXPECT_TRUE(Soon([&] { return queued() == 3; }));
  std::thread drain([this] { server_.rpc().Drain(absl::Seconds(10)); });
  EXPECT_TRUE(Soon([&] {
    v1::OpenSessionResponse response;
    return Open({}, &response).status.error_code() == grpc::UNAVAILABLE;
  }));
  // The loop of the stream may hear of it after that of the other call.
  size_t written = 3;
  EXPECT_TRUE(Soon([&] {
    const auto taken = queued();
    stream.Write(Increment());
    ++written;
    absl::SleepFor(absl::Milliseconds(50));
    return queued() == taken;
  }));
  blocker.Release();
  const std::vector<Response> responses = stream.ReadAll();
  EXPECT_GE(responses.size(), 3u);
  EXPECT_LT(responses.size(), written);
  for (const Response& response : responses) {
    EXPECT_THAT(OutcomeOf(response), IsOk());
  }
  EXPECT_THAT(stream.Finish(), FailsWith(grpc::UNAVAILABLE, "DRAINING"));
  drain.join();
  EXPECT_EQ(server_.device().worker().statistics().queued_count, 0);
}

TEST_F(ExecuteStream, DrainDoesNotWaitForIdleStreams) {
  Stream stream(*compute_);
  stream.Write(Increment());
  Response response;
  ASSERT_TRUE(stream.Read(&response));
  const absl::Time start = absl::Now();
  std::thread drain([this] { server_.rpc().Drain(absl::Seconds(100)); });
  EXPECT_TRUE(stream.ReadAll().empty());
  EXPECT_THAT(stream.Finish(), FailsWith(grpc::UNAVAILABLE, "DRAINING"));
  drain.join();
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
}

TEST_F(ExecuteStream, SessionThatDoesNotExistBindsNoStream) {
  Stream stream(*compute_);
  Request unknown = Increment();
  unknown.mutable_elementwise()->set_session("sessions/none");
  for (const Request& request : {unknown, Increment(), unknown}) {
    stream.Write(request);
  }
  stream.WritesDone();
  const std::vector<Response> responses = stream.ReadAll();
  ASSERT_EQ(responses.size(), 3u);
  EXPECT_THAT(OutcomeOf(responses[0]),
              FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
  EXPECT_THAT(OutcomeOf(responses[1]), IsOk());
  EXPECT_THAT(OutcomeOf(responses[2]),
              FailsWith(grpc::INVALID_ARGUMENT, "SESSION_DIFFERS"));
  EXPECT_THAT(stream.Finish(), IsOk());
}

TEST_F(ExecuteStream, EveryOperationIsCountedWhereverItFails) {
  Request unknown = Increment();
  unknown.mutable_elementwise()->set_session("sessions/none");
  Request malformed = Increment();
  malformed.mutable_elementwise()->clear_op_abc();
  Run({Increment(), malformed});
  Run({unknown});
  v1::ContractRequest contract = Contraction(one_, one_);
  contract.set_session("sessions/none");
  EXPECT_THAT(Contract(contract),
              FailsWith(grpc::NOT_FOUND, "SESSION_NOT_FOUND"));
  v1::GetServerStatsResponse stats;
  ASSERT_THAT(Unary(&v1::AdminService::Stub::GetServerStats, *admin_,
                    v1::GetServerStatsRequest(), &stats),
              IsOk());
  std::map<std::string, int64_t> counts;
  for (const v1::OperationStats& entry : stats.operations()) {
    counts[entry.operation() + " " + entry.code()] = entry.count();
  }
  EXPECT_EQ(counts,
            (std::map<std::string, int64_t>{{"contract NOT_FOUND", 1},
                                            {"elementwise INVALID_ARGUMENT", 1},
                                            {"elementwise NOT_FOUND", 1},
                                            {"elementwise OK", 1}}));
}

class ImpatientExecuteStream : public ExecuteStream {
 protected:
  static constexpr absl::Duration kIdle = absl::Milliseconds(200);
  ImpatientExecuteStream()
      : ExecuteStream(testing::InProcessOptions{.stream_idle = kIdle}) {}
};

TEST_F(ImpatientExecuteStream, AStreamIsNotIdleWhileItsFirstOperationRuns) {
  Blocker blocker(server_.device().worker());
  Stream stream(*compute_);
  stream.Write(Increment());
  stream.WritesDone();
  EXPECT_TRUE(Soon([&] { return queued() == 1; }));
  absl::SleepFor(3 * kIdle);
  blocker.Release();
  EXPECT_EQ(stream.ReadAll().size(), 1u);
  EXPECT_THAT(stream.Finish(), IsOk());
}

/// A window as small as the queue of the device.
class SmallExecuteStream : public ExecuteStream {
 protected:
  SmallExecuteStream() : ExecuteStream(4) {}
};

TEST_F(SmallExecuteStream, OneStreamNeverFillsTheQueue) {
  v1::GetServerInfoResponse info;
  ASSERT_THAT(Unary(&v1::AdminService::Stub::GetServerInfo, *admin_,
                    v1::GetServerInfoRequest(), &info),
              IsOk());
  EXPECT_EQ(info.limits().max_stream_operations(), 4);
  std::vector<Request> requests;
  for (int i = 0; i < 300; ++i) requests.push_back(Increment());
  for (const Response& response : Run(requests)) {
    EXPECT_THAT(OutcomeOf(response), IsOk());
  }
  EXPECT_EQ(Values(x_), (std::vector<float>{300, 301}));
}

TEST_F(SmallExecuteStream, FullQueueIsAnErrorOfTheOperation) {
  Blocker blocker(server_.device().worker());
  Stream first(*compute_);
  for (int i = 0; i < 4; ++i) first.Write(Increment());
  EXPECT_TRUE(Soon([&] { return queued() == 4; }));
  Stream second(*compute_);
  second.Write(Increment());
  Response response;
  ASSERT_TRUE(second.Read(&response));
  EXPECT_THAT(OutcomeOf(response),
              FailsWith(grpc::RESOURCE_EXHAUSTED, "QUEUE_FULL"));
  blocker.Release();
  second.Write(Increment());
  for (Stream* const stream : {&first, &second}) stream->WritesDone();
  EXPECT_EQ(first.ReadAll().size(), 4u);
  EXPECT_EQ(second.ReadAll().size(), 1u);
  EXPECT_THAT(first.Finish(), IsOk());
  EXPECT_THAT(second.Finish(), IsOk());
  EXPECT_EQ(server_.used_bytes(), before_);
}

}  // namespace
}  // namespace tensord
