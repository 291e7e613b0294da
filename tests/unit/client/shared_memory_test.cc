// Memory that the client and a server in a process of its own both see.
#include <gtest/gtest.h>

#include <cstdio>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "tensord/session.h"
#include "tensord/status.h"
#include "tests/testing/places.h"
#include "tests/testing/server_process.h"

namespace tensord {
namespace {

using testing::ServerProcess;

constexpr int64_t kCount = 300 * 400;

class SharedMemoryClientTest : public ::testing::Test {
 protected:
  Session Open(Transport transport) {
    return Session::Connect(server_.address(), {.transport = transport})
        .value();
  }
  static std::vector<double> Counting() {
    std::vector<double> values(kCount);
    std::iota(values.begin(), values.end(), 1.0);
    return values;
  }
  /// What the server has received and sent as the contents of tensors.
  static int64_t MovedBytes(const Session& session) {
    const ServerStats stats = session.Stats().value();
    return stats.uploaded_bytes;
  }

  ServerProcess server_{testing::Built("tensord")};
};

TEST_F(SharedMemoryClientTest, LargeTensorsGoUpAndComeBackByIt) {
  Session session = Open(Transport::kSharedMemory);
  const std::vector<double> values = Counting();
  const int64_t before = MovedBytes(session);
  for (int i = 0; i < 20; ++i) {
    const RemoteTensor tensor =
        session.Upload(HostView<double>{values.data(), {300, 400}}).value();
    EXPECT_EQ(tensor.info().state, TensorState::kReady);
    EXPECT_EQ(tensor.Download<double>().value(), values);
    const std::vector<double> turned =
        tensor.Download<double>({.order = Order::kFirstModeFastest}).value();
    EXPECT_EQ(turned[1], values[400]);
    const RemoteTensor view = tensor.Transpose({1, 0}).value();
    EXPECT_EQ(view.Download<double>().value()[1], values[400]);
  }
  EXPECT_EQ(MovedBytes(session), before);
  // Of eighty regions a few: they are used again when the server's word of them
  // has come, mostly two.
  EXPECT_LE(session.DescribeSession().value().memory_used_bytes,
            int64_t{8} << 20);
}

TEST_F(SharedMemoryClientTest, WithoutItTheyGoByGrpc) {
  Session session = Open(Transport::kGrpc);
  const std::vector<double> values = Counting();
  const RemoteTensor tensor =
      session.Upload(HostView<double>{values.data(), {300, 400}}).value();
  EXPECT_EQ(tensor.Download<double>().value(), values);
  EXPECT_EQ(MovedBytes(session), kCount * 8);
}

TEST_F(SharedMemoryClientTest, ErrorsAreThoseOfTheServer) {
  Session session = Open(Transport::kSharedMemory);
  const std::vector<double> values = Counting();
  const HostView<double> view{values.data(), {300, 400}};
  RemoteTensor named = session.Upload(view, {.name = "a"}).value();
  EXPECT_EQ(ReasonOf(session.Upload(view, {.name = "a"}).status()),
            "TENSOR_ALREADY_EXISTS");
  const RemoteTensor empty =
      session.Create(ElementType::kFloat64, {{300, 400}, {}, {}}).value();
  EXPECT_EQ(ReasonOf(empty.Download<double>().status()), "TENSOR_NOT_READY");
  EXPECT_EQ(named.Download<double>().value(), values);
}

TEST_F(SharedMemoryClientTest, AQuotaThatIsTooSmallForRegionsIsNoObstacle) {
  Session session =
      Session::Connect(server_.address(), {.memory_quota_bytes = 1'000'000})
          .value();
  const std::vector<double> values = Counting();  // 960 000 bytes
  const RemoteTensor tensor =
      session.Upload(HostView<double>{values.data(), {300, 400}}).value();
  EXPECT_EQ(tensor.Download<double>().value(), values);
}

TEST_F(SharedMemoryClientTest, TheReportSaysWhatIsMissing) {
  const Session session = Open(Transport::kAuto);
  const SharedMemoryReport good = session.CheckSharedMemory();
  EXPECT_TRUE(good.status().ok()) << good.status();
  EXPECT_EQ(good.checks.size(), 8u);
  EXPECT_GT(good.shared_bytes_per_second, 0);
  EXPECT_GT(good.grpc_bytes_per_second, 0);

  const std::string path =
      server_.address().substr(std::string("unix:").size()) + ".shm";
  ASSERT_EQ(std::remove(path.c_str()), 0);
  const SharedMemoryReport bad = session.CheckSharedMemory();
  EXPECT_EQ(ReasonOf(bad.status()), "SHARED_MEMORY_UNREACHABLE");
  EXPECT_TRUE(bad.checks[2].status.ok());
  EXPECT_EQ(bad.checks[3].what, "socket");
  EXPECT_TRUE(absl::IsCancelled(bad.checks[4].status));
  const absl::StatusOr<Session> refused = Session::Connect(
      server_.address(), {.transport = Transport::kSharedMemory});
  EXPECT_EQ(ReasonOf(refused.status()), "SHARED_MEMORY_UNREACHABLE");
}

}  // namespace
}  // namespace tensord
