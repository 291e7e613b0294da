// Padding around the results of permutations.
#include <cmath>
#include <limits>
#include <optional>

#include "tests/conformance/rpc_conformance.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;

class RpcPaddingTest : public RpcConformance {
 protected:
  static void SetPadding(const std::vector<int64_t>& before,
                         const std::vector<int64_t>& after, double value,
                         v1::PermuteRequest& request) {
    v1::OutputPadding& padding = *request.mutable_padding();
    padding.mutable_before()->Assign(before.begin(), before.end());
    padding.mutable_after()->Assign(after.begin(), after.end());
    padding.mutable_value()->set_real(value);
  }
  /// Of a (2, 3) matrix 0 to 5, transposed to (3, 2), first mode fastest.
  v1::PermuteRequest Transposing() { return Permutation(Filled({2, 3})); }
};

TEST_F(RpcPaddingTest, SurroundsTheResult) {
  v1::PermuteRequest request = Transposing();
  SetPadding({1, 0}, {0, 2}, 7, request);
  v1::Result result;
  ASSERT_THAT(Permute(request, &result), IsOk());
  EXPECT_EQ(result.tensor().layout().extents(0), 4);
  EXPECT_EQ(result.tensor().layout().extents(1), 4);
  EXPECT_EQ(result.report().gathered_bytes(), 0);
  EXPECT_EQ(
      Values(result.tensor().name()),
      (std::vector<float>{7, 0, 2, 4, 7, 1, 3, 5, 7, 7, 7, 7, 7, 7, 7, 7}));
}

TEST_F(RpcPaddingTest, ValueIsWrittenAsItIs) {
  v1::PermuteRequest request = Transposing();
  request.mutable_alpha()->set_real(-2);
  request.mutable_a()->set_unary_operator(v1::UNARY_OPERATOR_SQRT);
  SetPadding({0, 0}, {0, 1}, -1, request);
  v1::Result result;
  ASSERT_THAT(Permute(request, &result), IsOk());
  const std::vector<float> values = Values(result.tensor().name());
  ASSERT_EQ(values.size(), 9u);
  EXPECT_NEAR(values[1], -2 * std::sqrt(2.0), 1e-6);
  EXPECT_EQ(values[6], -1);
  // Whatever the inputs are: with a factor of 0 they need not be there.
  request.mutable_alpha()->set_real(0);
  request.mutable_d()->set_tensor(result.tensor().name());
  request.clear_a();
  ASSERT_THAT(Permute(request), IsOk());
  EXPECT_EQ(Values(result.tensor().name()),
            (std::vector<float>{0, 0, 0, 0, 0, 0, -1, -1, -1}));
}

TEST_F(RpcPaddingTest, GoesWithConversion) {
  v1::PermuteRequest request = Transposing();
  request.mutable_d()->set_element_type(v1::ELEMENT_TYPE_FLOAT16);
  request.mutable_d()->set_inline_(true);
  SetPadding({}, {0, 1}, 65504, request);
  v1::Result result;
  ASSERT_THAT(Permute(request, &result), IsOk());
  ASSERT_EQ(result.data().size(), 18u);
  uint16_t got[9];
  std::memcpy(got, result.data().data(), sizeof got);
  EXPECT_EQ(got[5], 0x4500);  // 5
  for (int i = 6; i < 9; ++i) EXPECT_EQ(got[i], 0x7bff);
  SetPadding({}, {0, 1}, 1e6, request);
  EXPECT_THAT(Permute(request),
              FailsWith(grpc::INVALID_ARGUMENT, "SCALAR_OUT_OF_RANGE"));
}

TEST_F(RpcPaddingTest, ReplacesWhatAnExistingOutputHad) {
  const std::string d = Filled({4, 4});
  v1::PermuteRequest request = Transposing();
  request.mutable_d()->set_tensor(d);
  SetPadding({1, 1}, {0, 1}, 9, request);
  ASSERT_THAT(Permute(request), IsOk());
  EXPECT_EQ(Values(d), (std::vector<float>{9, 9, 9, 9, 9, 0, 2, 4, 9, 1, 3, 5,
                                           9, 9, 9, 9}));
  SetPadding({1, 1}, {0, 0}, 9, request);
  const Outcome outcome = Permute(request);
  EXPECT_THAT(outcome,
              FailsWith(grpc::INVALID_ARGUMENT, "MODE_EXTENT_MISMATCH"));
  EXPECT_EQ(Values(d)[0], 9);
}

TEST_F(RpcPaddingTest, ResultsWithoutElementsAreAllPadding) {
  v1::PermuteRequest request = Transposing();
  v1::InlineTensor& sent = *request.mutable_a()->mutable_inline_();
  sent.set_element_type(v1::ELEMENT_TYPE_FLOAT32);
  sent.mutable_layout()->add_extents(0);
  sent.mutable_layout()->add_extents(3);
  SetPadding({1, 1}, {0, 1}, 3, request);
  v1::Result result;
  ASSERT_THAT(Permute(request, &result), IsOk());
  EXPECT_EQ(Values(result.tensor().name()), std::vector<float>(8, 3));
}

TEST_F(RpcPaddingTest, NoNumbersAreZeros) {
  v1::PermuteRequest request = Transposing();
  request.mutable_padding()->mutable_value()->set_real(5);
  v1::Result result;
  ASSERT_THAT(Permute(request, &result), IsOk());
  EXPECT_EQ(Values(result.tensor().name()),
            (std::vector<float>{0, 2, 4, 1, 3, 5}));
}

TEST_F(RpcPaddingTest, ModesThatOnlyTheOutputHasAreBroadcastWithinIt) {
  v1::PermuteRequest request;
  request.set_session(session_);
  *request.mutable_a() = Named(Filled({2}), {1});
  const std::string d = Filled({2, 4});
  *request.mutable_d() = New({1, 2});
  request.mutable_d()->set_tensor(d);
  SetPadding({0, 1}, {0, 1}, 8, request);
  ASSERT_THAT(Permute(request), IsOk());
  EXPECT_EQ(Values(d), (std::vector<float>{8, 8, 0, 1, 0, 1, 8, 8}));
}

TEST_F(RpcPaddingTest, CountsAsOutputWhereMemoryOverlaps) {
  // A row of a matrix goes to itself, but for its padding, which another row
  // has.
  const std::string base = Filled({4, 4});
  const auto views = v1::ViewService::NewStub(channel_);
  const auto part = [&](int64_t start, int64_t stop) {
    v1::CreateViewRequest request;
    request.set_tensor(base);
    v1::IndexStage& stage = *request.add_stages()->mutable_index();
    stage.add_items()->mutable_all();
    v1::IndexSlice& slice = *stage.add_items()->mutable_slice();
    slice.set_start(start);
    slice.set_stop(stop);
    v1::CreateViewResponse response;
    EXPECT_THAT(
        Unary(&v1::ViewService::Stub::CreateView, *views, request, &response),
        IsOk());
    return response.tensor().name();
  };
  v1::PermuteRequest request;
  request.set_session(session_);
  *request.mutable_a() = Named(part(0, 2), {1, 2});
  *request.mutable_d() = New({1, 2});
  request.mutable_d()->set_tensor(part(0, 4));
  SetPadding({0, 2}, {0, 0}, 1, request);
  EXPECT_THAT(Permute(request),
              FailsWith(grpc::INVALID_ARGUMENT, "OUTPUT_OVERLAPS_INPUT"));
  request.mutable_d()->set_tensor(part(2, 4));
  SetPadding({0, 0}, {0, 0}, 1, request);
  EXPECT_THAT(Permute(request), IsOk());
}

TEST_F(RpcPaddingTest, ViewsArePaddedToo) {
  const std::string base = Filled({3, 8});
  const auto views = v1::ViewService::NewStub(channel_);
  v1::CreateViewRequest backwards;
  backwards.set_tensor(base);
  v1::IndexStage& stage = *backwards.add_stages()->mutable_index();
  stage.add_items()->mutable_all();
  stage.add_items()->mutable_slice()->set_step(-2);
  v1::CreateViewResponse view;
  ASSERT_THAT(
      Unary(&v1::ViewService::Stub::CreateView, *views, backwards, &view),
      IsOk());
  v1::PermuteRequest request = Transposing();
  request.mutable_d()->set_tensor(view.tensor().name());
  SetPadding({0, 1}, {0, 1}, -1, request);
  v1::Result result;
  ASSERT_THAT(Permute(request, &result), IsOk());
  EXPECT_GT(result.report().gathered_bytes(), 0);
  EXPECT_EQ(Values(base),
            (std::vector<float>{0,  1,  2, -1, -1, -1, 6,  7,  8,  1,  3, 5, 12,
                                13, 14, 0, 2,  4,  18, 19, 20, -1, -1, -1}));
}

TEST_F(RpcPaddingTest, ResultsBeginWhereTheirPaddingLeavesThem) {
  // Wide accesses would not be aligned there.
  constexpr int kRows = 64, kColumns = 96;
  v1::PermuteRequest request = Permutation(Filled({kRows, kColumns}));
  for (const auto& [modes, extent] :
       {std::pair(std::vector<int>{1, 2}, kRows),
        std::pair(std::vector<int>{2, 1}, kColumns)}) {
    for (const int before : {1, 2, 3}) {
      *request.mutable_d() = New(modes);
      SetPadding({before, 0}, {2, 0}, -1, request);
      v1::Result result;
      ASSERT_THAT(Permute(request, &result), IsOk());
      const std::vector<float> values = Values(result.tensor().name());
      const int row = before + extent + 2;
      ASSERT_EQ(values.size(),
                static_cast<size_t>(kRows * kColumns / extent * row));
      for (int i = 0; i < static_cast<int>(values.size()); ++i) {
        const int x = i % row - before, y = i / row;
        const bool is_padding = x < 0 || x >= extent;
        const int element = modes[0] == 1 ? x + y * kRows : y + x * kRows;
        ASSERT_EQ(values[i], is_padding ? -1 : element) << i;
      }
    }
  }
}

TEST_F(RpcPaddingTest, PlansPad) {
  v1::CreatePlanRequest create;
  *create.mutable_permute() = Transposing();
  SetPadding({1, 0}, {0, 0}, 4, *create.mutable_permute());
  const auto plans = v1::PlanService::NewStub(channel_);
  v1::CreatePlanResponse created;
  ASSERT_THAT(
      Unary(&v1::PlanService::Stub::CreatePlan, *plans, create, &created),
      IsOk());
  EXPECT_EQ(created.plan().d().layout().extents(0), 4);
  v1::ExecutePlanRequest request;
  request.set_plan(created.plan().name());
  request.mutable_a()->set_tensor(Filled({2, 3}));
  v1::ExecutePlanResponse response;
  ASSERT_THAT(Unary(&v1::ComputeService::Stub::ExecutePlan, *compute_, request,
                    &response),
              IsOk());
  EXPECT_EQ(Values(response.result().tensor().name()),
            (std::vector<float>{4, 0, 2, 4, 4, 1, 3, 5}));
  request.set_d(Filled({3, 2}));
  EXPECT_THAT(Unary(&v1::ComputeService::Stub::ExecutePlan, *compute_, request,
                    &response),
              FailsWith(grpc::INVALID_ARGUMENT, "PLAN_OPERAND_DIFFERS"));
}

TEST_F(RpcPaddingTest, IsRefusedWhereItDoesNotFit) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const std::string d = Filled({3, 2});
  struct Case {
    std::vector<int64_t> before, after;
    bool exists;
    std::string reason, message;
  };
  const std::vector<Case> cases = {
      {{1},
       {0, 0},
       false,
       "PADDING_COUNT_MISMATCH",
       "padding.before has 1 numbers"},
      {{}, {0, 0, 1}, false, "PADDING_COUNT_MISMATCH", "padding.after has 3"},
      {{0, -1}, {}, false, "NEGATIVE_PADDING", "padding.before is (0, -1)"},
      {{kMost, 0}, {}, false, "PADDING_TOO_LARGE", "more than int64"},
      {{kMost, 0}, {kMost, 0}, false, "PADDING_TOO_LARGE", "more than int64"},
      {{kMost / 8, 0}, {}, false, "SIZE_OVERFLOW", "d"},
      {{0, 3}, {}, true, "PADDING_TOO_LARGE", "mode 1 has extent 2 in d"},
      {{kMost, 0}, {kMost, 0}, true, "PADDING_TOO_LARGE", "mode 2 has"},
      {{0, 1},
       {},
       true,
       "MODE_EXTENT_MISMATCH",
       "mode 1 has extent 2 in a but 2 in d, of which 1 and 0 are padding"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.reason + ": " + c.message);
    v1::PermuteRequest request = Transposing();
    if (c.exists) request.mutable_d()->set_tensor(d);
    SetPadding(c.before, c.after, 0, request);
    const Outcome outcome = Permute(request);
    EXPECT_THAT(outcome, FailsWith(grpc::INVALID_ARGUMENT, c.reason));
    EXPECT_THAT(outcome.status.error_message(), HasSubstr(c.message));
  }
  EXPECT_EQ(Values(d), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  v1::PermuteRequest request = Transposing();
  SetPadding({1, 1}, {}, 0, request);
  request.mutable_padding()->mutable_value()->set_imaginary(1);
  EXPECT_THAT(Permute(request),
              FailsWith(grpc::INVALID_ARGUMENT, "SCALAR_NOT_REAL"));
}

}  // namespace
}  // namespace tensord
