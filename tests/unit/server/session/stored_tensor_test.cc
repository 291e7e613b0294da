#include "server/session/stored_tensor.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/memory/host_resource.h"

namespace tensord::server {
namespace {

using WriteResult = StoredTensor::WriteResult;

std::unique_ptr<StoredTensor> NewTensor(int64_t extent = 4) {
  const core::TensorDesc desc{
      core::ElementType::kFloat32,
      core::PackedLayout({extent}, core::Order::kFirstModeFastest)};
  auto tensor =
      std::make_unique<StoredTensor>("sessions/s/tensors/t", "cpu:0", desc,
                                     std::make_shared<core::HostResource>());
  EXPECT_TRUE(tensor->Allocate().ok());
  return tensor;
}

void Fill(StoredTensor& tensor) {
  ASSERT_TRUE(tensor.BeginUpload(0).ok());
  tensor.Commit(tensor.desc().span_bytes());
  tensor.EndUpload();
}

TEST(StoredTensorTest, StartsEmptyAndCannotBeRead) {
  const auto tensor = NewTensor();
  EXPECT_EQ(tensor->state(), TensorState::kEmpty);
  EXPECT_EQ(core::ReasonOf(tensor->BeginRead()), "TENSOR_NOT_READY");
  EXPECT_EQ(core::ReasonOf(tensor->CheckReady()), "TENSOR_NOT_READY");
}

TEST(StoredTensorTest, WhatIsSharedIsWrittenWhenNobodyElseReads) {
  const auto tensor = NewTensor();
  const std::vector<std::string> blue = {"blue"}, green = {"green"};
  const auto share = [&](absl::Span<const std::string> tenants) {
    return tensor->Share(std::make_shared<TensorShare>(
                             "shares/1", std::weak_ptr<StoredTensor>()),
                         tenants);
  };
  EXPECT_EQ(core::ReasonOf(share(blue).status()), "TENSOR_NOT_READY");
  Fill(*tensor);
  ASSERT_TRUE(tensor->BeginWrite().ok());
  EXPECT_EQ(core::ReasonOf(share(blue).status()), "TENSOR_NOT_READY");
  tensor->EndWrite(WriteResult::kUntouched);
  const auto first = share(blue);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(share(green), first);
  EXPECT_EQ(core::ReasonOf(tensor->BeginWrite()), "TENSOR_SHARED");
  EXPECT_EQ(core::ReasonOf(tensor->BeginUpload(0)), "TENSOR_SHARED");

  StoredTensor theirs(
      "sessions/o/tensors/x", *tensor,
      *TensorView::Create("shares/1", tensor->desc(), nullptr, {}, {}), *first);
  ASSERT_TRUE(theirs.BeginRead().ok());
  EXPECT_EQ(core::ReasonOf(theirs.BeginWrite()), "TENSOR_READ_ONLY");
  EXPECT_EQ(tensor->Unshare(blue), green);
  EXPECT_TRUE(tensor->Unshare({}).empty());
  EXPECT_EQ(core::ReasonOf(tensor->BeginWrite()), "TENSOR_BUSY");
  theirs.EndRead();
  ASSERT_TRUE(tensor->BeginWrite().ok());
  // Nothing says what the owner calls it.
  const absl::Status pending = theirs.BeginRead();
  EXPECT_EQ(pending.message(),
            "tensor sessions/o/tensors/x cannot be read: an operation is "
            "writing it");
  tensor->EndWrite(WriteResult::kUntouched);
  tensor->Forget();
  EXPECT_EQ(core::ReasonOf(share(blue).status()), "TENSOR_NOT_FOUND");
}

TEST(StoredTensorTest, IsReadyWhenTheLastByteHasCome) {
  const auto tensor = NewTensor();
  ASSERT_TRUE(tensor->BeginUpload(0).ok());
  tensor->Commit(12);
  EXPECT_EQ(tensor->state(), TensorState::kPartial);
  EXPECT_EQ(tensor->committed_bytes(), 12);
  tensor->EndUpload();
  ASSERT_TRUE(tensor->BeginUpload(12).ok());
  tensor->Commit(4);
  tensor->EndUpload();
  EXPECT_EQ(tensor->state(), TensorState::kReady);
}

TEST(StoredTensorTest, TensorWithoutElementsIsReadyAfterAnEmptyUpload) {
  const auto tensor = NewTensor(0);
  ASSERT_TRUE(tensor->BeginUpload(0).ok());
  EXPECT_EQ(tensor->state(), TensorState::kReady);
}

TEST(StoredTensorTest, UploadStartsAtZeroOrWhereItBrokeOff) {
  const auto tensor = NewTensor();
  EXPECT_EQ(core::ReasonOf(tensor->BeginUpload(4)), "CHUNK_OUT_OF_ORDER");
  ASSERT_TRUE(tensor->BeginUpload(0).ok());
  tensor->Commit(8);
  tensor->EndUpload();
  EXPECT_EQ(core::ReasonOf(tensor->BeginUpload(4)), "CHUNK_OUT_OF_ORDER");
  ASSERT_TRUE(tensor->BeginUpload(0).ok());
  EXPECT_EQ(tensor->committed_bytes(), 0);
}

TEST(StoredTensorTest, UploadAndOperationsExcludeEachOther) {
  const auto tensor = NewTensor();
  Fill(*tensor);
  ASSERT_TRUE(tensor->BeginRead().ok());
  EXPECT_EQ(core::ReasonOf(tensor->BeginUpload(0)), "TENSOR_BUSY");
  tensor->EndRead();
  ASSERT_TRUE(tensor->BeginUpload(0).ok());
  EXPECT_EQ(core::ReasonOf(tensor->BeginUpload(0)), "TENSOR_BUSY");
  EXPECT_EQ(core::ReasonOf(tensor->BeginWrite()), "TENSOR_BUSY");
  EXPECT_EQ(core::ReasonOf(tensor->BeginRead()), "TENSOR_NOT_READY");
}

TEST(StoredTensorTest, PendingTensorMayBeReadByWhatIsQueuedBehind) {
  const auto tensor = NewTensor();
  ASSERT_TRUE(tensor->BeginWrite().ok());
  EXPECT_EQ(tensor->state(), TensorState::kPending);
  EXPECT_TRUE(tensor->BeginRead().ok());
  EXPECT_FALSE(tensor->CheckReady().ok());
  tensor->StartWrite();
  EXPECT_FALSE(tensor->CheckReady().ok());
  tensor->Written();
  EXPECT_TRUE(tensor->CheckReady().ok());
  EXPECT_FALSE(tensor->CheckSettled().ok());
  EXPECT_EQ(tensor->state(), TensorState::kPending);
  tensor->EndWrite(WriteResult::kDone);
  EXPECT_TRUE(tensor->CheckSettled().ok());
  EXPECT_EQ(tensor->state(), TensorState::kReady);
}

TEST(StoredTensorTest, WritesAreLaunchedAheadOfTheirEnds) {
  const auto tensor = NewTensor();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(tensor->BeginWrite().ok());
  tensor->StartWrite();
  tensor->Written();
  tensor->StartWrite();  // The second cannot be launched as a whole.
  tensor->EndWrite(WriteResult::kDone);
  EXPECT_EQ(core::ReasonOf(tensor->CheckReady()), "TENSOR_NOT_READY");
  EXPECT_EQ(core::ReasonOf(tensor->CheckSettled()), "TENSOR_NOT_READY");
  tensor->EndWrite(WriteResult::kFailed);
  tensor->EndWrite(WriteResult::kUntouched);
  EXPECT_EQ(tensor->state(), TensorState::kInvalid);
}

TEST(StoredTensorTest, FailureDoesNotTouchWhatALaterWriteLeft) {
  const auto tensor = NewTensor();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(tensor->BeginWrite().ok());
  tensor->StartWrite();  // The launch of the first fails,
  tensor->StartWrite();  // and that of the second does not.
  tensor->Written();
  tensor->EndWrite(WriteResult::kFailed);
  EXPECT_TRUE(tensor->CheckReady().ok());
  tensor->EndWrite(WriteResult::kDone);
  EXPECT_EQ(tensor->state(), TensorState::kReady);
}

TEST(StoredTensorTest, WriteThatFailsOnTheDeviceLeavesItInvalid) {
  const auto tensor = NewTensor();
  ASSERT_TRUE(tensor->BeginWrite().ok());
  tensor->StartWrite();
  tensor->Written();
  tensor->EndWrite(WriteResult::kFailed);
  EXPECT_EQ(tensor->state(), TensorState::kInvalid);
}

TEST(StoredTensorTest, WriteThatNeverStartedLeavesTheContents) {
  const auto tensor = NewTensor();
  Fill(*tensor);
  const uint64_t version = tensor->version();
  ASSERT_TRUE(tensor->BeginWrite().ok());
  tensor->EndWrite(WriteResult::kUntouched);
  EXPECT_EQ(tensor->state(), TensorState::kReady);
  EXPECT_EQ(tensor->version(), version);
}

TEST(StoredTensorTest, WriteThatFailedLeavesItInvalidUntilRewritten) {
  const auto tensor = NewTensor();
  Fill(*tensor);
  const uint64_t version = tensor->version();
  ASSERT_TRUE(tensor->BeginWrite().ok());
  tensor->StartWrite();
  tensor->EndWrite(WriteResult::kFailed);
  EXPECT_EQ(tensor->state(), TensorState::kInvalid);
  EXPECT_NE(tensor->version(), version);
  Fill(*tensor);
  EXPECT_EQ(tensor->state(), TensorState::kReady);
}

TEST(StoredTensorTest, TellsWhetherItHasItsMemory) {
  const auto memory = std::make_shared<core::HostResource>();
  const auto packed = [](int64_t extent) {
    return core::TensorDesc{
        core::ElementType::kFloat32,
        core::PackedLayout({extent}, core::Order::kFirstModeFastest)};
  };
  StoredTensor tensor("t", "cpu:0", packed(8), memory);
  EXPECT_FALSE(tensor.has_memory());
  ASSERT_TRUE(tensor.Allocate().ok());
  EXPECT_TRUE(tensor.has_memory());
  EXPECT_TRUE(StoredTensor("e", "cpu:0", packed(0), memory).has_memory());
}

TEST(StoredTensorTest, GapsAreZeroed) {
  const core::TensorDesc desc{core::ElementType::kFloat32,
                              core::Layout{{2, 2}, {1, 100}},
                              /*offset=*/3};
  StoredTensor tensor("t", "cpu:0", desc,
                      std::make_shared<core::HostResource>());
  ASSERT_TRUE(tensor.Allocate().ok());
  const std::byte* const start = tensor.first() - desc.offset_bytes();
  for (int64_t i = 0; i < desc.offset_bytes() + desc.span_bytes(); ++i) {
    ASSERT_EQ(start[i], std::byte{0});
  }
}

StoredTensor ViewOf(const StoredTensor& tensor, int64_t start, int64_t stop) {
  const std::vector<ViewStage> stages = {
      std::vector<core::IndexItem>{core::SliceItem{start, stop, 1}}};
  TensorView view = TensorView::Create(tensor.name(), tensor.desc(), nullptr,
                                       stages, std::nullopt)
                        .value();
  return StoredTensor("sessions/s/tensors/v", tensor, std::move(view));
}

TEST(StoredTensorTest, AViewSharesContentsAndStateWithWhatItSees) {
  const auto tensor = NewTensor();
  StoredTensor view = ViewOf(*tensor, 1, 3);
  EXPECT_EQ(view.state(), TensorState::kEmpty);
  Fill(*tensor);
  EXPECT_EQ(view.state(), TensorState::kReady);
  EXPECT_EQ(view.committed_bytes(), 8);
  EXPECT_EQ(view.first(), tensor->first() + 4);
  EXPECT_EQ(core::ReasonOf(view.BeginUpload(0)), "TENSOR_IS_VIEW");
  ASSERT_TRUE(view.BeginWrite().ok());
  EXPECT_EQ(tensor->state(), TensorState::kPending);
  view.StartWrite();
  view.EndWrite(WriteResult::kFailed);
  EXPECT_EQ(tensor->state(), TensorState::kInvalid);
}

TEST(StoredTensorTest, APartIsWrittenOnlyWhereTheRestHasContents) {
  const auto tensor = NewTensor();
  StoredTensor part = ViewOf(*tensor, 1, 3);
  EXPECT_TRUE(part.is_part());
  EXPECT_EQ(core::ReasonOf(part.BeginWrite()), "TENSOR_NOT_READY");
  StoredTensor all = ViewOf(*tensor, 0, 4);
  EXPECT_FALSE(all.is_part());
  EXPECT_TRUE(all.BeginWrite().ok());
  // Behind a write of all there will be contents.
  EXPECT_TRUE(part.BeginWrite().ok());
}

TEST(StoredTensorTest, WritingAPartDoesNotMendWhatFailedBefore) {
  const auto tensor = NewTensor();
  StoredTensor part = ViewOf(*tensor, 1, 3);
  for (const bool ends_between : {false, true}) {
    Fill(*tensor);
    ASSERT_TRUE(tensor->BeginWrite().ok());
    ASSERT_TRUE(part.BeginWrite().ok());
    tensor->StartWrite();
    tensor->Written();
    part.StartWrite();
    if (ends_between) tensor->EndWrite(WriteResult::kFailed);
    part.Written();
    if (!ends_between) tensor->EndWrite(WriteResult::kFailed);
    EXPECT_FALSE(tensor->CheckReady().ok());
    part.EndWrite(WriteResult::kDone);
    EXPECT_EQ(tensor->state(), TensorState::kInvalid);
    EXPECT_EQ(tensor->committed_bytes(), 0);
  }
}

TEST(StoredTensorTest, AnUploadMendsWhatFailedBefore) {
  const auto tensor = NewTensor();
  StoredTensor part = ViewOf(*tensor, 1, 3);
  Fill(*tensor);
  ASSERT_TRUE(part.BeginWrite().ok());
  part.StartWrite();
  part.EndWrite(WriteResult::kFailed);
  EXPECT_EQ(tensor->state(), TensorState::kInvalid);
  Fill(*tensor);
  ASSERT_TRUE(part.BeginWrite().ok());
  part.StartWrite();
  part.Written();
  part.EndWrite(WriteResult::kDone);
  EXPECT_EQ(tensor->state(), TensorState::kReady);
}

TEST(StoredTensorTest, WritingAllMendsAPartThatFailedBefore) {
  const auto tensor = NewTensor();
  Fill(*tensor);
  StoredTensor part = ViewOf(*tensor, 1, 3);
  ASSERT_TRUE(part.BeginWrite().ok());
  ASSERT_TRUE(tensor->BeginWrite().ok());
  part.StartWrite();
  part.Written();
  tensor->StartWrite();
  tensor->Written();
  part.EndWrite(WriteResult::kFailed);
  EXPECT_TRUE(tensor->CheckReady().ok());
  tensor->EndWrite(WriteResult::kDone);
  EXPECT_EQ(tensor->state(), TensorState::kReady);
}

}  // namespace
}  // namespace tensord::server
