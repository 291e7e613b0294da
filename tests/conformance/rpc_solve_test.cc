// Linear equations and inverses.
#include <cstring>
#include <string>
#include <vector>

#include "tests/conformance/rpc_stream.h"

namespace tensord {
namespace {

class RpcSolveTest : public RpcConformance {
 protected:
  /// "ij,ik->jk" of `a` and `b`.
  v1::SolveLinearRequest Equations(const std::string& a, const std::string& b) {
    v1::SolveLinearRequest request;
    request.set_session(session_);
    *request.mutable_a() = Named(a, {'i', 'j'});
    *request.mutable_b() = Named(b, {'i', 'k'});
    *request.mutable_d() = New({'j', 'k'});
    return request;
  }
  Outcome Solve(const v1::SolveLinearRequest& request,
                v1::Result* result = nullptr) {
    v1::SolveLinearResponse response;
    const Outcome outcome = Unary(&v1::ComputeService::Stub::SolveLinear,
                                  *compute_, request, &response);
    if (result != nullptr) *result = response.result();
    return outcome;
  }
};

// Of Filled({2, 2}): 0 2 / 1 3, of which each step is exact.
TEST_F(RpcSolveTest, SolutionsAreNewTensorsOrExistingOrInline) {
  const std::string a = Filled({2, 2}), b = Filled({2, 1});
  v1::SolveLinearRequest request = Equations(a, b);
  v1::Result result;
  ASSERT_THAT(Solve(request, &result), IsOk());
  const std::vector<float> expected = {1, 0};
  EXPECT_EQ(Values(result.tensor().name()), expected);
  EXPECT_THAT(result.report().kernel(),
              ::testing::StartsWith(KernelPrefix() + ".solve."));
  // Over the same tensor again, transposed, and back in the response.
  request.mutable_d()->set_tensor(result.tensor().name());
  *request.mutable_a() = Named(a, {'j', 'i'});
  ASSERT_THAT(Solve(request, &result), IsOk());
  EXPECT_EQ(Values(result.tensor().name()), (std::vector<float>{0.5, 0}));
  request = Equations(a, b);
  request.mutable_d()->set_inline_(true);
  ASSERT_THAT(Solve(request, &result), IsOk());
  ASSERT_EQ(result.data().size(), 8u);
  EXPECT_EQ(std::memcmp(result.data().data(), expected.data(), 8), 0);
  // The inverse.
  request.clear_b();
  *request.mutable_d() = New({'j', 'k'});
  ASSERT_THAT(Solve(request, &result), IsOk());
  EXPECT_EQ(Values(result.tensor().name()),
            (std::vector<float>{-1.5, 0.5, 1, 0}));
  // Of the upper triangle, with ones on its diagonal: 1 2 / 0 1.
  request.set_structure(v1::MATRIX_STRUCTURE_UPPER_TRIANGULAR);
  request.set_unit_diagonal(true);
  for (const auto selection :
       {v1::SELECTION_HEURISTIC, v1::SELECTION_MEASURE}) {
    request.mutable_options()->set_selection(selection);
    ASSERT_THAT(Solve(request, &result), IsOk());
    EXPECT_EQ(Values(result.tensor().name()),
              (std::vector<float>{1, 0, -2, 1}));
  }
}

TEST_F(RpcSolveTest, RunsAsAPlanAndInAStream) {
  const std::string a = Filled({2, 2}), b = Filled({2, 1});
  v1::CreatePlanRequest create;
  *create.mutable_solve() = Equations(a, b);
  v1::CreatePlanResponse created;
  const Outcome outcome =
      Unary(&v1::PlanService::Stub::CreatePlan, *plans_, create, &created);
  ASSERT_THAT(outcome, IsOk());
  const v1::Plan& plan = created.plan();
  EXPECT_EQ(plan.operation(), "solve");
  v1::ExecutePlanRequest execute;
  execute.set_plan(plan.name());
  execute.mutable_a()->set_tensor(a);
  execute.mutable_b()->set_tensor(b);
  v1::ExecutePlanResponse executed;
  ASSERT_THAT(Unary(&v1::ComputeService::Stub::ExecutePlan, *compute_, execute,
                    &executed),
              IsOk());
  EXPECT_EQ(Values(executed.result().tensor().name()),
            (std::vector<float>{1, 0}));
  execute.mutable_alpha()->set_real(2);
  EXPECT_THAT(Unary(&v1::ComputeService::Stub::ExecutePlan, *compute_, execute,
                    &executed),
              FailsWith(grpc::INVALID_ARGUMENT, "PLAN_HAS_NO_FACTOR"));
  execute.clear_alpha();
  execute.clear_b();
  EXPECT_THAT(Unary(&v1::ComputeService::Stub::ExecutePlan, *compute_, execute,
                    &executed),
              FailsWith(grpc::INVALID_ARGUMENT, "INPUT_MISSING"));

  grpc::ClientContext context;
  const auto stream = compute_->ExecuteStream(&context);
  v1::ExecuteStreamRequest request;
  *request.mutable_solve() = Equations(a, b);
  ASSERT_TRUE(stream->Write(request));
  stream->WritesDone();
  v1::ExecuteStreamResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(Values(response.result().tensor().name()),
            (std::vector<float>{1, 0}));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(RpcSolveTest, ComputesExponentials) {
  const std::string zeros = Filled({2, 2});
  ASSERT_THAT(Upload({Chunk(zeros, 0, std::vector<float>{0, 5, 0, 0})}),
              IsOk());
  v1::SolveLinearRequest request = Equations(zeros, zeros);
  request.clear_b();
  request.set_function(v1::MATRIX_FUNCTION_EXPONENTIAL);
  *request.mutable_d() = New({'i', 'k'});
  v1::Result result;
  ASSERT_THAT(Solve(request, &result), IsOk());
  EXPECT_EQ(Values(result.tensor().name()), (std::vector<float>{1, 5, 0, 1}));
  *request.mutable_d() = New({'j', 'i'});  // transposed
  ASSERT_THAT(Solve(request, &result), IsOk());
  EXPECT_EQ(Values(result.tensor().name()), (std::vector<float>{1, 0, 5, 1}));
  *request.mutable_d() = New({'i'});
  EXPECT_THAT(Solve(request),
              FailsWith(grpc::INVALID_ARGUMENT, "MODES_OF_EXPONENTIAL"));
  request.set_function(static_cast<v1::MatrixFunction>(3));
  EXPECT_THAT(Solve(request),
              FailsWith(grpc::INVALID_ARGUMENT, "ENUM_UNKNOWN"));
  request = Equations(zeros, zeros);
  request.set_function(v1::MATRIX_FUNCTION_EXPONENTIAL);
  EXPECT_THAT(Solve(request),
              FailsWith(grpc::INVALID_ARGUMENT, "RIGHT_SIDE_UNWANTED"));
}

TEST_F(RpcSolveTest, SaysWhatDoesNotFit) {
  const std::string a = Filled({2, 2}), b = Filled({2, 1});
  v1::SolveLinearRequest request = Equations(a, b);
  request.clear_a();
  EXPECT_THAT(Solve(request),
              FailsWith(grpc::INVALID_ARGUMENT, "INPUT_MISSING"));
  request = Equations(a, b);
  request.set_structure(static_cast<v1::MatrixStructure>(6));
  const Outcome outcome = Solve(request);
  EXPECT_THAT(outcome, FailsWith(grpc::INVALID_ARGUMENT, "ENUM_UNKNOWN"));
  EXPECT_EQ(outcome.status.error_message(),
            "structure is 6, wanted one of 1 (GENERAL), 2 (LOWER_TRIANGULAR), "
            "3 (UPPER_TRIANGULAR), 4 (HERMITIAN), 5 (POSITIVE_DEFINITE)");
  request = Equations(a, b);
  request.set_compute_type(v1::COMPUTE_TYPE_FLOAT64);
  EXPECT_THAT(Solve(request),
              FailsWith(grpc::UNIMPLEMENTED, "TYPES_NOT_SUPPORTED"));
  request = Equations(a, b);
  request.set_unit_diagonal(true);
  EXPECT_THAT(Solve(request), FailsWith(grpc::INVALID_ARGUMENT,
                                        "UNIT_DIAGONAL_WITHOUT_TRIANGLE"));
  request = Equations(a, b);
  *request.mutable_d() = New({'j', 'z'});
  EXPECT_THAT(Solve(request),
              FailsWith(grpc::INVALID_ARGUMENT, "MODE_NOT_IN_OUTPUT"));
  request.clear_b();
  *request.mutable_d() = New({'j'});
  EXPECT_THAT(Solve(request),
              FailsWith(grpc::INVALID_ARGUMENT, "MODES_OF_INVERSE"));
  request = Equations(a, b);
  request.mutable_d()->set_tensor(b);
  EXPECT_THAT(Solve(request),
              FailsWith(grpc::INVALID_ARGUMENT, "OUTPUT_OVERLAPS_INPUT"));
  request = Equations(Filled({1, 1}), Filled({1, 1}));
  EXPECT_THAT(Solve(request),
              FailsWith(grpc::INVALID_ARGUMENT, "MATRIX_SINGULAR"));
  // Nothing to solve for.
  request = Equations(a, b);
  v1::InlineTensor& nothing = *request.mutable_b()->mutable_inline_();
  nothing.set_element_type(v1::ELEMENT_TYPE_FLOAT32);
  nothing.mutable_layout()->add_extents(2);
  nothing.mutable_layout()->add_extents(0);
  v1::Result result;
  ASSERT_THAT(Solve(request, &result), IsOk());
  EXPECT_EQ(result.report().kernel(), "");
}

}  // namespace
}  // namespace tensord
