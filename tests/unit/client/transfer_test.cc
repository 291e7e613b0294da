#include "client/cpp/src/transfer.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/time/clock.h"
#include "tests/unit/client/fake_tensor_service.h"

namespace tensord::internal {
namespace {

std::string Pattern(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>(i * 2654435761u >> 24);
  }
  return bytes;
}

class TransferTest : public ::testing::Test {
 protected:
  absl::StatusOr<v1::Tensor> UploadAll(absl::Duration limit = absl::Seconds(20),
                                       const Progress& progress = {}) {
    return Upload(channels_, "t", std::as_bytes(std::span(service().bytes)),
                  {.chunk_bytes = 1000,
                   .deadline = absl::Now() + limit,
                   .progress = &progress});
  }

  absl::StatusOr<std::string> DownloadAll() {
    std::string bytes(service().bytes.size(), '?');
    const absl::Status status = Download(
        channels_, "t", std::as_writable_bytes(std::span(bytes)),
        {.chunk_bytes = 1000, .deadline = absl::Now() + absl::Seconds(20)});
    if (!status.ok()) return status;
    return bytes;
  }

  FakeTensorService& service() { return server_.service; }

  FakeServer server_;
  Channels channels_{server_.address(), absl::Seconds(20), {}};
};

TEST_F(TransferTest, EveryByteArrivesInChunksOfTheRightSize) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{999}, size_t{1000},
                            size_t{1001}, size_t{123456}}) {
    SCOPED_TRACE(size);
    service().bytes = Pattern(size);
    const auto sent = UploadAll();
    ASSERT_TRUE(sent.ok()) << sent.status();
    EXPECT_EQ(service().contents, service().bytes);
    EXPECT_LE(service().largest_chunk, 1000);
    const auto received = DownloadAll();
    ASSERT_TRUE(received.ok()) << received.status();
    EXPECT_EQ(*received, service().bytes);
  }
}

TEST_F(TransferTest, ProgressEndsAtTheTotal) {
  service().bytes = Pattern(4500);
  std::vector<int64_t> reports;
  ASSERT_TRUE(UploadAll(absl::Seconds(20), [&](int64_t done, int64_t total) {
                EXPECT_EQ(total, 4500);
                reports.push_back(done);
              }).ok());
  EXPECT_EQ(reports, (std::vector<int64_t>{1000, 2000, 3000, 4000, 4500}));
}

TEST_F(TransferTest, UploadResumesWhereItBrokeOff) {
  service().bytes = Pattern(50'000);
  service().break_uploads_at = 20'000;
  service().breaks_left = 2;
  const auto sent = UploadAll();
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_EQ(service().contents, service().bytes);
  EXPECT_EQ(service().upload_calls, 3);
}

TEST_F(TransferTest, UploadResendsAChunkThatArrivedCorrupt) {
  service().bytes = Pattern(5000);
  service().break_uploads_at = 3000;
  service().breaks_left = 1;
  service().break_status = {grpc::StatusCode::DATA_LOSS, "crc"};
  const auto sent = UploadAll();
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_EQ(service().contents, service().bytes);
}

TEST_F(TransferTest, UploadThatStalledGoesOnWhereItBrokeOff) {
  service().bytes = Pattern(5000);
  service().break_uploads_at = 3000;
  service().breaks_left = 1;
  service().break_status = {grpc::StatusCode::ABORTED, "stalled"};
  const auto sent = UploadAll();
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_EQ(service().contents, service().bytes);
  EXPECT_EQ(service().upload_calls, 2);
}

TEST_F(TransferTest, UploadGivesUpWhenNothingGetsThrough) {
  service().bytes = Pattern(5000);
  service().break_uploads_at = 0;
  service().breaks_left = 1000;
  const auto sent = UploadAll(absl::Seconds(5));
  EXPECT_EQ(sent.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_GT(service().upload_calls, 1);
}

TEST_F(TransferTest, UploadDoesNotRetryWhatIsWrongInItself) {
  service().bytes = Pattern(5000);
  service().break_uploads_at = 1000;
  service().breaks_left = 1;
  service().break_status = {grpc::StatusCode::INVALID_ARGUMENT, "no"};
  EXPECT_EQ(UploadAll().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(service().upload_calls, 1);
}

TEST_F(TransferTest, UploadEndsAtItsDeadlineThoughNobodyReads) {
  service().bytes = Pattern(64 << 20);
  service().stop_reading = true;
  const absl::Time start = absl::Now();
  const auto sent = UploadAll(absl::Seconds(1));
  EXPECT_EQ(sent.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
}

TEST_F(TransferTest, DownloadResumesAfterACorruptChunk) {
  service().bytes = Pattern(50'000);
  service().corrupt_download_at = 20'000;
  const auto received = DownloadAll();
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(*received, service().bytes);
  EXPECT_EQ(service().download_calls, 2);
}

TEST_F(TransferTest, NobodyAtTheAddressIsUnavailable) {
  Channels nobody("unix:/tmp/tensord_nobody", absl::Seconds(5), {});
  const std::string bytes = Pattern(10);
  const auto sent =
      Upload(nobody, "t", std::as_bytes(std::span(bytes)),
             {.chunk_bytes = 1000, .deadline = absl::Now() + absl::Seconds(3)});
  EXPECT_EQ(sent.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tensord::internal
