// PlanService and ExecutePlan: success, each documented error, tuning.
#include <algorithm>
#include <limits>

#include "tests/conformance/rpc_conformance.h"

namespace tensord {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RpcPlanTest : public RpcConformance {
 protected:
  Outcome CreatePlan(const v1::CreatePlanRequest& request,
                     v1::Plan* plan = nullptr) {
    v1::CreatePlanResponse response;
    const Outcome outcome =
        Unary(&v1::PlanService::Stub::CreatePlan, *plans_, request, &response);
    if (plan != nullptr) *plan = response.plan();
    return outcome;
  }
  v1::Plan PlanOf(const v1::ContractRequest& contract) {
    v1::CreatePlanRequest request;
    *request.mutable_contract() = contract;
    v1::Plan plan;
    EXPECT_THAT(CreatePlan(request, &plan), IsOk());
    return plan;
  }
  Outcome Execute(const v1::ExecutePlanRequest& request,
                  v1::Result* result = nullptr) {
    v1::ExecutePlanResponse response;
    const Outcome outcome = Unary(&v1::ComputeService::Stub::ExecutePlan,
                                  *compute_, request, &response);
    if (result != nullptr) *result = response.result();
    return outcome;
  }
  static v1::ExecutePlanRequest Executing(const v1::Plan& plan,
                                          const std::string& a,
                                          const std::string& b) {
    v1::ExecutePlanRequest request;
    request.set_plan(plan.name());
    request.mutable_a()->set_tensor(a);
    request.mutable_b()->set_tensor(b);
    return request;
  }
  v1::Plan DescribePlan(const std::string& name) {
    v1::DescribePlanRequest request;
    request.set_plan(name);
    v1::DescribePlanResponse response;
    EXPECT_THAT(Unary(&v1::PlanService::Stub::DescribePlan, *plans_, request,
                      &response),
                IsOk());
    return response.plan();
  }
};

TEST_F(RpcPlanTest, IsMadeOnceAndRunOften) {
  const std::string a = Filled({2, 2});
  const v1::Plan plan = PlanOf(Contraction(a, a));
  EXPECT_EQ(plan.name(), session_ + "/plans/p1");
  EXPECT_EQ(plan.operation(), "contract");
  EXPECT_EQ(plan.device(), server_.device().info().name);
  EXPECT_EQ(plan.selection(), v1::SELECTION_HEURISTIC);
  EXPECT_THAT(plan.a().layout().strides(), ElementsAre(1, 2));
  EXPECT_THAT(plan.a().modes(), ElementsAre('i', 'k'));
  EXPECT_THAT(plan.d().layout().extents(), ElementsAre(2, 2));
  EXPECT_FALSE(plan.has_c());
  EXPECT_EQ(plan.explanation().flops(), 16);
  EXPECT_FALSE(plan.explanation().kernel().empty());
  EXPECT_LE(plan.min_workspace_bytes(), plan.explanation().workspace_bytes());
  EXPECT_GE(plan.max_workspace_bytes(), plan.explanation().workspace_bytes());

  v1::Result result;
  ASSERT_THAT(Execute(Executing(plan, a, a), &result), IsOk());
  EXPECT_EQ(Values(result.tensor().name()), (std::vector<float>{2, 3, 6, 11}));
  EXPECT_EQ(result.report().kernel(), plan.explanation().kernel());
  EXPECT_TRUE(result.report().plan_cache_hit());

  v1::ExecutePlanRequest request = Executing(plan, a, a);
  request.mutable_alpha()->set_real(10);
  request.set_d(result.tensor().name());
  ASSERT_THAT(Execute(request, &result), IsOk());
  EXPECT_EQ(Values(result.tensor().name()),
            (std::vector<float>{20, 30, 60, 110}));
  EXPECT_EQ(DescribePlan(plan.name()).execution_count(), 2);
}

TEST_F(RpcPlanTest, OperandsMayBeDescribedAndSentInline) {
  v1::CreatePlanRequest request;
  request.set_plan_id("sum");
  v1::ReduceRequest& reduce = *request.mutable_reduce();
  reduce.set_session(session_);
  v1::InlineTensor& like = *reduce.mutable_a()->mutable_inline_();
  like.set_element_type(v1::ELEMENT_TYPE_FLOAT32);
  like.mutable_layout()->add_extents(3);
  reduce.mutable_a()->add_modes(0);
  reduce.mutable_d();
  reduce.set_op(v1::BINARY_OPERATOR_ADD);
  v1::Plan plan;
  ASSERT_THAT(CreatePlan(request, &plan), IsOk());
  EXPECT_EQ(plan.name(), session_ + "/plans/sum");
  EXPECT_EQ(server_.used_bytes(), 0);

  const std::vector<float> values = {1, 2, 3};
  v1::ExecutePlanRequest execute;
  execute.set_plan(plan.name());
  execute.mutable_a()->set_data(values.data(), 12);
  execute.set_inline_(true);
  v1::Result result;
  ASSERT_THAT(Execute(execute, &result), IsOk());
  float sum;
  ASSERT_EQ(result.data().size(), sizeof(sum));
  std::memcpy(&sum, result.data().data(), sizeof(sum));
  EXPECT_EQ(sum, 6);
  execute.mutable_a()->set_data(values.data(), 8);
  EXPECT_THAT(Execute(execute),
              FailsWith(grpc::INVALID_ARGUMENT, "INLINE_SIZE_MISMATCH"));
  execute.mutable_a()->set_data("");
  EXPECT_THAT(Execute(execute),
              FailsWith(grpc::INVALID_ARGUMENT, "INLINE_SIZE_MISMATCH"));
  EXPECT_THAT(CreatePlan(request),
              FailsWith(grpc::ALREADY_EXISTS, "PLAN_ALREADY_EXISTS"));
}

TEST_F(RpcPlanTest, RefusesOperandsUnlikeItsOwn) {
  const std::string a = Filled({4, 4});
  const v1::Plan plan = PlanOf(Contraction(a, a));
  using Edit = std::function<void(v1::ExecutePlanRequest&)>;
  struct Case {
    grpc::StatusCode code;
    std::string reason;
    std::string message;
    Edit edit;
  };
  v1::CreateTensorRequest doubles = CreateRequest({4, 4});
  doubles.set_element_type(v1::ELEMENT_TYPE_FLOAT64);
  v1::Tensor other_type, other_strides;
  ASSERT_THAT(Create(doubles, &other_type), IsOk());
  ASSERT_THAT(Create(CreateRequest({4, 4}, {4, 1}), &other_strides), IsOk());
  const std::string other_extents = Filled({4, 5});
  const std::vector<Case> cases = {
      {grpc::NOT_FOUND, "PLAN_NOT_FOUND", "none",
       [&](auto& q) { q.set_plan(session_ + "/plans/none"); }},
      {grpc::INVALID_ARGUMENT, "PLAN_NAME_MALFORMED", "",
       [](auto& q) { q.set_plan("none"); }},
      {grpc::NOT_FOUND, "SESSION_NOT_FOUND", "",
       [](auto& q) { q.set_plan("sessions/none/plans/p1"); }},
      {grpc::NOT_FOUND, "TENSOR_NOT_FOUND", "",
       [&](auto& q) { q.mutable_a()->set_tensor(session_ + "/tensors/no"); }},
      {grpc::INVALID_ARGUMENT, "PLAN_OPERAND_DIFFERS",
       "operand b has extents (4, 5), plan",
       [&](auto& q) { q.mutable_b()->set_tensor(other_extents); }},
      {grpc::INVALID_ARGUMENT, "PLAN_OPERAND_DIFFERS",
       "operand a has strides (4, 1), plan",
       [&](auto& q) { q.mutable_a()->set_tensor(other_strides.name()); }},
      {grpc::INVALID_ARGUMENT, "PLAN_OPERAND_DIFFERS", "float64 elements",
       [&](auto& q) { q.mutable_a()->set_tensor(other_type.name()); }},
      {grpc::INVALID_ARGUMENT, "PLAN_OPERAND_DIFFERS", "operand d",
       [&](auto& q) { q.set_d(other_strides.name()); }},
      {grpc::INVALID_ARGUMENT, "PLAN_HAS_NO_OPERAND", "operand c",
       [&](auto& q) { q.mutable_c()->set_tensor(a); }},
      {grpc::INVALID_ARGUMENT, "PLAN_HAS_NO_FACTOR", "factor gamma",
       [](auto& q) { q.mutable_gamma()->set_real(5); }},
      {grpc::INVALID_ARGUMENT, "INPUT_MISSING", "operand b",
       [](auto& q) { q.clear_b(); }},
      {grpc::INVALID_ARGUMENT, "OPERAND_EMPTY", "operand a",
       [](auto& q) { q.mutable_a()->clear_source(); }},
      {grpc::INVALID_ARGUMENT, "OUTPUT_AMBIGUOUS", "",
       [](auto& q) {
         q.set_inline_(true);
         q.set_tensor_id("x");
       }},
      {grpc::INVALID_ARGUMENT, "OUTPUT_OVERLAPS_INPUT", "",
       [&](auto& q) { q.set_d(a); }},
  };
  for (const Case& c : cases) {
    v1::ExecutePlanRequest request = Executing(plan, a, a);
    c.edit(request);
    const Outcome outcome = Execute(request);
    EXPECT_THAT(outcome, FailsWith(c.code, c.reason))
        << request.ShortDebugString();
    EXPECT_THAT(outcome.status.error_message(), HasSubstr(c.message));
  }
  EXPECT_THAT(Execute(Executing(plan, a, a)), IsOk());
  // A factor of 0 spares its operands.
  v1::ExecutePlanRequest nothing;
  nothing.set_plan(plan.name());
  nothing.mutable_alpha()->set_real(0);
  v1::Result result;
  ASSERT_THAT(Execute(nothing, &result), IsOk());
  EXPECT_THAT(Values(result.tensor().name()), Each(0));
}

TEST_F(RpcPlanTest, BelongsToItsSessionAndIsListedByName) {
  const std::string a = Filled({2, 2});
  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) {
    names.push_back(PlanOf(Contraction(a, a)).name());
  }
  v1::ListPlansRequest list;
  list.set_session(session_);
  list.set_page_size(2);
  v1::ListPlansResponse page;
  const auto next = [&] {
    return Unary(&v1::PlanService::Stub::ListPlans, *plans_, list, &page);
  };
  ASSERT_THAT(next(), IsOk());
  ASSERT_EQ(page.plans_size(), 2);
  EXPECT_EQ(page.plans(0).name(), names[0]);
  list.set_page_token(page.next_page_token());
  ASSERT_THAT(next(), IsOk());
  ASSERT_EQ(page.plans_size(), 1);
  EXPECT_EQ(page.plans(0).name(), names[2]);
  EXPECT_EQ(page.next_page_token(), "");
  list.set_page_size(-1);
  EXPECT_THAT(next(), FailsWith(grpc::INVALID_ARGUMENT, "PAGE_SIZE_NEGATIVE"));

  v1::DeletePlanRequest remove;
  remove.set_plan(names[1]);
  v1::DeletePlanResponse removed;
  const auto erase = [&] {
    return Unary(&v1::PlanService::Stub::DeletePlan, *plans_, remove, &removed);
  };
  ASSERT_THAT(erase(), IsOk());
  EXPECT_THAT(erase(), FailsWith(grpc::NOT_FOUND, "PLAN_NOT_FOUND"));
  v1::DescribePlanRequest describe;
  describe.set_plan(names[1]);
  v1::DescribePlanResponse described;
  EXPECT_THAT(Unary(&v1::PlanService::Stub::DescribePlan, *plans_, describe,
                    &described),
              FailsWith(grpc::NOT_FOUND, "PLAN_NOT_FOUND"));
  v1::CreatePlanRequest malformed;
  *malformed.mutable_contract() = Contraction(a, a);
  malformed.set_plan_id("a/b");
  EXPECT_THAT(CreatePlan(malformed),
              FailsWith(grpc::INVALID_ARGUMENT, "PLAN_ID_MALFORMED"));
  malformed.clear_contract();
  EXPECT_THAT(CreatePlan(malformed),
              FailsWith(grpc::INVALID_ARGUMENT, "OPERATION_MISSING"));
}

TEST_F(RpcPlanTest, IncrementalSelectionTimesOneMoreKernelAtEachExecution) {
  const std::string a = Filled({40, 30}), b = Filled({30, 20});
  v1::ContractRequest contract = Contraction(a, b);
  contract.mutable_options()->set_selection(v1::SELECTION_INCREMENTAL);
  const v1::Plan plan = PlanOf(contract);
  EXPECT_EQ(plan.selection(), v1::SELECTION_INCREMENTAL);
  v1::Result result;
  ASSERT_THAT(Contract(Contraction(a, b), &result), IsOk());
  const std::vector<float> wanted = Values(result.tensor().name());
  ASSERT_THAT(Execute(Executing(plan, a, b), &result), IsOk());
  const int wanted_samples = DescribePlan(plan.name()).wanted_sample_count();
  ASSERT_GT(wanted_samples, 1);
  std::set<std::string> kernels = {result.report().kernel()};
  for (int i = 1; i < wanted_samples; ++i) {
    // Through the operation itself, too: it is the same problem.
    ASSERT_THAT(i % 2 == 0 ? Execute(Executing(plan, a, b), &result)
                           : Contract(contract, &result),
                IsOk());
    kernels.insert(result.report().kernel());
    const std::vector<float> values = Values(result.tensor().name());
    ASSERT_EQ(values.size(), wanted.size());
    for (size_t k = 0; k < values.size(); ++k) {
      ASSERT_NEAR(values[k], wanted[k], 1e-5 * std::abs(wanted[k]) + 1e-5);
    }
  }
  const v1::Plan tuned = DescribePlan(plan.name());
  EXPECT_EQ(tuned.sample_count(), wanted_samples);
  EXPECT_EQ(tuned.wanted_sample_count(), wanted_samples);
  EXPECT_EQ(tuned.explanation().kernel().empty(), false);
  int measured = 0;
  for (const v1::KernelCandidate& candidate :
       tuned.explanation().candidates()) {
    measured += candidate.measured_nanoseconds() > 0;
  }
  EXPECT_EQ(measured, static_cast<int>(kernels.size()));
  for (int i = 0; i < 2; ++i) {
    ASSERT_THAT(Contract(contract, &result), IsOk());
    EXPECT_EQ(result.report().kernel(), tuned.explanation().kernel());
  }
  contract.mutable_options()->set_deterministic(true);
  EXPECT_THAT(Contract(contract),
              FailsWith(grpc::INVALID_ARGUMENT, "SELECTION_CONFLICTS"));
}

TEST_F(RpcPlanTest, WhatASessionLacksMemoryForOthersStillGet) {
  // Half precision: products that are matrices after copies only.
  const auto zeros = [&](const std::vector<int64_t>& extents) {
    v1::CreateTensorRequest create = CreateRequest(extents);
    create.set_element_type(v1::ELEMENT_TYPE_FLOAT16);
    v1::Tensor tensor;
    EXPECT_THAT(Create(create, &tensor), IsOk());
    const std::vector<float> bytes(static_cast<size_t>(tensor.span_bytes()) /
                                   4);
    EXPECT_THAT(Upload({Chunk(tensor.name(), 0, bytes)}), IsOk());
    return tensor.name();
  };
  const auto contraction = [&](v1::Selection selection) {
    v1::ContractRequest request;
    request.set_session(session_);
    *request.mutable_a() = Named(zeros({40, 3, 32}), {'k', 'x', 'i'});
    *request.mutable_b() = Named(zeros({32, 40, 3}), {'j', 'k', 'x'});
    *request.mutable_d() = New({'i', 'j'});
    request.mutable_options()->set_selection(selection);
    return request;
  };
  const v1::Plan plan = PlanOf(contraction(v1::SELECTION_HEURISTIC));
  ASSERT_GT(plan.max_workspace_bytes(), 0);
  double least = std::numeric_limits<double>::infinity();
  for (const auto& candidate : plan.explanation().candidates()) {
    if (candidate.refusal().empty()) {
      least = std::min(least, candidate.predicted_nanoseconds());
    }
  }
  const std::string rich = session_;
  for (const v1::Selection selection :
       {v1::SELECTION_INCREMENTAL, v1::SELECTION_MEASURE}) {
    v1::OpenSessionRequest open;
    // For operands and results, and for no workspace.
    open.set_memory_quota_bytes(2 * 7680 + 2 * 2048 + 512);
    v1::OpenSessionResponse opened;
    ASSERT_THAT(Open(open, &opened), IsOk());
    session_ = opened.session().name();
    const v1::ContractRequest poor = contraction(selection);
    for (int i = 0; i < 20; ++i) {
      v1::Result result;
      const Outcome outcome = Contract(poor, &result);
      if (!outcome.status.ok()) {
        ASSERT_THAT(outcome,
                    FailsWith(grpc::RESOURCE_EXHAUSTED, "MEMORY_LIMIT"));
      } else {
        ASSERT_THAT(Delete(result.tensor().name()), IsOk());
      }
    }
    ASSERT_THAT(Close(session_), IsOk());
    session_ = rich;
    const v1::ContractRequest request = contraction(selection);
    for (int i = 0; i < 100; ++i) {
      v1::Result result;
      ASSERT_THAT(Contract(request, &result), IsOk());
      ASSERT_THAT(Delete(result.tensor().name()), IsOk());
    }
    const v1::Plan chosen = PlanOf(request);
    int measured = 0, able = 0;
    for (const auto& candidate : chosen.explanation().candidates()) {
      const bool is_hopeless = candidate.predicted_nanoseconds() > 50 * least;
      if (!candidate.refusal().empty() || is_hopeless) continue;
      ++able;
      measured += candidate.measured_nanoseconds() > 0;
    }
    if (selection == v1::SELECTION_INCREMENTAL) {
      EXPECT_EQ(measured, able) << chosen.ShortDebugString();
    } else {
      EXPECT_GT(measured, 0);
    }
  }
}

TEST_F(RpcPlanTest, ViewsAreOperandsOfPlansLikeThem) {
  const std::string base = Filled({4, 4});
  v1::CreateViewRequest request;
  request.set_tensor(base);
  v1::IndexStage& stage = *request.add_stages()->mutable_index();
  stage.add_items()->mutable_slice()->set_stop(2);
  stage.add_items()->mutable_slice()->set_start(2);
  v1::CreateViewResponse view;
  ASSERT_THAT(
      Unary(&v1::ViewService::Stub::CreateView, *views_, request, &view),
      IsOk());
  const std::string& name = view.tensor().name();
  const v1::Plan plan = PlanOf(Contraction(name, name));
  EXPECT_THAT(plan.a().layout().strides(), ElementsAre(1, 4));
  v1::Result result;
  ASSERT_THAT(Execute(Executing(plan, name, name), &result), IsOk());
  // [8 12; 9 13] squared
  EXPECT_EQ(Values(result.tensor().name()),
            (std::vector<float>{172, 189, 252, 277}));
  EXPECT_THAT(Execute(Executing(plan, Filled({2, 2}), name)),
              FailsWith(grpc::INVALID_ARGUMENT, "PLAN_OPERAND_DIFFERS"));
}

TEST_F(RpcPlanTest, StridesOfModesOfExtentOneMeanNothing) {
  const std::string a = Filled({1, 3}), b = Filled({3, 2});
  const v1::Plan plan = PlanOf(Contraction(a, b));
  v1::Tensor other;
  ASSERT_THAT(Create(CreateRequest({1, 3}, {7, 1}), &other), IsOk());
  ASSERT_THAT(Upload({Chunk(other.name(), 0, std::vector<float>{0, 1, 2})}),
              IsOk());
  v1::Result result;
  ASSERT_THAT(Execute(Executing(plan, other.name(), b), &result), IsOk());
  EXPECT_EQ(Values(result.tensor().name()), (std::vector<float>{5, 14}));
}

TEST_F(RpcPlanTest, LookingAtPlansIsNoUseOfThem) {
  const std::string a = Filled({2, 2});
  const v1::Plan plan = PlanOf(Contraction(a, a));
  v1::Tensor empty;
  ASSERT_THAT(Create(CreateRequest({2, 2}), &empty), IsOk());
  EXPECT_THAT(Execute(Executing(plan, empty.name(), a)),
              FailsWith(grpc::FAILED_PRECONDITION, "TENSOR_NOT_READY"));
  const int64_t hits = server_.engine().plans().statistics().hit_count;
  EXPECT_EQ(DescribePlan(plan.name()).execution_count(), 0);
  EXPECT_EQ(DescribePlan(plan.name()).explanation().kernel(),
            plan.explanation().kernel());
  EXPECT_EQ(server_.engine().plans().statistics().hit_count, hits);
  // Also when the cache has forgotten it.
  server_.engine().plans().Clear();
  EXPECT_EQ(DescribePlan(plan.name()).explanation().kernel(),
            plan.explanation().kernel());
  EXPECT_EQ(server_.engine().plans().statistics().entry_count, 0);
}

TEST_F(RpcPlanTest, KernelsAreListedByDevice) {
  v1::ListKernelsRequest request;
  v1::ListKernelsResponse response;
  const auto list = [&] {
    return Unary(&v1::PlanService::Stub::ListKernels, *plans_, request,
                 &response);
  };
  ASSERT_THAT(list(), IsOk());
  std::set<std::string> operations;
  for (const v1::Kernel& kernel : response.kernels()) {
    EXPECT_THAT(kernel.name(), HasSubstr(KernelPrefix() + "."));
    EXPECT_GE(kernel.version(), 1);
    operations.insert(kernel.operation());
  }
  EXPECT_EQ(operations,
            (std::set<std::string>{"contract", "elementwise", "factorize",
                                   "permute", "reduce", "solve"}));
  request.set_device("cpu:0");
  ASSERT_THAT(list(), IsOk());
  EXPECT_THAT(response.kernels(0).name(), HasSubstr("cpu."));
  request.set_device("tpu:0");
  EXPECT_THAT(list(), FailsWith(grpc::INVALID_ARGUMENT, "DEVICE_NOT_FOUND"));
}

}  // namespace
}  // namespace tensord
