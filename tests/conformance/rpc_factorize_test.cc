// Factorizations: the operation with several results.
#include <cmath>

#include "tests/conformance/rpc_stream.h"

namespace tensord {
namespace {

class RpcFactorizeTest : public RpcConformance {
 protected:
  /// "abc->abk,kc" of `a`.
  v1::FactorizeRequest Qr(const std::string& a) {
    v1::FactorizeRequest request;
    request.set_session(session_);
    *request.mutable_a() = Named(a, {'a', 'b', 'c'});
    *request.mutable_q() = New({'a', 'b', 'k'});
    *request.mutable_r() = New({'k', 'c'});
    request.set_method(v1::FACTORIZATION_METHOD_QR);
    return request;
  }
  Outcome Factorize(const v1::FactorizeRequest& request,
                    v1::Result* result = nullptr) {
    v1::FactorizeResponse response;
    const Outcome outcome = Unary(&v1::ComputeService::Stub::Factorize,
                                  *compute_, request, &response);
    if (result != nullptr) *result = response.result();
    return outcome;
  }
  /// q * r, of 4 rows and 2 columns, is what Filled({2, 2, 2}) is.
  static void ExpectIsFilled(const std::vector<float>& q,
                             const std::vector<float>& r) {
    ASSERT_EQ(q.size(), 8u);
    ASSERT_EQ(r.size(), 4u);
    EXPECT_GE(r[0], 0);
    EXPECT_EQ(r[1], 0);  // k = 1, c = 0
    EXPECT_GE(r[3], 0);
    for (int row = 0; row < 4; ++row) {
      for (int c = 0; c < 2; ++c) {
        const float sum = q[row] * r[2 * c] + q[row + 4] * r[1 + 2 * c];
        // Higham's bound, 8 m k sqrt(k) u of the column's norm, here below 12.
        EXPECT_NEAR(sum, static_cast<float>(row + 4 * c),
                    8 * 4 * 2 * std::sqrt(2) * 6e-8 * 12);
      }
    }
  }
};

TEST_F(RpcFactorizeTest, BothFactorsAreNewTensorsOrExistingOrInline) {
  const std::string a = Filled({2, 2, 2});
  v1::FactorizeRequest request = Qr(a);
  v1::Result result;
  ASSERT_THAT(Factorize(request, &result), IsOk());
  ASSERT_EQ(result.others_size(), 1);
  const std::vector<float> q = Values(result.tensor().name());
  const std::vector<float> r = Values(result.others(0).tensor().name());
  ExpectIsFilled(q, r);
  EXPECT_THAT(result.report().kernel(),
              ::testing::StartsWith(KernelPrefix() + ".factorize."));

  // Over the same tensors again, and back in the response.
  request.mutable_q()->set_tensor(result.tensor().name());
  request.mutable_r()->set_inline_(true);
  ASSERT_THAT(Factorize(request, &result), IsOk());
  EXPECT_EQ(Values(result.tensor().name()), q);
  ASSERT_EQ(result.others(0).data().size(), 16u);
  EXPECT_EQ(std::memcmp(result.others(0).data().data(), r.data(), 16), 0);
}

TEST_F(RpcFactorizeTest, RunsAsAPlanAndInAStream) {
  const std::string a = Filled({2, 2, 2});
  v1::CreatePlanRequest create;
  *create.mutable_factorize() = Qr(a);
  v1::CreatePlanResponse created;
  ASSERT_THAT(
      Unary(&v1::PlanService::Stub::CreatePlan, *plans_, create, &created),
      IsOk());
  const v1::Plan& plan = created.plan();
  EXPECT_EQ(plan.operation(), "factorize");
  ASSERT_EQ(plan.others_size(), 1);
  EXPECT_EQ(plan.others(0).layout().extents(1), 2);
  v1::ExecutePlanRequest execute;
  execute.set_plan(plan.name());
  execute.mutable_a()->set_tensor(a);
  execute.set_inline_(true);
  execute.add_others()->set_tensor_id("r");
  v1::ExecutePlanResponse executed;
  ASSERT_THAT(Unary(&v1::ComputeService::Stub::ExecutePlan, *compute_, execute,
                    &executed),
              IsOk());
  std::vector<float> q(8);
  ASSERT_EQ(executed.result().data().size(), 32u);
  std::memcpy(q.data(), executed.result().data().data(), 32);
  ExpectIsFilled(q, Values(session_ + "/tensors/r"));
  execute.mutable_alpha()->set_real(2);
  EXPECT_THAT(Unary(&v1::ComputeService::Stub::ExecutePlan, *compute_, execute,
                    &executed),
              FailsWith(grpc::INVALID_ARGUMENT, "PLAN_HAS_NO_FACTOR"));

  grpc::ClientContext context;
  const auto stream = compute_->ExecuteStream(&context);
  v1::ExecuteStreamRequest request;
  *request.mutable_factorize() = Qr(a);
  ASSERT_TRUE(stream->Write(request));
  stream->WritesDone();
  v1::ExecuteStreamResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.result().others_size(), 1);
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(RpcFactorizeTest, SvdsSayHowManyValuesTheyKeep) {
  // Rank 2: rows 0 to 3 and as many fours.
  const std::string a = Filled({2, 2, 2});
  v1::FactorizeRequest request = Qr(a);
  request.set_method(v1::FACTORIZATION_METHOD_SVD);
  *request.mutable_values() = New({'k'});
  v1::Result result;
  for (const auto selection :
       {v1::SELECTION_HEURISTIC, v1::SELECTION_MEASURE}) {
    request.mutable_options()->set_selection(selection);
    ASSERT_THAT(Factorize(request, &result), IsOk());
    ASSERT_EQ(result.others_size(), 2);
    EXPECT_EQ(result.report().kept_extent(), 2);
    const std::vector<float> s = Values(result.others(0).tensor().name());
    ASSERT_EQ(s.size(), 2u);
    // The squares of 0 to 7.
    EXPECT_NEAR(s[0] * s[0] + s[1] * s[1], 140, 1e-3);
    EXPECT_GT(s[0], s[1]);
    EXPECT_EQ(result.others(1).tensor().layout().extents(0), 2);
  }
  request.mutable_truncation()->set_relative_cutoff(0.9);
  ASSERT_THAT(Factorize(request, &result), IsOk());
  EXPECT_EQ(result.report().kept_extent(), 1);
  EXPECT_EQ(Values(result.others(0).tensor().name())[1], 0);
  request.mutable_truncation()->set_rank(1);
  ASSERT_THAT(Factorize(request, &result), IsOk());
  EXPECT_EQ(Values(result.others(0).tensor().name()).size(), 1u);
  EXPECT_EQ(result.tensor().layout().extents(2), 1);

  request.clear_values();
  EXPECT_THAT(Factorize(request),
              FailsWith(grpc::INVALID_ARGUMENT, "VALUES_LOST"));
  request.mutable_truncation()->set_absorb(v1::ABSORB_BOTH);
  ASSERT_THAT(Factorize(request, &result), IsOk());
  EXPECT_EQ(result.others_size(), 1);
  request.mutable_truncation()->set_absorb(static_cast<v1::Absorb>(9));
  EXPECT_THAT(Factorize(request),
              FailsWith(grpc::INVALID_ARGUMENT, "ENUM_UNKNOWN"));
  request.mutable_truncation()->clear_absorb();
  request.mutable_truncation()->set_rank(0);
  *request.mutable_values() = New({'k'});
  const Outcome outcome = Factorize(request);
  EXPECT_THAT(outcome,
              FailsWith(grpc::INVALID_ARGUMENT, "TRUNCATION_OUT_OF_RANGE"));
  EXPECT_EQ(outcome.status.error_message(),
            "svd of a with extents (2, 2, 2): rank is 0, wanted 1 or more");
  request.clear_truncation();
  request.clear_r();
  EXPECT_THAT(Factorize(request),
              FailsWith(grpc::INVALID_ARGUMENT, "RESULT_COUNT_MISMATCH"));
}

TEST_F(RpcFactorizeTest, SaysWhatDoesNotFit) {
  const std::string a = Filled({2, 2, 2});
  v1::FactorizeRequest request = Qr(a);
  request.mutable_r()->mutable_modes()->Set(0, 'm');
  EXPECT_THAT(Factorize(request),
              FailsWith(grpc::INVALID_ARGUMENT, "MODE_NOT_IN_INPUT"));
  request = Qr(a);
  request.clear_a();
  EXPECT_THAT(Factorize(request),
              FailsWith(grpc::INVALID_ARGUMENT, "INPUT_MISSING"));
  request = Qr(a);
  request.clear_method();
  Outcome outcome = Factorize(request);
  EXPECT_THAT(outcome, FailsWith(grpc::INVALID_ARGUMENT, "ENUM_UNKNOWN"));
  EXPECT_EQ(outcome.status.error_message(),
            "method is not given, wanted one of QR, LQ, SVD, EIGH, CHOLESKY");
  request.set_method(static_cast<v1::FactorizationMethod>(7));
  outcome = Factorize(request);
  EXPECT_THAT(outcome, FailsWith(grpc::INVALID_ARGUMENT, "ENUM_UNKNOWN"));
  EXPECT_EQ(outcome.status.error_message(),
            "method is 7, wanted one of 1 (QR), 2 (LQ), 3 (SVD), 4 (EIGH), 5 "
            "(CHOLESKY)");
  request = Qr(a);
  request.mutable_q()->add_modes('z');
  request.mutable_r()->add_modes('z');
  EXPECT_THAT(Factorize(request),
              FailsWith(grpc::INVALID_ARGUMENT, "INNER_MODE_COUNT"));
  request = Qr(a);
  request.mutable_q()->set_element_type(v1::ELEMENT_TYPE_FLOAT64);
  EXPECT_THAT(Factorize(request),
              FailsWith(grpc::UNIMPLEMENTED, "TYPES_NOT_SUPPORTED"));
  request = Qr(a);
  request.mutable_a()->set_unary_operator(v1::UNARY_OPERATOR_CONJ);
  EXPECT_THAT(Factorize(request),
              FailsWith(grpc::INVALID_ARGUMENT, "OPERATOR_IN_FACTORIZATION"));
  request = Qr(a);
  request.mutable_q()->set_tensor(Filled({2, 2, 2}));
  request.mutable_r()->set_tensor(Filled({2, 2}));
  EXPECT_THAT(Factorize(request), IsOk());
  request.mutable_q()->set_tensor(a);
  EXPECT_THAT(Factorize(request),
              FailsWith(grpc::INVALID_ARGUMENT, "OUTPUT_OVERLAPS_INPUT"));
}

}  // namespace
}  // namespace tensord
