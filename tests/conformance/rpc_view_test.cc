// ViewService, and operations on views: success, each documented error.
#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "core/view/make_gather_steps.h"
#include "tests/conformance/rpc_views.h"
#include "tests/unit/core/view/view_oracle.h"

namespace tensord {
namespace {

using core::ModeVector;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(RpcViewTest, SlicesShareTheirElements) {
  const std::string base = Filled({4, 3});  // (i, j) is i + 4 j
  v1::CreateViewRequest request = RequestFor(base);
  request.set_tensor_id("view");
  v1::IndexStage& stage = *request.add_stages()->mutable_index();
  AddSlice(stage, 1, -1);
  stage.add_items()->mutable_new_mode();
  stage.add_items()->set_index(-1);
  const v1::Tensor view = ViewOf(request);
  EXPECT_EQ(view.name(), session_ + "/tensors/view");
  EXPECT_THAT(view.layout().extents(), ElementsAre(2, 1));
  EXPECT_THAT(view.layout().strides(), ElementsAre(1, 1));
  EXPECT_EQ(view.layout().offset(), 9);
  EXPECT_EQ(view.state(), v1::TENSOR_STATE_READY);
  EXPECT_EQ(view.committed_bytes(), 8);
  EXPECT_EQ(view.view().viewed(), base);
  EXPECT_FALSE(view.view().is_gathered());
  EXPECT_TRUE(view.view().is_writable());
  EXPECT_EQ(view.view().span_elements(), 2);
  EXPECT_EQ(Values(view.name()), (std::vector<float>{9, 10}));

  const std::string other = Filled({2, 1});
  ASSERT_THAT(Permute(Into(Copying(other, 2), view.name())), IsOk());
  EXPECT_EQ(Values(base),
            (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 11}));
}

TEST_F(RpcViewTest, CuTeSlicesOfTheDocument) {
  // E3: (None, 1) on (2,2):(2,1) is (2):(2), an element on.
  v1::CreateTensorRequest create = CreateRequest({2, 2}, {2, 1});
  v1::Tensor tensor;
  ASSERT_THAT(Create(create, &tensor), IsOk());
  v1::CreateViewRequest request = RequestFor(tensor.name());
  v1::IndexStage* stage = request.add_stages()->mutable_index();
  stage->add_items()->mutable_all();
  stage->add_items()->set_index(1);
  v1::Tensor view = ViewOf(request);
  EXPECT_THAT(view.layout().extents(), ElementsAre(2));
  EXPECT_THAT(view.layout().strides(), ElementsAre(2));
  EXPECT_EQ(view.layout().offset(), 1);
  EXPECT_EQ(view.state(), v1::TENSOR_STATE_EMPTY);
  // E4: (1, None, None) on (2,2,2):(4,2,1) is (2,2):(2,1), four on.
  ASSERT_THAT(Create(CreateRequest({2, 2, 2}, {4, 2, 1}), &tensor), IsOk());
  request = RequestFor(tensor.name());
  request.add_stages()->mutable_index()->add_items()->set_index(1);
  view = ViewOf(request);
  EXPECT_THAT(view.layout().strides(), ElementsAre(2, 1));
  EXPECT_EQ(view.layout().offset(), 4);
}

TEST_F(RpcViewTest, RowsOfAnAlignedTensorBeginAtMultiples) {  // D3, D4
  v1::CreateTensorRequest create = CreateRequest({4, 5});
  create.mutable_layout()->set_order(v1::ORDER_LAST_MODE_FASTEST);
  create.mutable_layout()->set_row_alignment(8);
  v1::Tensor tensor;
  ASSERT_THAT(Create(create, &tensor), IsOk());
  EXPECT_THAT(tensor.layout().strides(), ElementsAre(8, 1));
  EXPECT_EQ(tensor.span_bytes(), 29 * 4);
  const v1::Tensor view = ViewOf(RequestFor(tensor.name()));
  EXPECT_EQ(view.view().span_elements(), 29);
  EXPECT_EQ(view.view().allocation_elements(), 32);
  create.mutable_layout()->set_row_alignment(-1);
  EXPECT_THAT(Create(create),
              FailsWith(grpc::INVALID_ARGUMENT, "ALIGNMENT_NOT_POSITIVE"));
  create.mutable_layout()->set_row_alignment(8);
  create.mutable_layout()->add_strides(5);
  create.mutable_layout()->add_strides(1);
  EXPECT_THAT(Create(create),
              FailsWith(grpc::INVALID_ARGUMENT, "LAYOUT_AMBIGUOUS"));
}

TEST_F(RpcViewTest, PaddedViewsAreGathered) {
  const std::string base = Filled({2, 2});
  const v1::Tensor view = Padded(base, 2, 1, 0, 7);
  EXPECT_TRUE(view.view().may_pad());
  EXPECT_TRUE(view.view().is_gathered());
  v1::Result result;
  ASSERT_THAT(Permute(Copying(view.name(), 2), &result), IsOk());
  EXPECT_EQ(result.report().gathered_bytes(), 9 * 4);
  EXPECT_EQ(Values(result.tensor().name()),
            (std::vector<float>{7, 7, 7, 7, 0, 2, 7, 1, 3}));
}

TEST_F(RpcViewTest, WritingThroughPaddingDropsWhatFallsOnIt) {
  const std::string base = Filled({2, 2});
  const v1::Tensor view = Padded(base, 2, 1, 0, 0);
  const std::string other = Filled({3, 3});
  v1::Result result;
  ASSERT_THAT(Permute(Into(Copying(other, 2), view.name()), &result), IsOk());
  EXPECT_EQ(result.report().gathered_bytes(), 9 * 4);
  EXPECT_EQ(Values(base), (std::vector<float>{4, 5, 7, 8}));
}

TEST_F(RpcViewTest, AllTransformsInAnyCompositionAreReadAndWritten) {
  std::mt19937 rng(7);
  int gathered = 0, in_place = 0, written = 0;
  for (int i = 0; i < 150; ++i) {
    const core::Layout layout = core::test::RandomStorage(rng, 4);
    const std::vector<int64_t> extents(layout.extents.begin(),
                                       layout.extents.end());
    const std::vector<int64_t> strides(layout.strides.begin(),
                                       layout.strides.end());
    v1::Tensor base;
    ASSERT_THAT(Create(CreateRequest(extents, strides), &base), IsOk());
    const auto span = static_cast<size_t>(base.span_bytes() / 4);
    std::vector<float> before(span);
    std::iota(before.begin(), before.end(), 100.0f);
    ASSERT_THAT(Upload({Chunk(base.name(), 0, before)}), IsOk());

    core::test::ViewOracle oracle(layout, 0);
    v1::CreateViewRequest request = RequestFor(base.name());
    request.mutable_padding()->set_real(-1);
    std::optional<v1::Tensor> view;
    for (int stages = 1 + static_cast<int>(rng() % 3); stages > 0; --stages) {
      const core::Stage stage =
          core::test::RandomStage(rng, oracle.extents(), 300);
      oracle = oracle.Then(stage);
      AddStage(stage, request);
      if (stages > 1 && rng() % 2 == 0) {  // a view of a view
        view = ViewOf(request);
        request = RequestFor(view->name());
      }
    }
    view = ViewOf(request);
    ASSERT_EQ(ModeVector(view->layout().extents().begin(),
                         view->layout().extents().end()),
              oracle.extents());
    SCOPED_TRACE(view->ShortDebugString());
    std::vector<float> wanted;
    for (const int64_t element : oracle.elements()) {
      const bool is_padding = element == core::test::ViewOracle::kPadding;
      wanted.push_back(is_padding ? -1 : 100 + static_cast<float>(element));
    }
    ASSERT_EQ(Elements(*view), wanted);
    ++(view->view().is_gathered() ? gathered : in_place);

    v1::Tensor source;
    v1::CreateTensorRequest create = CreateRequest(
        std::vector<int64_t>(oracle.extents().begin(), oracle.extents().end()));
    create.mutable_layout()->set_order(v1::ORDER_LAST_MODE_FASTEST);
    ASSERT_THAT(Create(create, &source), IsOk());
    std::vector<float> values(wanted.size());
    std::iota(values.begin(), values.end(), 1000.0f);
    ASSERT_THAT(Upload({Chunk(source.name(), 0, values)}), IsOk());
    const Outcome outcome = Permute(
        Into(Copying(source.name(), static_cast<int>(oracle.extents().size())),
             view->name()));
    if (!view->view().is_writable()) {
      ASSERT_THAT(outcome,
                  FailsWith(grpc::INVALID_ARGUMENT, "OUTPUT_NOT_INJECTIVE"));
    } else {
      ASSERT_TRUE(oracle.IsInjective());
      ASSERT_THAT(outcome, IsOk());
      for (size_t k = 0; k < values.size(); ++k) {
        const int64_t element = oracle.elements()[k];
        if (element < 0) continue;
        before[static_cast<size_t>(element)] = values[k];
      }
      written += values.empty() ? 0 : 1;
    }
    ASSERT_EQ(Values(base.name()), before);
    for (const std::string& name : {base.name(), view->name(), source.name()}) {
      ASSERT_THAT(Delete(name), IsOk());
    }
  }
  EXPECT_GT(gathered, 20);
  EXPECT_GT(in_place, 20);
  EXPECT_GT(written, 20);
}

TEST_F(RpcViewTest, RepeatedModesBroadcastAndAreGatheredToBeSummed) {
  const std::string base = Filled({3});
  v1::CreateViewRequest request = RequestFor(base);
  v1::TransformStage& stage = *request.add_stages()->mutable_transform();
  v1::Transform& pass = *stage.add_transforms();
  pass.add_lower(0);
  pass.add_upper(0);
  pass.mutable_pass_through();
  v1::Transform& insert = *stage.add_transforms();
  insert.add_upper(1);
  insert.mutable_insert()->set_extent(4);
  const v1::Tensor view = ViewOf(request);
  EXPECT_THAT(view.layout().strides(), ElementsAre(1, 0));
  EXPECT_FALSE(view.view().is_gathered());
  EXPECT_FALSE(view.view().is_writable());

  v1::Result result;
  ASSERT_THAT(Permute(Permutation(view.name()), &result), IsOk());
  EXPECT_EQ(result.report().gathered_bytes(), 0);
  EXPECT_EQ(Values(result.tensor().name()),
            (std::vector<float>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}));
  v1::ReduceRequest reduce;
  reduce.set_session(session_);
  *reduce.mutable_a() = Named(view.name(), {1, 2});
  *reduce.mutable_d() = New({1});
  reduce.set_op(v1::BINARY_OPERATOR_ADD);
  v1::ReduceResponse reduced;
  ASSERT_THAT(
      Unary(&v1::ComputeService::Stub::Reduce, *compute_, reduce, &reduced),
      IsOk());
  EXPECT_EQ(reduced.result().report().gathered_bytes(), 12 * 4);
  EXPECT_EQ(Values(reduced.result().tensor().name()),
            (std::vector<float>{0, 4, 8}));
  // d's extent along the mode is checked as that of any other mode.
  const std::string short_d = Filled({3, 5});
  v1::PermuteRequest permute = Copying(view.name(), 2);
  EXPECT_THAT(Permute(Into(permute, short_d)),
              FailsWith(grpc::INVALID_ARGUMENT, "MODE_EXTENT_MISMATCH"));
  v1::DownloadTensorRequest download;
  download.set_tensor(view.name());
  std::string data;
  EXPECT_THAT(Download(download, &data),
              FailsWith(grpc::INVALID_ARGUMENT, "VIEW_NOT_STRIDED"));
}

TEST_F(RpcViewTest, BlocksOfOneTensorAreInputsAndOutputs) {
  const std::string base = Filled({4, 4});
  const auto block = [&](int64_t row, int64_t column) {
    v1::CreateViewRequest request = RequestFor(base);
    v1::IndexStage& stage = *request.add_stages()->mutable_index();
    AddSlice(stage, row, row + 2);
    AddSlice(stage, column, column + 2);
    return ViewOf(request).name();
  };
  const std::vector<float> m = Values(base);
  const auto at = [&](int i, int j) {
    return m[static_cast<size_t>(i + 4 * j)];
  };
  v1::ContractRequest request = Contraction(block(2, 0), block(0, 2));
  *request.mutable_d() = v1::Output();
  request.mutable_d()->set_tensor(block(2, 2));
  request.mutable_d()->add_modes('i');
  request.mutable_d()->add_modes('j');
  *request.mutable_c() = Named(block(2, 2), {'i', 'j'});
  request.mutable_alpha()->set_real(-1);
  request.mutable_beta()->set_real(1);
  ASSERT_THAT(Contract(request), IsOk());
  const std::vector<float> got = Values(base);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      float wanted = at(i, j);
      if (i >= 2 && j >= 2) {
        for (int k = 0; k < 2; ++k) wanted -= at(i, k) * at(k, j);
      }
      EXPECT_EQ(got[static_cast<size_t>(i + 4 * j)], wanted) << i << " " << j;
    }
  }
  // Blocks that share elements are refused.
  v1::PermuteRequest overlapping = Copying(block(0, 0), 2);
  EXPECT_THAT(Permute(Into(overlapping, block(1, 0))),
              FailsWith(grpc::INVALID_ARGUMENT, "OUTPUT_OVERLAPS_INPUT"));
  EXPECT_EQ(Values(base), got);
}

TEST_F(RpcViewTest, BackwardsInPlaceIsCopiedFirst) {
  const std::string base = Filled({5});
  const v1::Tensor backwards = Slice(base, {}, {}, -1);
  EXPECT_THAT(backwards.layout().strides(), ElementsAre(-1));
  EXPECT_TRUE(backwards.view().is_gathered());
  EXPECT_TRUE(backwards.view().is_writable());
  ASSERT_THAT(Permute(Into(Copying(backwards.name(), 1), base)), IsOk());
  EXPECT_EQ(Values(base), (std::vector<float>{4, 3, 2, 1, 0}));
}

TEST_F(RpcViewTest, OutlivesTheNameOfWhatItSees) {
  const int64_t before = server_.used_bytes();
  const std::string base = Filled({8});
  const v1::Tensor view = Slice(base, 2, 4);
  ASSERT_THAT(Delete(base), IsOk());
  EXPECT_EQ(Values(view.name()), (std::vector<float>{2, 3}));
  EXPECT_EQ(Describe(view.name()).view().viewed(), base);
  ASSERT_THAT(Delete(view.name()), IsOk());
  EXPECT_EQ(server_.used_bytes(), before);
  EXPECT_THAT(CreateView(RequestFor(base)),
              FailsWith(grpc::NOT_FOUND, "TENSOR_NOT_FOUND"));
}

TEST_F(RpcViewTest, APartIsWrittenOnlyBesideContents) {
  v1::Tensor base;
  ASSERT_THAT(Create(CreateRequest({4}), &base), IsOk());
  const v1::Tensor part = Slice(base.name(), 0, 2);
  const std::string source = Filled({2});
  EXPECT_THAT(Permute(Into(Copying(source, 1), part.name())),
              FailsWith(grpc::FAILED_PRECONDITION, "TENSOR_NOT_READY"));
  // All of it, in another order.
  const v1::Tensor backwards = Slice(base.name(), {}, {}, -1);
  ASSERT_THAT(Permute(Into(Copying(Filled({4}), 1), backwards.name())), IsOk());
  EXPECT_EQ(Values(base.name()), (std::vector<float>{3, 2, 1, 0}));
  ASSERT_THAT(Permute(Into(Copying(source, 1), part.name())), IsOk());
  EXPECT_EQ(Values(base.name()), (std::vector<float>{0, 1, 1, 0}));
}

TEST_F(RpcViewTest, CopiesArePacked) {
  const std::string base = Filled({4, 3});
  v1::CreateViewRequest request = RequestFor(base);
  v1::IndexStage& stage = *request.add_stages()->mutable_index();
  AddSlice(stage, {}, {}, 2);
  AddSlice(stage, {}, {}, -1);
  const v1::Tensor view = ViewOf(request);
  v1::CopyTensorRequest copy;
  copy.set_source(view.name());
  v1::CopyTensorResponse copied;
  ASSERT_THAT(
      Unary(&v1::TensorService::Stub::CopyTensor, *tensors_, copy, &copied),
      IsOk());
  EXPECT_FALSE(copied.tensor().has_view());
  EXPECT_EQ(Values(copied.tensor().name()),
            (std::vector<float>{8, 10, 4, 6, 0, 2}));
  v1::OpenSessionResponse opened;
  ASSERT_THAT(Open({}, &opened), IsOk());
  copy.set_session(opened.session().name());
  EXPECT_THAT(
      Unary(&v1::TensorService::Stub::CopyTensor, *tensors_, copy, &copied),
      FailsWith(grpc::INVALID_ARGUMENT, "TENSOR_IS_VIEW"));
  EXPECT_THAT(Upload({Chunk(view.name(), 0, std::vector<float>(6))}),
              FailsWith(grpc::INVALID_ARGUMENT, "TENSOR_IS_VIEW"));
}

TEST_F(RpcViewTest, RefusesWhatDoesNotFit) {
  const std::string base = Filled({4, 4});
  using Edit = std::function<void(v1::CreateViewRequest&)>;
  struct Case {
    grpc::StatusCode code;
    std::string reason;
    std::string message;
    Edit edit;
  };
  const auto index = [](auto& q) -> v1::IndexStage& {
    return *q.add_stages()->mutable_index();
  };
  const std::vector<Case> cases = {
      {grpc::NOT_FOUND, "TENSOR_NOT_FOUND", "",
       [&](auto& q) { q.set_tensor(session_ + "/tensors/none"); }},
      {grpc::INVALID_ARGUMENT, "TENSOR_NAME_MALFORMED", "",
       [](auto& q) { q.set_tensor("none"); }},
      {grpc::INVALID_ARGUMENT, "TENSOR_ID_MALFORMED", "",
       [](auto& q) { q.set_tensor_id("a/b"); }},
      {grpc::INVALID_ARGUMENT, "STAGE_MISSING", "stage 0",
       [](auto& q) { q.add_stages(); }},
      {grpc::INVALID_ARGUMENT, "TRANSFORM_MISSING", "stage 0, transform 0",
       [](auto& q) { q.add_stages()->mutable_transform()->add_transforms(); }},
      {grpc::INVALID_ARGUMENT, "INDEX_ITEM_MISSING", "stage 0, item 0",
       [&](auto& q) { index(q).add_items(); }},
      {grpc::INVALID_ARGUMENT, "INDEX_OUT_OF_RANGE", "4",
       [&](auto& q) { index(q).add_items()->set_index(4); }},
      {grpc::INVALID_ARGUMENT, "TOO_MANY_STAGES", "33",
       [&](auto& q) {
         for (int i = 0; i < 33; ++i) index(q);
       }},
      {grpc::INVALID_ARGUMENT, "SCALAR_NOT_REAL", "padding",
       [](auto& q) { q.mutable_padding()->set_imaginary(1); }},
      {grpc::INVALID_ARGUMENT, "SCALAR_OUT_OF_RANGE", "padding",
       [](auto& q) { q.mutable_padding()->set_real(1e300); }},
      {grpc::INVALID_ARGUMENT, "ENUM_UNKNOWN", "order",
       [](auto& q) {
         v1::Transform& merge =
             *q.add_stages()->mutable_transform()->add_transforms();
         merge.mutable_merge()->set_order(static_cast<v1::Order>(9));
       }},
  };
  for (const Case& c : cases) {
    v1::CreateViewRequest request = RequestFor(base);
    c.edit(request);
    const Outcome outcome = CreateView(request);
    EXPECT_THAT(outcome, FailsWith(c.code, c.reason))
        << request.ShortDebugString();
    EXPECT_THAT(outcome.status.error_message(), HasSubstr(c.message));
  }
  v1::CreateViewRequest twice = RequestFor(base);
  twice.set_tensor_id("twice");
  EXPECT_THAT(CreateView(twice), IsOk());
  EXPECT_THAT(CreateView(twice),
              FailsWith(grpc::ALREADY_EXISTS, "TENSOR_ALREADY_EXISTS"));
  const v1::Tensor padded = Padded(base, 2, 1, 1, 3);
  v1::CreateViewRequest other = RequestFor(padded.name());
  other.mutable_padding()->set_real(4);
  EXPECT_THAT(CreateView(other),
              FailsWith(grpc::INVALID_ARGUMENT, "PADDING_DIFFERS"));
  other.mutable_padding()->set_real(3);
  EXPECT_THAT(CreateView(other), IsOk());
}

TEST_F(RpcViewTest, MemoryOfPackedCopiesComesBackAndIsLimited) {
  const std::string base = Filled({8});
  const int64_t before = server_.used_bytes();
  for (int i = 0; i < 3; ++i) {
    const v1::Tensor view = Padded(base, 1, 2, 2, 0);
    EXPECT_EQ(Elements(view).size(), 12u);
    ASSERT_THAT(Delete(view.name()), IsOk());
  }
  EXPECT_EQ(server_.used_bytes(), before);
  v1::CreateViewRequest request = RequestFor(base);
  v1::TransformStage& stage = *request.add_stages()->mutable_transform();
  v1::Transform& pass = *stage.add_transforms();
  pass.add_lower(0);
  pass.add_upper(0);
  pass.mutable_pad()->set_after(1);
  v1::Transform& replicate = *stage.add_transforms();
  replicate.add_upper(1);
  replicate.mutable_insert()->set_extent(int64_t{1} << 33);
  const v1::Tensor huge = ViewOf(request);
  v1::ReduceRequest reduce;
  reduce.set_session(session_);
  *reduce.mutable_a() = Named(huge.name(), {1, 2});
  *reduce.mutable_d() = New({1});
  reduce.set_op(v1::BINARY_OPERATOR_ADD);
  v1::ReduceResponse reduced;
  EXPECT_THAT(
      Unary(&v1::ComputeService::Stub::Reduce, *compute_, reduce, &reduced),
      FailsWith(grpc::RESOURCE_EXHAUSTED, "MEMORY_LIMIT"));
  EXPECT_EQ(server_.used_bytes(), before);
}

TEST_F(RpcViewTest, ExplainSeesWhatExecutionWillRun) {
  const v1::Tensor view = Padded(Filled({4, 4}), 2, 1, 1, 0);
  v1::ExplainPlanRequest request;
  *request.mutable_permute() = Permutation(view.name());
  v1::ExplainPlanResponse response;
  ASSERT_THAT(
      Unary(&v1::PlanService::Stub::ExplainPlan, *plans_, request, &response),
      IsOk());
  v1::Result result;
  ASSERT_THAT(Permute(request.permute(), &result), IsOk());
  EXPECT_EQ(result.report().kernel(), response.kernel());
}

}  // namespace
}  // namespace tensord
