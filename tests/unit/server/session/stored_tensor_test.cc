#include "server/session/stored_tensor.h"

#include <gtest/gtest.h>

#include <memory>

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

}  // namespace
}  // namespace tensord::server
