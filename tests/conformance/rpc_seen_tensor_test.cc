// Tensors that requests have seen as views without a name: every place where
// they can, each documented error.
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tensord/v1/program.grpc.pb.h"
#include "tests/conformance/rpc_views.h"
#include "tests/unit/core/view/view_oracle.h"

namespace tensord {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RpcSeenTensorTest : public RpcViewTest {
 protected:
  /// tensor[start:stop:step] along its first mode.
  static v1::ViewSpec Sliced(std::optional<int64_t> start,
                             std::optional<int64_t> stop,
                             std::optional<int64_t> step = {}) {
    v1::ViewSpec view;
    AddSlice(*view.add_stages()->mutable_index(), start, stop, step);
    return view;
  }
  v1::Tensor Uploaded(std::vector<int64_t> extents,
                      std::vector<int64_t> strides, float first) {
    v1::Tensor tensor;
    EXPECT_THAT(
        Create(CreateRequest(std::move(extents), std::move(strides)), &tensor),
        IsOk());
    std::vector<float> values(static_cast<size_t>(tensor.span_bytes() / 4));
    std::iota(values.begin(), values.end(), first);
    EXPECT_THAT(Upload({Chunk(tensor.name(), 0, values)}), IsOk());
    return tensor;
  }
  /// Elements of a tensor as it is seen, last mode fastest.
  std::vector<float> Seen(const std::string& tensor, const v1::ViewSpec& view,
                          int mode_count) {
    v1::PermuteRequest request = Copying(tensor, mode_count);
    *request.mutable_a()->mutable_view() = view;
    v1::Result result;
    EXPECT_THAT(Permute(request, &result), IsOk());
    const std::vector<float> values = Values(result.tensor().name());
    EXPECT_THAT(Delete(result.tensor().name()), IsOk());
    return values;
  }
  Outcome Execute(const v1::ProgramSpec& spec,
                  v1::ExecuteProgramResponse* response) {
    v1::ExecuteProgramRequest request;
    request.set_session(session_);
    *request.mutable_spec() = spec;
    return Unary(&v1::ProgramService::Stub::ExecuteProgram, *programs_, request,
                 response);
  }

  std::unique_ptr<v1::ProgramService::Stub> programs_ =
      v1::ProgramService::NewStub(channel_);
};

TEST_F(RpcSeenTensorTest, AllTransformsInAnyCompositionAreReadAndWritten) {
  std::mt19937 rng(11);
  int read = 0, written = 0;
  for (int i = 0; i < 120; ++i) {
    const core::Layout layout = core::test::RandomStorage(rng, 4);
    const v1::Tensor base =
        Uploaded({layout.extents.begin(), layout.extents.end()},
                 {layout.strides.begin(), layout.strides.end()}, 100);
    std::vector<float> before = Values(base.name());
    core::test::ViewOracle oracle(layout, 0);
    std::string seen = base.name();
    std::vector<std::string> named = {seen};
    v1::ViewSpec view;
    view.mutable_padding()->set_real(-1);
    for (int stages = 1 + static_cast<int>(rng() % 3); stages > 0; --stages) {
      const core::Stage stage =
          core::test::RandomStage(rng, oracle.extents(), 300);
      oracle = oracle.Then(stage);
      AddStage(stage, view);
      if (stages > 1 && rng() % 3 == 0) {  // on top of a view with a name
        v1::CreateViewRequest below = RequestFor(seen);
        *below.mutable_stages() = view.stages();
        *below.mutable_padding() = view.padding();
        seen = named.emplace_back(ViewOf(below).name());
        view.clear_stages();
      }
    }
    SCOPED_TRACE(view.ShortDebugString());
    const int mode_count = static_cast<int>(oracle.extents().size());
    std::vector<float> wanted;
    for (const int64_t element : oracle.elements()) {
      const bool is_padding = element == core::test::ViewOracle::kPadding;
      wanted.push_back(is_padding ? -1 : 100 + static_cast<float>(element));
    }
    ASSERT_EQ(Seen(seen, view, mode_count), wanted);
    read += wanted.empty() ? 0 : 1;

    v1::CreateTensorRequest create =
        CreateRequest({oracle.extents().begin(), oracle.extents().end()});
    create.mutable_layout()->set_order(v1::ORDER_LAST_MODE_FASTEST);
    v1::Tensor source;
    ASSERT_THAT(Create(create, &source), IsOk());
    std::vector<float> values(wanted.size());
    std::iota(values.begin(), values.end(), 1000.0f);
    ASSERT_THAT(Upload({Chunk(source.name(), 0, values)}), IsOk());
    v1::PermuteRequest request = Into(Copying(source.name(), mode_count), seen);
    *request.mutable_d()->mutable_view() = view;
    v1::Result result;
    const Outcome outcome = Permute(request, &result);
    if (outcome.status.ok()) {
      ASSERT_TRUE(oracle.IsInjective());
      EXPECT_EQ(result.tensor().name(), seen);
      for (size_t k = 0; k < values.size(); ++k) {
        const int64_t element = oracle.elements()[k];
        if (element < 0) continue;
        before[static_cast<size_t>(element)] = values[k];
      }
      written += values.empty() ? 0 : 1;
    } else {
      ASSERT_THAT(outcome,
                  FailsWith(grpc::INVALID_ARGUMENT, "OUTPUT_NOT_INJECTIVE"));
    }
    ASSERT_EQ(Values(base.name()), before);
    named.push_back(source.name());
    for (const std::string& name : named) ASSERT_THAT(Delete(name), IsOk());
  }
  EXPECT_GT(read, 60);
  EXPECT_GT(written, 20);
  v1::ListTensorsRequest list;
  list.set_session(session_);
  v1::ListTensorsResponse left;
  ASSERT_THAT(
      Unary(&v1::TensorService::Stub::ListTensors, *tensors_, list, &left),
      IsOk());
  EXPECT_EQ(left.tensors_size(), 0) << left.ShortDebugString();
  EXPECT_EQ(server_.used_bytes(), 0);
}

TEST_F(RpcSeenTensorTest, BlocksOfOneTensorAreInputsAndOutputs) {
  const std::string base = Filled({4, 4});  // (i, j) is i + 4 j
  const auto block = [](int64_t row, int64_t column) {
    v1::ViewSpec view;
    v1::IndexStage& stage = *view.add_stages()->mutable_index();
    AddSlice(stage, row, row + 2);
    AddSlice(stage, column, column + 2);
    return view;
  };
  v1::ContractRequest request = Contraction(base, base);
  *request.mutable_a()->mutable_view() = block(2, 0);
  *request.mutable_b()->mutable_view() = block(0, 2);
  *request.mutable_c() = Named(base, {'i', 'j'});
  *request.mutable_c()->mutable_view() = block(2, 2);
  request.mutable_d()->set_tensor(base);
  *request.mutable_d()->mutable_view() = block(2, 2);
  request.mutable_alpha()->set_real(-1);
  request.mutable_beta()->set_real(1);
  const std::vector<float> m = Values(base);
  ASSERT_THAT(Contract(request), IsOk());
  std::vector<float> wanted = m;
  for (size_t i = 2; i < 4; ++i) {
    for (size_t j = 2; j < 4; ++j) {
      for (size_t k = 0; k < 2; ++k) {
        wanted[i + 4 * j] -= m[i + 4 * k] * m[k + 4 * j];
      }
    }
  }
  EXPECT_EQ(Values(base), wanted);
  // Blocks that share elements are refused, and nothing is written.
  *request.mutable_d()->mutable_view() = block(1, 2);
  request.clear_c();
  request.mutable_beta()->set_real(0);
  *request.mutable_b()->mutable_view() = block(1, 2);
  *request.mutable_a()->mutable_view() = block(1, 1);
  EXPECT_THAT(Contract(request),
              FailsWith(grpc::INVALID_ARGUMENT, "OUTPUT_OVERLAPS_INPUT"));
  EXPECT_EQ(Values(base), wanted);
}

TEST_F(RpcSeenTensorTest, ProgramsSeeTheirOperands) {
  const std::string base = Filled({6});
  v1::ProgramSpec spec;
  spec.mutable_source()->set_statements("D[i] = A[i] + B[i]; E[i] := 2*D[i]");
  const std::vector<std::pair<std::string, v1::ViewSpec>> operands = {
      {"A", Sliced(0, 2)}, {"B", Sliced({}, 1, -3)}, {"D", Sliced(2, 6, 3)}};
  for (const auto& [name, view] : operands) {
    v1::ProgramOperand& operand = *spec.add_operands();
    operand.set_name(name);
    operand.set_tensor(base);
    *operand.mutable_view() = view;
  }
  spec.add_outputs()->set_name("E");
  v1::ExecuteProgramResponse response;
  ASSERT_THAT(Execute(spec, &response), IsOk());
  // A is (0, 1), B (5, 2), and D where 2 and 5 were.
  EXPECT_EQ(Values(base), (std::vector<float>{0, 1, 5, 3, 4, 3}));
  EXPECT_EQ(Values(response.results(0).tensor().name()),
            (std::vector<float>{10, 6}));
  // A program that was prepared for views takes others that are like them.
  v1::CreateProgramRequest create;
  create.set_session(session_);
  *create.mutable_spec() = spec;
  v1::CreateProgramResponse created;
  ASSERT_THAT(Unary(&v1::ProgramService::Stub::CreateProgram, *programs_,
                    create, &created),
              IsOk());
  v1::ExecuteProgramRequest execute;
  execute.set_session(session_);
  execute.set_name(created.program().name());
  *execute.mutable_operands() = spec.operands();
  *execute.mutable_operands(0)->mutable_view() = Sliced(4, 6);
  const auto run = [&] {
    return Unary(&v1::ProgramService::Stub::ExecuteProgram, *programs_, execute,
                 &response);
  };
  // A overlaps D.
  EXPECT_THAT(run(),
              FailsWith(grpc::INVALID_ARGUMENT, "OUTPUT_OVERLAPS_INPUT"));
  *execute.mutable_operands(0)->mutable_view() = Sliced(0, 2);
  *execute.mutable_operands(1)->mutable_view() = Sliced(4, {}, -3);
  ASSERT_THAT(run(), IsOk());
  EXPECT_EQ(Values(base), (std::vector<float>{0, 1, 4, 3, 4, 2}));
  *execute.mutable_operands(0)->mutable_view() = Sliced(0, 3);
  EXPECT_THAT(run(),
              FailsWith(grpc::INVALID_ARGUMENT, "PROGRAM_OPERAND_DIFFERS"));
}

TEST_F(RpcSeenTensorTest, PlansSeeTheirOperands) {
  const std::string base = Filled({4, 3});
  v1::CreatePlanRequest create;
  *create.mutable_permute() = Copying(base, 1);
  v1::ViewSpec column;
  v1::IndexStage& stage = *column.add_stages()->mutable_index();
  stage.add_items()->mutable_all();
  stage.add_items()->set_index(1);
  *create.mutable_permute()->mutable_a()->mutable_view() = column;
  v1::CreatePlanResponse created;
  ASSERT_THAT(
      Unary(&v1::PlanService::Stub::CreatePlan, *plans_, create, &created),
      IsOk());
  v1::ExecutePlanRequest execute;
  execute.set_plan(created.plan().name());
  execute.mutable_a()->set_tensor(base);
  *execute.mutable_a()->mutable_view() = column;
  v1::ExecutePlanResponse executed;
  const auto run = [&] {
    return Unary(&v1::ComputeService::Stub::ExecutePlan, *compute_, execute,
                 &executed);
  };
  ASSERT_THAT(run(), IsOk());
  EXPECT_EQ(Values(executed.result().tensor().name()),
            (std::vector<float>{4, 5, 6, 7}));
  execute.set_d(base);
  *execute.mutable_d_view() = column;
  execute.mutable_d_view()
      ->mutable_stages(0)
      ->mutable_index()
      ->mutable_items(1)
      ->set_index(0);
  ASSERT_THAT(run(), IsOk());
  EXPECT_EQ(Values(base),
            (std::vector<float>{4, 5, 6, 7, 4, 5, 6, 7, 8, 9, 10, 11}));
  execute.mutable_a()->clear_view();
  EXPECT_THAT(run(), FailsWith(grpc::INVALID_ARGUMENT, "PLAN_OPERAND_DIFFERS"));
}

TEST_F(RpcSeenTensorTest, DownloadsSeeTheTensor) {
  const std::string base = Filled({8});
  v1::DownloadTensorRequest request;
  request.set_tensor(base);
  *request.mutable_view() = Sliced(5, 7);
  std::string data;
  ASSERT_THAT(Download(request, &data), IsOk());
  ASSERT_EQ(data.size(), 2 * sizeof(float));
  float values[2];
  std::memcpy(values, data.data(), sizeof(values));
  EXPECT_EQ(values[0], 5);
  EXPECT_EQ(values[1], 6);
  *request.mutable_view() = Sliced({}, {}, -1);
  EXPECT_THAT(Download(request, &data),
              FailsWith(grpc::INVALID_ARGUMENT, "VIEW_NOT_STRIDED"));
}

TEST_F(RpcSeenTensorTest, RefusesWhatCannotBeSeen) {
  const std::string base = Filled({4});
  v1::PermuteRequest request = Copying(base, 1);
  *request.mutable_a()->mutable_view() = Sliced(0, 2, 0);
  const Outcome step = Permute(request);
  EXPECT_THAT(step, FailsWith(grpc::INVALID_ARGUMENT, "SLICE_STEP_ZERO"));
  EXPECT_THAT(step.status.error_message(),
              AllOf(HasSubstr(base), HasSubstr("that a is: ")));
  v1::ViewSpec deep;
  for (int i = 0; i < 33; ++i) deep.add_stages()->mutable_index();
  *request.mutable_a()->mutable_view() = deep;
  EXPECT_THAT(Permute(request),
              FailsWith(grpc::INVALID_ARGUMENT, "TOO_MANY_STAGES"));
  *request.mutable_a()->mutable_view() = Sliced(0, 2);
  request.mutable_a()->set_tensor(session_ + "/tensors/none");
  EXPECT_THAT(Permute(request), FailsWith(grpc::NOT_FOUND, "TENSOR_NOT_FOUND"));
  // What is sent, or new, is nothing to be seen.
  v1::InlineTensor& sent = *request.mutable_a()->mutable_inline_();
  sent.set_element_type(v1::ELEMENT_TYPE_FLOAT32);
  sent.mutable_layout()->add_extents(2);
  sent.set_data(std::string(8, '\0'));
  const Outcome inlined = Permute(request);
  EXPECT_THAT(inlined,
              FailsWith(grpc::INVALID_ARGUMENT, "VIEW_WITHOUT_TENSOR"));
  EXPECT_THAT(inlined.status.error_message(), HasSubstr("a is to be seen"));
  request = Copying(base, 1);
  *request.mutable_d()->mutable_view() = Sliced(0, 2);
  EXPECT_THAT(Permute(request),
              FailsWith(grpc::INVALID_ARGUMENT, "VIEW_WITHOUT_TENSOR"));
  v1::ProgramSpec spec;
  spec.mutable_source()->set_statements("D[i] := s*A[i]");
  spec.add_operands()->set_name("A");
  spec.mutable_operands(0)->set_tensor(base);
  spec.add_operands()->set_name("s");
  spec.mutable_operands(1)->mutable_scalar()->set_real(2);
  *spec.mutable_operands(1)->mutable_view() = Sliced(0, 2);
  v1::ExecuteProgramResponse response;
  EXPECT_THAT(Execute(spec, &response),
              FailsWith(grpc::INVALID_ARGUMENT, "VIEW_WITHOUT_TENSOR"));
  // A part is written only beside contents.
  v1::Tensor empty;
  ASSERT_THAT(Create(CreateRequest({4}), &empty), IsOk());
  request = Into(Copying(Filled({2}), 1), empty.name());
  *request.mutable_d()->mutable_view() = Sliced(0, 2);
  EXPECT_THAT(Permute(request),
              FailsWith(grpc::FAILED_PRECONDITION, "TENSOR_NOT_READY"));
  EXPECT_EQ(Values(base), (std::vector<float>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace tensord
