// ComputeService: success, each documented error, order, deadline,
// cancellation, and no byte lost.
#include "tests/conformance/rpc_conformance.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;

TEST_F(RpcConformance, ContractComputesOnResidentTensors) {
  v1::Result result;
  ASSERT_THAT(Contract(Contraction(Filled({2, 2}), Filled({2, 2})), &result),
              IsOk());
  EXPECT_EQ(result.tensor().state(), v1::TENSOR_STATE_READY);
  EXPECT_THAT(result.report().kernel(),
              HasSubstr(KernelPrefix() + ".contract."));
  // First mode fastest: a = [0 2; 1 3], so a * a = [2 6; 3 11].
  EXPECT_EQ(Values(result.tensor().name()), (std::vector<float>{2, 3, 6, 11}));
}

TEST_F(RpcConformance, SmallJobIsOneRoundTrip) {
  const std::vector<float> v = {1, 2, 3};
  v1::ReduceRequest request;
  request.set_session(session_);
  v1::InlineTensor& sent = *request.mutable_a()->mutable_inline_();
  sent.set_element_type(v1::ELEMENT_TYPE_FLOAT32);
  sent.mutable_layout()->add_extents(3);
  sent.set_data(v.data(), 12);
  request.mutable_a()->add_modes(0);
  request.mutable_d()->set_inline_(true);
  request.set_op(v1::BINARY_OPERATOR_ADD);
  v1::ReduceResponse response;
  const auto reduce = [&] {
    return Unary(&v1::ComputeService::Stub::Reduce, *compute_, request,
                 &response);
  };
  ASSERT_THAT(reduce(), IsOk());
  float sum;
  ASSERT_EQ(response.result().data().size(), 4u);
  std::memcpy(&sum, response.result().data().data(), 4);
  EXPECT_EQ(sum, 6.0f);
  EXPECT_EQ(response.result().tensor().name(), "");
  EXPECT_EQ(server_.used_bytes(), 0);
  sent.set_data(v.data(), 8);
  EXPECT_THAT(reduce(),
              FailsWith(grpc::INVALID_ARGUMENT, "INLINE_SIZE_MISMATCH"));
  sent.mutable_layout()->set_extents(0, 1 << 19);
  sent.set_data(std::string(4 << 19, '\0'));
  EXPECT_THAT(reduce(), FailsWith(grpc::INVALID_ARGUMENT, "INLINE_TOO_LARGE"));
  request.clear_op();
  EXPECT_THAT(reduce(), FailsWith(grpc::INVALID_ARGUMENT, "OPERATOR_MISSING"));
}

TEST_F(RpcConformance, NewTensorsComeWithTheirDataIfAskedTo) {
  const std::vector<float> wanted = {2, 3, 6, 11};
  for (const std::string id : {"", "named"}) {
    v1::ContractRequest request = Contraction(Filled({2, 2}), Filled({2, 2}));
    request.mutable_d()->set_tensor_id(id);
    request.mutable_d()->set_with_data(true);
    v1::Result result;
    ASSERT_THAT(Contract(request, &result), IsOk());
    EXPECT_EQ(Values(result.tensor().name()), wanted);
    ASSERT_EQ(result.data().size(), 16u);
    EXPECT_EQ(std::memcmp(result.data().data(), wanted.data(), 16), 0);
  }
  // One that is there has its contents there.
  v1::ContractRequest request = Contraction(Filled({2, 2}), Filled({2, 2}));
  request.mutable_d()->set_tensor(Filled({2, 2}));
  request.mutable_d()->clear_order();
  request.mutable_d()->set_with_data(true);
  v1::Result result;
  ASSERT_THAT(Contract(request, &result), IsOk());
  EXPECT_EQ(result.data(), "");
}

TEST_F(RpcConformance, ElementwiseCombinesThreeOperands) {
  v1::ElementwiseRequest request;
  request.set_session(session_);
  const std::string x = Filled({2, 2});
  *request.mutable_a() = Named(x, {1, 2});
  *request.mutable_b() = Named(x, {2, 1});
  *request.mutable_c() = Named(x, {1, 2});
  *request.mutable_d() = New({1, 2});
  request.set_op_ab(v1::BINARY_OPERATOR_MUL);
  request.set_op_abc(v1::BINARY_OPERATOR_ADD);
  request.mutable_gamma()->set_real(10);
  v1::ElementwiseResponse response;
  const auto elementwise = [&] {
    return Unary(&v1::ComputeService::Stub::Elementwise, *compute_, request,
                 &response);
  };
  ASSERT_THAT(elementwise(), IsOk());
  EXPECT_EQ(Values(response.result().tensor().name()),
            (std::vector<float>{0, 12, 22, 39}));
  request.clear_op_abc();
  EXPECT_THAT(elementwise(),
              FailsWith(grpc::INVALID_ARGUMENT, "OPERATOR_MISSING"));
}

TEST_F(RpcConformance, ComparisonsGiveBoolsAndWhereTakesThem) {
  v1::ElementwiseRequest request;
  request.set_session(session_);
  const std::string x = Filled({2, 2});  // 0, 1, 2, 3
  *request.mutable_a() = Named(x, {1, 2});
  *request.mutable_c() = Named(x, {2, 1});
  *request.mutable_d() = New({1, 2});
  request.set_op_abc(v1::BINARY_OPERATOR_LESS_EQUAL);
  v1::ElementwiseResponse response;
  const auto elementwise = [&] {
    return Unary(&v1::ComputeService::Stub::Elementwise, *compute_, request,
                 &response);
  };
  ASSERT_THAT(elementwise(), IsOk());
  const v1::Tensor condition = response.result().tensor();
  EXPECT_EQ(condition.element_type(), v1::ELEMENT_TYPE_BOOL);
  v1::DownloadTensorRequest download;
  download.set_tensor(condition.name());
  std::string bytes;
  ASSERT_THAT(Download(download, &bytes), IsOk());
  EXPECT_EQ(bytes, std::string("\1\1\0\1", 4));

  request.set_op_abc(v1::BINARY_OPERATOR_WHERE);
  *request.mutable_b() = Named(condition.name(), {1, 2});
  request.mutable_gamma()->set_real(-10);
  ASSERT_THAT(elementwise(), IsOk());
  EXPECT_EQ(Values(response.result().tensor().name()),
            (std::vector<float>{0, 1, -10, 3}));
  *request.mutable_b() = Named(x, {1, 2});
  EXPECT_THAT(elementwise(),
              FailsWith(grpc::INVALID_ARGUMENT, "CONDITION_NOT_BOOL"));
  request.clear_b();
  request.set_op_abc(v1::BINARY_OPERATOR_EQUAL);
  request.mutable_d()->set_element_type(v1::ELEMENT_TYPE_FLOAT32);
  EXPECT_THAT(elementwise(),
              FailsWith(grpc::INVALID_ARGUMENT, "RESULT_NOT_BOOL"));

  v1::ReduceRequest reduce;
  reduce.set_session(session_);
  *reduce.mutable_a() = Named(x, {1, 2});
  *reduce.mutable_d() = New({});
  reduce.set_op(v1::BINARY_OPERATOR_DIV);
  v1::ReduceResponse reduced;
  EXPECT_THAT(
      Unary(&v1::ComputeService::Stub::Reduce, *compute_, reduce, &reduced),
      FailsWith(grpc::INVALID_ARGUMENT, "OPERATOR_DOES_NOT_REDUCE"));
}

TEST_F(RpcConformance, TakeRefusesIndicesThatThereAreNot) {
  v1::ElementwiseRequest request;
  request.set_session(session_);
  const std::string x = Filled({3, 2});  // 0 to 2, 3 to 5
  *request.mutable_a() = Named(x, {1, 2});
  v1::Operand& indices = *request.mutable_b();
  indices.add_modes(3);
  const auto set_indices = [&](std::vector<int64_t> values) {
    indices.mutable_inline_()->set_element_type(v1::ELEMENT_TYPE_INT64);
    v1::Layout& layout = *indices.mutable_inline_()->mutable_layout();
    layout.clear_extents();
    layout.add_extents(std::ssize(values));
    indices.mutable_inline_()->set_data(values.data(),
                                        values.size() * sizeof(int64_t));
  };
  set_indices({2, 0, -1, -3});
  *request.mutable_d() = New({3, 2});
  request.set_op_abc(v1::BINARY_OPERATOR_TAKE);
  request.mutable_gamma()->set_real(0);
  v1::ElementwiseResponse response;
  const auto elementwise = [&] {
    return Unary(&v1::ComputeService::Stub::Elementwise, *compute_, request,
                 &response);
  };
  ASSERT_THAT(elementwise(), IsOk());
  EXPECT_EQ(Values(response.result().tensor().name()),
            (std::vector<float>{2, 0, 2, 0, 5, 3, 5, 3}));
  for (const int64_t index : {int64_t{3}, int64_t{-4}, INT64_MAX, INT64_MIN}) {
    set_indices({2, index, 0});
    const Outcome refused = elementwise();
    EXPECT_THAT(refused,
                FailsWith(grpc::INVALID_ARGUMENT, "INDEX_OUT_OF_RANGE"));
    EXPECT_THAT(refused.status.error_message(),
                HasSubstr(absl::StrCat(
                    "index ", index,
                    " in b is out of range: the mode of a "
                    "that is taken from has extent 3, wanted -3 to 2")));
  }
  // With a c it is taken instead.
  *request.mutable_c() = Named(Filled({2}), {2});
  request.mutable_gamma()->set_real(-10);
  ASSERT_THAT(elementwise(), IsOk());
  EXPECT_EQ(Values(response.result().tensor().name()),
            (std::vector<float>{2, 0, 0, 5, -10, 3}));
  // And of a d that is there nothing may be taken.
  request.mutable_d()->Clear();
  request.mutable_d()->set_tensor(x);
  request.mutable_d()->add_modes(3);
  request.mutable_d()->add_modes(2);
  set_indices({2, 1, 0});
  EXPECT_THAT(elementwise(),
              FailsWith(grpc::INVALID_ARGUMENT, "OUTPUT_OVERLAPS_INPUT"));
  request.clear_a();
  EXPECT_THAT(elementwise(),
              FailsWith(grpc::INVALID_ARGUMENT, "INPUT_MISSING"));
}

TEST_F(RpcConformance, ReductionsGoAlongAMode) {
  v1::ReduceRequest request;
  request.set_session(session_);
  *request.mutable_a() = Named(Filled({3, 2}), {1, 2});  // 0 to 2, 3 to 5
  *request.mutable_d() = New({1, 2});
  request.set_op(v1::BINARY_OPERATOR_ADD);
  request.mutable_along()->set_mode(1);
  v1::ReduceResponse response;
  const auto reduce = [&] {
    return Unary(&v1::ComputeService::Stub::Reduce, *compute_, request,
                 &response);
  };
  ASSERT_THAT(reduce(), IsOk());
  EXPECT_EQ(Values(response.result().tensor().name()),
            (std::vector<float>{0, 1, 3, 3, 7, 12}));
  request.mutable_along()->set_mode(2);
  request.mutable_alpha()->set_real(2);
  ASSERT_THAT(reduce(), IsOk());
  EXPECT_EQ(Values(response.result().tensor().name()),
            (std::vector<float>{0, 2, 4, 6, 10, 14}));
  request.clear_alpha();
  request.clear_op();
  request.mutable_along()->set_sorting(v1::SORTING_DESCENDING);
  ASSERT_THAT(reduce(), IsOk());
  const v1::Tensor& order = response.result().tensor();
  EXPECT_EQ(order.element_type(), v1::ELEMENT_TYPE_INT64);
  v1::DownloadTensorRequest download;
  download.set_tensor(order.name());
  std::string bytes;
  ASSERT_THAT(Download(download, &bytes), IsOk());
  std::vector<int64_t> indices(6);
  ASSERT_EQ(bytes.size(), sizeof(int64_t) * indices.size());
  std::memcpy(indices.data(), bytes.data(), bytes.size());
  EXPECT_EQ(indices, (std::vector<int64_t>{1, 1, 1, 0, 0, 0}));

  request.mutable_d()->set_element_type(v1::ELEMENT_TYPE_FLOAT32);
  EXPECT_THAT(reduce(), FailsWith(grpc::UNIMPLEMENTED, "TYPES_NOT_SUPPORTED"));
  *request.mutable_d() = New({1});
  EXPECT_THAT(reduce(),
              FailsWith(grpc::INVALID_ARGUMENT, "MODE_NOT_IN_OUTPUT"));
  request.mutable_along()->set_mode(9);
  EXPECT_THAT(reduce(), FailsWith(grpc::INVALID_ARGUMENT, "MODE_NOT_IN_INPUT"));
  request.mutable_along()->set_sorting(static_cast<v1::Sorting>(77));
  EXPECT_THAT(reduce(), FailsWith(grpc::INVALID_ARGUMENT, "ENUM_UNKNOWN"));
}

TEST_F(RpcConformance, OperationsRefuseWhatDoesNotFitTogether) {
  const std::string a = Filled({2, 3});
  const std::string b = Filled({3, 4});
  const std::string scalar = Filled({});
  using Edit = std::function<void(v1::ContractRequest&)>;
  struct Case {
    grpc::StatusCode code;
    std::string reason;
    Edit edit;
    std::string message;
  };
  const std::vector<Case> cases = {
      {grpc::INVALID_ARGUMENT, "MODE_EXTENT_MISMATCH",
       [&](auto& q) { q.mutable_b()->set_tensor(a); },
       "mode 'k' has extent 3 in a but 2 in b"},
      {grpc::INVALID_ARGUMENT, "MODE_REPEATED",
       [](auto& q) { q.mutable_a()->set_modes(1, 'i'); }, "'i'"},
      {grpc::INVALID_ARGUMENT, "MODE_EXTENT_UNKNOWN",
       [](auto& q) { q.mutable_d()->set_modes(0, 'z'); }, "'z'"},
      {grpc::INVALID_ARGUMENT, "MODE_COUNT_MISMATCH",
       [](auto& q) { q.mutable_a()->add_modes('x'); }, "'x'"},
      {grpc::INVALID_ARGUMENT, "INPUT_MISSING", [](auto& q) { q.clear_a(); },
       "alpha"},
      {grpc::INVALID_ARGUMENT, "INPUT_MISSING",
       [](auto& q) { q.mutable_beta()->set_real(2); }, "beta"},
      {grpc::INVALID_ARGUMENT, "OPERAND_EMPTY",
       [](auto& q) { q.mutable_a()->clear_source(); }, ""},
      {grpc::INVALID_ARGUMENT, "OPERATOR_NOT_LINEAR",
       [](auto& q) {
         q.mutable_a()->set_unary_operator(v1::UNARY_OPERATOR_SQRT);
       },
       "SQRT"},
      {grpc::INVALID_ARGUMENT, "SCALAR_NOT_REAL",
       [](auto& q) { q.mutable_alpha()->set_imaginary(1); }, "alpha"},
      {grpc::INVALID_ARGUMENT, "ENUM_UNKNOWN",
       [](auto& q) { q.set_compute_type(static_cast<v1::ComputeType>(99)); },
       "99"},
      {grpc::INVALID_ARGUMENT, "OUTPUT_OVERLAPS_INPUT",
       [&](auto& q) {
         q.clear_d();
         q.mutable_d()->set_tensor(a);
         q.mutable_d()->add_modes('i');
         q.mutable_d()->add_modes('j');
         *q.mutable_b() = Named(Filled({3, 3}), {'k', 'j'});
       },
       "a"},
      {grpc::INVALID_ARGUMENT, "OUTPUT_AMBIGUOUS",
       [&](auto& q) {
         q.mutable_d()->set_tensor(a);
         q.mutable_d()->set_tensor_id("x");
       },
       ""},
      {grpc::UNIMPLEMENTED, "TYPES_NOT_SUPPORTED",
       [](auto& q) { q.mutable_d()->set_element_type(v1::ELEMENT_TYPE_INT8); },
       "nearest: (float32, float32, float32)"},
      {grpc::UNIMPLEMENTED, "TYPES_NOT_SUPPORTED",
       [](auto& q) { q.set_compute_type(v1::COMPUTE_TYPE_FLOAT64); },
       "nearest"},
      {grpc::NOT_FOUND, "KERNEL_NOT_FOUND",
       [](auto& q) { q.mutable_options()->set_kernel("magic"); },
       ".contract.reference"},
      {grpc::INVALID_ARGUMENT, "WORKSPACE_LIMIT_NEGATIVE",
       [](auto& q) { q.mutable_options()->set_workspace_limit_bytes(-1); },
       "-1"},
      {grpc::NOT_FOUND, "TENSOR_NOT_FOUND",
       [&](auto& q) { q.mutable_a()->set_tensor(session_ + "/tensors/none"); },
       "none"},
      {grpc::NOT_FOUND, "TENSOR_NOT_FOUND",
       [](auto& q) { q.mutable_a()->set_tensor("sessions/other/tensors/t"); },
       "other"},
      {grpc::INVALID_ARGUMENT, "TENSOR_NAME_MALFORMED",
       [](auto& q) { q.mutable_a()->set_tensor("t"); }, "'t'"},
      {grpc::INVALID_ARGUMENT, "TOO_MANY_MODES",
       [](auto& q) {
         for (int i = 0; i < 100000; ++i) q.mutable_d()->add_modes(i);
       },
       "d has 100002 modes"},
      {grpc::INVALID_ARGUMENT, "OUTPUT_AMBIGUOUS",
       [](auto& q) {
         q.mutable_d()->set_inline_(true);
         q.mutable_d()->set_tensor_id("x");
       },
       "inline"},
      {grpc::NOT_FOUND, "SESSION_NOT_FOUND",
       [](auto& q) { q.set_session("sessions/none"); }, ""},
  };
  const int64_t before = server_.used_bytes();
  for (const Case& c : cases) {
    v1::ContractRequest request = Contraction(a, b);
    c.edit(request);
    const Outcome outcome = Contract(request);
    EXPECT_THAT(outcome, FailsWith(c.code, c.reason))
        << request.ShortDebugString();
    EXPECT_THAT(outcome.status.error_message(), HasSubstr(c.message));
  }
  // One case filled a 3 x 3 tensor; nothing else may remain.
  EXPECT_EQ(server_.used_bytes(), before + 9 * 4);
  EXPECT_THAT(Contract(Contraction(a, b)), IsOk());
}

TEST_F(RpcConformance, InputWithoutContentsIsRefused) {
  v1::Tensor empty;
  ASSERT_THAT(Create(CreateRequest({2, 2}), &empty), IsOk());
  EXPECT_THAT(Contract(Contraction(empty.name(), Filled({2, 2}))),
              FailsWith(grpc::FAILED_PRECONDITION, "TENSOR_NOT_READY"));
}

TEST_F(RpcConformance, FactorOfZeroNeedsNoInput) {  // A4.13, C25
  v1::ContractRequest request = Contraction("", "");
  request.clear_a();
  request.clear_b();
  request.mutable_alpha();
  *request.mutable_c() = Named(Filled({2, 2}), {'i', 'j'});
  request.mutable_beta()->set_real(3);
  v1::Result result;
  ASSERT_THAT(Contract(request, &result), IsOk());
  EXPECT_EQ(Values(result.tensor().name()), (std::vector<float>{0, 3, 6, 9}));
}

TEST_F(RpcConformance, RequestsOfOneSessionTakeEffectInOrder) {
  // Each step names the output of the one before, without waiting for it.
  const std::string a = Filled({300, 300});
  Blocker blocker(server_.device().worker());
  grpc::CompletionQueue queue;
  struct Step {
    grpc::ClientContext context;
    v1::PermuteResponse response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::PermuteResponse>> call;
  };
  std::vector<std::unique_ptr<Step>> steps;
  std::string input = a;
  for (int i = 0; i < 3; ++i) {
    v1::PermuteRequest request = Permutation(input);
    request.mutable_d()->set_tensor_id(absl::StrCat("step", i));
    input = absl::StrCat(session_, "/tensors/step", i);
    auto step = std::make_unique<Step>();
    step->call = compute_->AsyncPermute(&step->context, request, &queue);
    step->call->Finish(&step->response, &step->status, step.get());
    steps.push_back(std::move(step));
    AwaitQueued(i + 1);
  }
  blocker.Release();
  void* tag = nullptr;
  bool ok = false;
  for (size_t i = 0; i < steps.size(); ++i) ASSERT_TRUE(queue.Next(&tag, &ok));
  for (const auto& step : steps) {
    EXPECT_TRUE(step->status.ok()) << step->status.error_message();
  }
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  const std::vector<float> once = Values(session_ + "/tensors/step0");
  EXPECT_EQ(Values(session_ + "/tensors/step2"), once);
}

TEST_F(RpcConformance, DeadlineIsHonouredWhileQueued) {
  const std::string a = Filled({2, 2});
  Blocker blocker(server_.device().worker());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(1));
  v1::ContractRequest request = Contraction(a, a);
  request.mutable_d()->set_tensor_id("never");
  std::thread caller([&] {
    v1::ContractResponse response;
    EXPECT_EQ(compute_->Contract(&context, request, &response).error_code(),
              grpc::DEADLINE_EXCEEDED);
  });
  const auto queued = [&] {
    return server_.device().worker().statistics().queued_count;
  };
  EXPECT_TRUE(Soon([&] { return queued() == 1; }));
  caller.join();
  // The server takes the operation out of the queue, and its output goes.
  EXPECT_TRUE(Soon(
      [&] { return queued() == 0 && server_.sessions().tensor_count() == 1; }));
  blocker.Release();
  EXPECT_EQ(Describe(a).state(), v1::TENSOR_STATE_READY);
}

TEST_F(RpcConformance, CancelledOperationLeavesItsOutputAsItWas) {
  const std::string a = Filled({2, 2});
  const std::string d = Filled({2, 2});
  Blocker blocker(server_.device().worker());
  grpc::ClientContext context;
  v1::ContractRequest request = Contraction(a, a);
  request.mutable_d()->set_tensor(d);
  std::thread caller([&] {
    v1::ContractResponse response;
    EXPECT_EQ(compute_->Contract(&context, request, &response).error_code(),
              grpc::CANCELLED);
  });
  EXPECT_TRUE(
      Soon([&] { return Describe(d).state() == v1::TENSOR_STATE_PENDING; }));
  context.TryCancel();
  caller.join();
  const absl::Time limit = absl::Now() + absl::Seconds(10);
  while (Describe(d).state() != v1::TENSOR_STATE_READY && absl::Now() < limit) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  blocker.Release();
  EXPECT_EQ(Values(d), (std::vector<float>{0, 1, 2, 3}));
}

TEST_F(RpcConformance, FullQueueIsRefusedAtOnce) {
  const std::string a = Filled({2, 2});
  Blocker blocker(server_.device().worker());
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back(
        [&] { EXPECT_THAT(Contract(Contraction(a, a)), IsOk()); });
  }
  AwaitQueued(4);
  EXPECT_THAT(Contract(Contraction(a, a)),
              FailsWith(grpc::RESOURCE_EXHAUSTED, "QUEUE_FULL"));
  blocker.Release();
  for (std::thread& caller : callers) caller.join();
}

TEST_F(RpcConformance, DeletedTensorLivesUntilItsLastUserIsDone) {
  const std::string a = Filled({2, 2});
  Blocker blocker(server_.device().worker());
  std::thread caller([&] { EXPECT_THAT(Contract(Contraction(a, a)), IsOk()); });
  AwaitQueued(1);
  EXPECT_THAT(Delete(a), IsOk());
  blocker.Release();
  caller.join();
}

TEST_F(RpcConformance, OperationBeyondTheQuotaLeavesNothingBehind) {
  v1::OpenSessionRequest open;
  open.set_memory_quota_bytes(1 << 20);
  v1::OpenSessionResponse opened;
  ASSERT_THAT(Open(open, &opened), IsOk());
  session_ = opened.session().name();
  const std::string a = Filled({400, 400});
  v1::ContractRequest request = Contraction(a, a);
  request.mutable_a()->set_modes(1, 'x');  // outer product: 400^4 elements
  request.mutable_d()->add_modes('x');
  request.mutable_d()->add_modes('k');
  EXPECT_THAT(Contract(request),
              FailsWith(grpc::RESOURCE_EXHAUSTED, "MEMORY_LIMIT"));
  EXPECT_EQ(server_.sessions().tensor_count(), 1);
  EXPECT_EQ(server_.used_bytes(), 400 * 400 * 4);
}

// In place, so that a measurement that wrote to d would change the result.
TEST_F(RpcConformance, MeasuredKernelsAreChosenOnceAndComputeOnce) {
  const std::string a = Filled({8, 8});
  const std::string c = Filled({8, 8});
  v1::ContractRequest request = Contraction(a, a);
  request.mutable_d()->set_tensor(c);
  *request.mutable_c() = Named(c, {'i', 'j'});
  request.mutable_beta()->set_real(2);
  std::vector<float> expected = Values(c);
  const std::vector<float> values = Values(a);
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) {
      float& sum = expected[i + 8 * j];  // small integers: exact
      sum *= 2;
      for (int k = 0; k < 8; ++k) sum += values[i + 8 * k] * values[k + 8 * j];
    }
  }
  request.mutable_options()->set_selection(v1::SELECTION_MEASURE);
  const int64_t before = server_.used_bytes();
  v1::ContractResponse response;
  ASSERT_THAT(
      Unary(&v1::ComputeService::Stub::Contract, *compute_, request, &response),
      IsOk());
  EXPECT_FALSE(response.result().report().plan_cache_hit());
  EXPECT_EQ(Values(c), expected);
  EXPECT_EQ(server_.used_bytes(), before);
  const std::string kernel = response.result().report().kernel();
  EXPECT_NE(kernel, "");

  ASSERT_THAT(
      Unary(&v1::ComputeService::Stub::Contract, *compute_, request, &response),
      IsOk());
  EXPECT_TRUE(response.result().report().plan_cache_hit());
  EXPECT_EQ(response.result().report().kernel(), kernel);
  v1::ExplainPlanRequest explain;
  *explain.mutable_contract() = request;
  v1::ExplainPlanResponse explained;
  ASSERT_THAT(
      Unary(&v1::PlanService::Stub::ExplainPlan, *plans_, explain, &explained),
      IsOk());
  EXPECT_EQ(explained.kernel(), kernel);
  EXPECT_TRUE(explained.plan_cache_hit());
}

TEST_F(RpcConformance, MeasuringIsRefusedWhereItCannotBe) {
  const std::string a = Filled({2, 2});
  v1::ContractRequest request = Contraction(a, a);
  request.mutable_options()->set_selection(v1::SELECTION_MEASURE);
  request.mutable_options()->set_deterministic(true);
  EXPECT_THAT(Contract(request),
              FailsWith(grpc::INVALID_ARGUMENT, "SELECTION_CONFLICTS"));
  request.mutable_options()->set_deterministic(false);
  request.mutable_options()->set_selection(static_cast<v1::Selection>(9));
  const Outcome unknown = Contract(request);
  EXPECT_THAT(unknown, FailsWith(grpc::INVALID_ARGUMENT, "ENUM_UNKNOWN"));
  EXPECT_EQ(unknown.status.error_message(),
            "selection is 9, wanted one of 1 (HEURISTIC), 2 (MEASURE), "
            "3 (INCREMENTAL)");
}

TEST_F(RpcConformance, MeasuringNeedsMemoryForASecondOutput) {
  v1::OpenSessionRequest open;
  open.set_memory_quota_bytes(100000);
  v1::OpenSessionResponse opened;
  ASSERT_THAT(Open(open, &opened), IsOk());
  session_ = opened.session().name();
  const std::string a = Filled({100, 100});  // 40000 bytes
  v1::ContractRequest request = Contraction(a, a);
  request.mutable_options()->set_selection(v1::SELECTION_MEASURE);
  EXPECT_THAT(Contract(request),
              FailsWith(grpc::RESOURCE_EXHAUSTED, "MEMORY_LIMIT"));
  EXPECT_EQ(server_.used_bytes(), 40000);
  request.mutable_options()->clear_selection();
  EXPECT_THAT(Contract(request), IsOk());
}

}  // namespace
}  // namespace tensord
