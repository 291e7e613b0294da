// Transfers to and from a GPU: beside what it computes, and through limited
// staging memory.
#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/rpc_conformance.h"
#include "tests/simt/fake_runtime.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;

/// Runs something on a thread of its own.
class Background {
 public:
  explicit Background(std::function<void()> run)
      : thread_([this, run = std::move(run)] {
          run();
          has_ended_ = true;
        }) {}
  ~Background() { Join(); }

  bool has_ended() const { return has_ended_; }
  /// False when it has not ended by itself for so long that it never will.
  bool Ends() const {
    const absl::Time give_up = absl::Now() + absl::Seconds(10);
    while (!has_ended_ && absl::Now() < give_up) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    return has_ended_;
  }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> has_ended_ = false;
  std::thread thread_;
};

class CudaOverlapTest : public RpcConformance {
 protected:
  static void AwaitCatch(const simt::LaunchHold& hold,
                         const Background& launcher) {
    EXPECT_TRUE(Soon([&] { return hold.HasCaught() || launcher.has_ended(); }));
    EXPECT_TRUE(hold.HasCaught());
  }
};

TEST_F(CudaOverlapTest, TransfersGoOnWhileTheirSessionComputes) {
  const std::string a = Filled({2, 3});
  const std::string there = Filled({600, 700});
  v1::Tensor added;
  ASSERT_THAT(Create(CreateRequest({3}), &added), IsOk());
  const std::vector<float> values = {5, 6, 7};
  v1::PermuteRequest request = Permutation(a);
  request.mutable_d()->set_tensor_id("result");
  const std::string result = session_ + "/tensors/result";

  simt::LaunchHold hold;
  v1::Result permuted;
  Background operation(
      [&] { EXPECT_THAT(Permute(request, &permuted), IsOk()); });
  AwaitCatch(hold, operation);
  Background transfers([&] {
    EXPECT_THAT(Upload({Chunk(added.name(), 0, std::span(values).first(2)),
                        Chunk("", 8, std::span(values).last(1))}),
                IsOk());
    EXPECT_EQ(Values(added.name()), values);
    EXPECT_EQ(Values(there).at(600 * 700 - 1), 600 * 700 - 1);
  });
  EXPECT_TRUE(transfers.Ends());
  EXPECT_FALSE(operation.has_ended());
  EXPECT_EQ(Describe(result).state(), v1::TENSOR_STATE_PENDING);
  // What the operation writes is not there before it has.
  Background download([&] {
    EXPECT_EQ(Values(result), (std::vector<float>{0, 2, 4, 1, 3, 5}));
  });
  EXPECT_TRUE(Soon([&] {
    return server_.device().worker().statistics().executed_count >= 2 ||
           download.has_ended();
  }));
  EXPECT_FALSE(download.has_ended());
  hold.Release();
  operation.Join();
  download.Join();
  EXPECT_EQ(permuted.tensor().name(), result);
}

TEST_F(CudaOverlapTest, OperationsOfOtherSessionsGoOn) {
  const std::string a = Filled({2, 3});
  const v1::PermuteRequest request = Permutation(a);
  v1::OpenSessionResponse opened;
  ASSERT_THAT(Open({}, &opened), IsOk());

  simt::LaunchHold hold;
  v1::Result permuted;
  Background operation(
      [&] { EXPECT_THAT(Permute(request, &permuted), IsOk()); });
  AwaitCatch(hold, operation);
  session_ = opened.session().name();
  Background others([&] {
    const std::string b = Filled({3, 2});
    v1::Result result;
    ASSERT_THAT(Permute(Permutation(b), &result), IsOk());
    EXPECT_EQ(Values(result.tensor().name()),
              (std::vector<float>{0, 3, 1, 4, 2, 5}));
    ASSERT_THAT(Contract(Contraction(b, result.tensor().name())), IsOk());
  });
  EXPECT_TRUE(others.Ends());
  EXPECT_FALSE(operation.has_ended());
  hold.Release();
  operation.Join();
  others.Join();
  EXPECT_EQ(Values(permuted.tensor().name()),
            (std::vector<float>{0, 2, 4, 1, 3, 5}));
}

class CudaStagingTest : public RpcConformance {
 protected:
  static constexpr int64_t kLimit = 64 << 10;

  CudaStagingTest()
      : RpcConformance(
            server::EngineOptions{.cpu_threads = 2,
                                  .memory_limit_bytes = int64_t{64} << 20,
                                  .staging_limit_bytes = kLimit,
                                  .bandwidth_bytes = 4096}) {}

  v1::DeviceStats Stats() {
    v1::GetServerStatsResponse response;
    EXPECT_THAT(Unary(&v1::AdminService::Stub::GetServerStats, *admin_,
                      v1::GetServerStatsRequest(), &response),
                IsOk());
    return response.devices(0);
  }

  /// gRPC may hold what it has sent a moment longer than its call.
  void ExpectAllGivenBack() {
    const absl::Time give_up = absl::Now() + absl::Seconds(10);
    while (Stats().staging_used_bytes() > 0 && absl::Now() < give_up) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    EXPECT_EQ(Stats().staging_used_bytes(), 0);
  }
};

TEST_F(CudaStagingTest, ChunkBeyondTheLimitIsRefusedAndSmallerOnesPass) {
  constexpr int64_t kCount = kLimit / 4 + 1;
  std::vector<float> values(kCount);
  std::iota(values.begin(), values.end(), 0.0f);
  v1::Tensor tensor;
  ASSERT_THAT(Create(CreateRequest({kCount}), &tensor), IsOk());
  const Outcome refused = Upload({Chunk(tensor.name(), 0, values)});
  EXPECT_THAT(refused,
              FailsWith(grpc::StatusCode::RESOURCE_EXHAUSTED, "MEMORY_LIMIT"));
  EXPECT_THAT(refused.status.error_message(),
              HasSubstr("the session's staging memory: asked for "));
  ExpectAllGivenBack();
  // Half of the device's is one session's.
  values.resize(kLimit / 8 + 64);
  EXPECT_THAT(Upload({Chunk(tensor.name(), 0, values)}),
              FailsWith(grpc::StatusCode::RESOURCE_EXHAUSTED, "MEMORY_LIMIT"));
  values.resize(kLimit / 8);
  EXPECT_THAT(Upload({Chunk(tensor.name(), 0, values)}), IsOk());
  ExpectAllGivenBack();
  values.resize(kCount);
  std::iota(values.begin(), values.end(), 0.0f);

  std::vector<v1::UploadTensorRequest> chunks;
  constexpr size_t kPart = 1024;
  for (size_t at = 0; at < values.size(); at += kPart) {
    chunks.push_back(Chunk(
        at == 0 ? tensor.name() : "", static_cast<int64_t>(at) * 4,
        std::span(values).subspan(at, std::min(kPart, values.size() - at))));
  }
  ASSERT_THAT(Upload(chunks), IsOk());
  v1::DownloadTensorRequest request;
  request.set_tensor(tensor.name());
  std::string data;
  EXPECT_THAT(Download(request, &data),
              FailsWith(grpc::StatusCode::RESOURCE_EXHAUSTED, "MEMORY_LIMIT"));
  request.set_chunk_bytes(kPart);
  data.clear();
  ASSERT_THAT(Download(request, &data), IsOk());
  EXPECT_EQ(std::memcmp(data.data(), values.data(), data.size()), 0);

  const v1::DeviceStats stats = Stats();
  EXPECT_EQ(stats.staging_limit_bytes(), kLimit);
  EXPECT_GT(stats.staging_peak_bytes(), 0);
  EXPECT_LE(stats.staging_peak_bytes(), kLimit);
  EXPECT_LE(stats.staging_reserved_bytes(), kLimit);
  ExpectAllGivenBack();
}

TEST_F(CudaStagingTest, InlineOperandsAndResultsCountToo) {
  const auto send = [this](int count) {
    const std::vector<float> values(static_cast<size_t>(count), 2.0f);
    v1::PermuteRequest request;
    request.set_session(session_);
    *request.mutable_a() = Named("", {1});
    v1::InlineTensor& sent = *request.mutable_a()->mutable_inline_();
    sent.set_element_type(v1::ELEMENT_TYPE_FLOAT32);
    sent.mutable_layout()->add_extents(count);
    sent.set_data(values.data(), values.size() * sizeof(float));
    *request.mutable_d() = New({1});
    return Permute(request);
  };
  EXPECT_THAT(send(kLimit / 4 + 1),
              FailsWith(grpc::StatusCode::RESOURCE_EXHAUSTED, "MEMORY_LIMIT"));
  EXPECT_THAT(send(100), IsOk());
  ExpectAllGivenBack();
  EXPECT_GE(Stats().staging_peak_bytes(), 400);
}

TEST_F(CudaStagingTest, GetServerInfoTellsTheCopyBandwidthAndThePeers) {
  v1::GetServerInfoResponse response;
  ASSERT_THAT(Unary(&v1::AdminService::Stub::GetServerInfo, *admin_,
                    v1::GetServerInfoRequest(), &response),
              IsOk());
  for (const v1::Device& device : response.devices()) {
    SCOPED_TRACE(device.name());
    EXPECT_EQ(device.properties().count("copy_gb_per_s"), 1);
  }
  EXPECT_EQ(response.devices(0).properties().at("peer_access"), "cuda:1");
  EXPECT_EQ(response.devices(1).properties().at("peer_access"), "cuda:0");
}

}  // namespace
}  // namespace tensord
