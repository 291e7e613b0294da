#include "server/execution/program/kept_values.h"

#include <gtest/gtest.h>

#include <memory>

#include "core/memory/host_resource.h"
#include "core/memory/limiting_resource.h"

namespace tensord::server {
namespace {

class KeptValuesTest : public ::testing::Test {
 protected:
  static std::shared_ptr<StoredTensor> NewTensor() {
    return std::make_shared<StoredTensor>(
        "sessions/s/tensors/t", "cpu:0",
        core::TensorDesc{core::ElementType::kFloat32,
                         core::PackedLayout({4}, core::Order())},
        std::make_shared<core::HostResource>());
  }
  static KeptValues::Sources Of(const std::shared_ptr<StoredTensor>& tensor,
                                uint64_t version) {
    return {{tensor, version}};
  }

  core::HostResource host_;
  std::shared_ptr<core::LimitingResource> memory_ =
      std::make_shared<core::LimitingResource>(host_, 1024, "the test");
  std::shared_ptr<KeptValues> values_ =
      std::make_shared<KeptValues>(memory_, 512);
  std::shared_ptr<StoredTensor> tensor_ = NewTensor();
};

TEST_F(KeptValuesTest, AreThereOnceTheyAreQueued) {
  EXPECT_FALSE(values_->AreOf(Of(tensor_, 1)));
  const uint64_t number = values_->BeginComputing();
  EXPECT_FALSE(values_->AreOf(Of(tensor_, 1)));
  values_->Queued(number, Of(tensor_, 1), {3, 4});
  EXPECT_TRUE(values_->AreOf(Of(tensor_, 1)));
  EXPECT_EQ(values_->extents(), (std::vector<int64_t>{3, 4}));
}

TEST_F(KeptValuesTest, BelongToContentsOfATensor) {
  values_->Queued(values_->BeginComputing(), Of(tensor_, 1), {1});
  EXPECT_FALSE(values_->AreOf(Of(tensor_, 2)));
  EXPECT_FALSE(values_->AreOf({}));
  EXPECT_FALSE(values_->AreOf(Of(NewTensor(), 1)));
  // Nor to one that is gone.
  const KeptValues::Sources gone = Of(NewTensor(), 1);
  EXPECT_FALSE(values_->AreOf(gone));
}

TEST_F(KeptValuesTest, ThoseOfAFailedRunAreNotThere) {
  const uint64_t failed = values_->BeginComputing();
  values_->Queued(failed, Of(tensor_, 1), {1});
  values_->Discard(failed);
  EXPECT_FALSE(values_->AreOf(Of(tensor_, 1)));
}

TEST_F(KeptValuesTest, AFailedRunLeavesThoseOfALaterOne) {
  const uint64_t failed = values_->BeginComputing();
  values_->Queued(failed, Of(tensor_, 1), {1});
  const uint64_t later = values_->BeginComputing();
  // Too late: they are being overwritten.
  values_->Queued(failed, Of(tensor_, 1), {1});
  EXPECT_FALSE(values_->AreOf(Of(tensor_, 1)));
  values_->Queued(later, Of(tensor_, 2), {2});
  values_->Discard(failed);
  EXPECT_TRUE(values_->AreOf(Of(tensor_, 2)));
  EXPECT_EQ(values_->extents(), (std::vector<int64_t>{2}));
}

TEST_F(KeptValuesTest, TakeTheirMemoryOnceAndReturnIt) {
  EXPECT_EQ(memory_->used_bytes(), 0);
  ASSERT_TRUE(values_->Allocate().ok());
  std::byte* const data = values_->data();
  ASSERT_TRUE(values_->Allocate().ok());
  EXPECT_EQ(values_->data(), data);
  EXPECT_EQ(memory_->used_bytes(), 512);
  const auto sibling = values_->Sibling(1024);
  EXPECT_EQ(sibling->Allocate().code(), absl::StatusCode::kResourceExhausted);
  values_.reset();
  EXPECT_TRUE(sibling->Allocate().ok());
}

}  // namespace
}  // namespace tensord::server
