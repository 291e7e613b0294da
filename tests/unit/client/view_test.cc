// Views through the client, against the server in a process of its own.
#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <vector>

#include "tensord/session.h"
#include "tests/testing/places.h"
#include "tests/testing/server_process.h"

namespace tensord {
namespace {

using testing::ServerProcess;
using Values = std::vector<float>;

class ViewTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_.emplace(testing::Built("tensord")); }
  static void TearDownTestSuite() { server_.reset(); }

  RemoteTensor Counting(std::vector<int64_t> extents) {
    Values values(static_cast<size_t>(ElementCount(extents)));
    std::iota(values.begin(), values.end(), 0.0f);
    return session_.Upload(HostView<float>{values.data(), std::move(extents)})
        .value();
  }
  static Values Of(const absl::StatusOr<RemoteTensor>& tensor) {
    if (!tensor.ok()) {
      ADD_FAILURE() << tensor.status();
      return {};
    }
    return tensor->Download<float>().value();
  }

  static std::optional<ServerProcess> server_;
  Session session_ = Session::Connect(server_->address()).value();
};

std::optional<ServerProcess> ViewTest::server_;

TEST_F(ViewTest, IndexesAsNumPyDoes) {
  const RemoteTensor t = Counting({2, 3, 4});
  EXPECT_EQ(Of(t.Index({1, Range{.step = -1}, 0})), (Values{20, 16, 12}));
  const RemoteTensor view =
      t.Index({Ellipsis{}, NewMode{}, Range{1, 3}}).value();
  EXPECT_EQ(view.extents(), (std::vector<int64_t>{2, 3, 1, 2}));
  ASSERT_TRUE(view.info().view.has_value());
  EXPECT_EQ(view.info().view->viewed, t.name());
  EXPECT_FALSE(view.info().view->is_gathered);
  EXPECT_TRUE(view.info().view->is_writable);
  EXPECT_EQ(Of(view.Index({0, 1})), (Values{5, 6}));
  EXPECT_EQ(ReasonOf(t.Index({2}).status()), "INDEX_OUT_OF_RANGE");
}

TEST_F(ViewTest, SharedTensorsAreReadInOtherSessions) {
  RemoteTensor t = Counting({4});
  const std::string share = t.Share({"default"}).value();
  Session other = Session::Connect(server_->address()).value();
  const RemoteTensor theirs = other.OpenShared(share, "x").value();
  EXPECT_EQ(Of(theirs.Index({Range{.step = -1}})), (Values{3, 2, 1, 0}));
  EXPECT_EQ(theirs.info().view->viewed, share);
  EXPECT_FALSE(theirs.info().view->is_writable);
  PermuteOptions onto;
  onto.execution.output = &theirs;
  EXPECT_EQ(ReasonOf(other.Permute({theirs, "i"}, "i", onto).status()),
            "TENSOR_READ_ONLY");
  ASSERT_TRUE(t.Unshare().ok());
  EXPECT_EQ(ReasonOf(theirs.Download<float>().status()), "TENSOR_NOT_FOUND");
  EXPECT_EQ(ReasonOf(other.OpenShared(share).status()), "SHARE_NOT_FOUND");
}

TEST_F(ViewTest, WritesGoToWhatItSees) {
  const RemoteTensor t = Counting({2, 3});
  const RemoteTensor row = t.Index({1}).value();
  const RemoteTensor source = t.Index({0}).value();
  PermuteOptions options{.alpha = 10};
  options.execution.output = &row;
  ASSERT_TRUE(session_.Permute({source, "i"}, "i", options).ok());
  EXPECT_EQ(t.Download<float>().value(), (Values{0, 1, 2, 0, 10, 20}));
}

TEST_F(ViewTest, TransposesAndTakesDiagonals) {
  const RemoteTensor t = Counting({2, 3});
  EXPECT_EQ(Of(t.Transpose({1, 0})), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(ReasonOf(t.Transpose({0, 0}).status()), "AXES_MALFORMED");
  EXPECT_EQ(ReasonOf(t.Transpose({0}).status()), "AXES_MALFORMED");
  EXPECT_EQ(Of(Counting({3, 3}).Diagonal()), (Values{0, 4, 8}));
  EXPECT_EQ(Of(Counting({2, 3}).Diagonal()), (Values{0, 4}));
  EXPECT_EQ(Of(Counting({2, 3, 2}).Diagonal(0, -1)),
            (Values{0, 7, 2, 9, 4, 11}));
  EXPECT_EQ(ReasonOf(t.Diagonal(0, 2).status()), "AXES_MALFORMED");
  EXPECT_EQ(ReasonOf(t.Diagonal(1, -1).status()), "AXES_MALFORMED");
}

TEST_F(ViewTest, ReshapesKeepStridesWhereTheyCan) {
  const RemoteTensor t = Counting({2, 6, 4});
  Values all(48);
  std::iota(all.begin(), all.end(), 0.0f);
  for (const std::vector<int64_t>& extents : std::vector<std::vector<int64_t>>{
           {48}, {2, 2, 3, 4}, {12, 4}, {-1, 8}, {1, 2, 1, 6, 4, 1}, {3, 16}}) {
    const auto view = t.Reshape(extents);
    EXPECT_EQ(Of(view), all);
    EXPECT_FALSE(view->info().view->is_gathered);
  }
  // Modes that are not neighbours in memory fuse only by a copy.
  const RemoteTensor turned = t.Transpose({2, 1, 0}).value();
  EXPECT_TRUE(turned.Reshape({48})->info().view->is_gathered);
  EXPECT_FALSE(turned.Reshape({2, 2, 6, 2})->info().view->is_gathered);
  EXPECT_EQ(Of(Counting({}).Reshape({1, 1})), Values{0});
  EXPECT_EQ(Of(Counting({1, 1}).Reshape({})), Values{0});
  EXPECT_EQ(Of(Counting({0, 3}).Reshape({5, 0, -1 + 8})), Values{});
  EXPECT_EQ(ReasonOf(t.Reshape({7, -1}).status()), "RESHAPE_MISMATCH");
  EXPECT_EQ(ReasonOf(t.Reshape({-1, -1}).status()), "RESHAPE_MISMATCH");
  EXPECT_EQ(ReasonOf(Counting({0, 3}).Reshape({0, -1}).status()),
            "RESHAPE_MISMATCH");
}

TEST_F(ViewTest, BroadcastsAndPads) {
  const RemoteTensor t = Counting({2, 1});
  EXPECT_EQ(Of(t.BroadcastTo({2, 2, 3})),
            (Values{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(ReasonOf(t.BroadcastTo({3, 3}).status()), "BROADCAST_MISMATCH");
  EXPECT_EQ(ReasonOf(t.BroadcastTo({2}).status()), "BROADCAST_MISMATCH");
  EXPECT_EQ(Of(t.Pad({{1, 0}, {0, 1}}, {.padding = 7})),
            (Values{7, 7, 0, 7, 1, 7}));
  EXPECT_EQ(ReasonOf(t.Pad({{1, 0}}).status()), "PADDING_MALFORMED");
  const PermuteOptions around = {
      .alpha = 2,
      .padding = {.before = {1, 0}, .after = {}, .value = 7},
      .execution = {}};
  EXPECT_EQ(Of(session_.Permute({t, "ij"}, "ji", around)),
            (Values{7, 7, 0, 2}));
  EXPECT_EQ(
      Of(session_.PlanPermute({t, "ij"}, "ji", around)->Execute({.a = &t})),
      (Values{7, 7, 0, 2}));
}

TEST_F(ViewTest, TakesEveryTransform) {
  const RemoteTensor t = Counting({4, 8});
  const auto view = t.View({{{transform::Slice{0, 4, 2}, {0}, {0}},
                             {transform::Unmerge{{2, 4}}, {1}, {2, 1}}},
                            {{transform::PassThrough{}, {0}, {0}},
                             {transform::Freeze{1}, {1}, {}},
                             {transform::PassThrough{}, {2}, {1}},
                             {transform::Replicate{{2}}, {}, {2}}}});
  EXPECT_EQ(Of(view), (Values{1, 1, 5, 5, 17, 17, 21, 21}));
  EXPECT_EQ(Of(t.View({{{transform::Xor{}, {0, 1}, {0, 1}}}})
                   ->Index({3, Range{0, 4}})),
            (Values{27, 26, 25, 24}));
  EXPECT_EQ(Of(t.View({{{transform::Freeze{0}, {0}, {}},
                        {transform::Embed{{3, 2}, {2, 1}, 1}, {1}, {0, 1}}}})),
            (Values{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Of(t.View({{{transform::Freeze{0}, {0}, {}},
                        {transform::Modulo{3, 5}, {1}, {0}}}})),
            (Values{0, 1, 2, 0, 1}));
  EXPECT_EQ(Of(t.View({{{transform::Freeze{0}, {0}, {}},
                        {transform::Offset{2, 3}, {1}, {0}}}})),
            (Values{2, 3, 4}));
  EXPECT_EQ(
      Of(t.View({{{transform::Merge{Order::kFirstModeFastest}, {0, 1}, {0}}}})
             ->Index({Range{0, 5}})),
      (Values{0, 8, 16, 24, 1}));
  EXPECT_EQ(Of(t.View({{{transform::Freeze{0}, {0}, {}},
                        {transform::Freeze{3}, {1}, {}},
                        {transform::Insert{2}, {}, {0}}}})),
            (Values{3, 3}));
  EXPECT_EQ(ReasonOf(t.View({{{transform::Diagonal{}, {0, 1}, {0}}}}).status()),
            "MODE_EXTENT_MISMATCH");
}

TEST_F(ViewTest, OutlivesTheHandleOfWhatItSees) {
  std::optional<RemoteTensor> view;
  {
    const RemoteTensor t = Counting({2, 3});
    view.emplace(t.Index({1}).value());
  }
  EXPECT_EQ(view->Download<float>().value(), (Values{3, 4, 5}));
}

}  // namespace
}  // namespace tensord
