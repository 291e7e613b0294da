#include "client/cpp/src/transfer/bulk_channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/testing/places.h"

namespace tensord::internal {
namespace {

/// Takes connections by a Unix socket and says nothing.
class SilentListener {
 public:
  explicit SilentListener(const std::string& path)
      : socket_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    path.copy(name.sun_path, sizeof(name.sun_path) - 1);
    EXPECT_EQ(
        bind(socket_, reinterpret_cast<const sockaddr*>(&name), sizeof(name)),
        0);
    EXPECT_EQ(listen(socket_, 8), 0);
  }
  ~SilentListener() { close(socket_); }

  /// A connection that has been made; -1: there is none.
  int Accept() {
    pollfd comes = {.fd = socket_, .events = POLLIN, .revents = 0};
    return poll(&comes, 1, 0) == 1 ? accept(socket_, nullptr, nullptr) : -1;
  }

 private:
  const int socket_;
};

class BulkChannelTest : public ::testing::Test {
 protected:
  void TearDown() override { unlink(path_.c_str()); }

  const std::string path_ = testing::TemporaryFolder() + "/socket";
  const std::shared_ptr<grpc::Channel> other_ =
      grpc::CreateChannel("unix:" + path_, grpc::InsecureChannelCredentials());
};

TEST_F(BulkChannelTest, HasAConnectionOfItsOwnUntilThatEnds) {
  SilentListener listener(path_);
  const BulkChannel bulk("unix:" + path_, other_);
  const auto first = bulk.get();
  EXPECT_NE(first, other_);
  EXPECT_EQ(bulk.get(), first);
  const int connection = listener.Accept();
  ASSERT_GE(connection, 0);
  EXPECT_LT(listener.Accept(), 0);
  close(connection);
  std::shared_ptr<grpc::Channel> second;
  const absl::Time limit = absl::Now() + absl::Seconds(10);
  do {
    second = bulk.get();
  } while (second == first && absl::Now() < limit);
  EXPECT_NE(second, first);
  EXPECT_NE(second, other_);
  EXPECT_GE(listener.Accept(), 0);
}

TEST_F(BulkChannelTest, UsesTheOtherWhereNobodyAnswers) {
  const BulkChannel bulk("unix:" + path_, other_);
  EXPECT_EQ(bulk.get(), other_);
  const SilentListener listener(path_);
  EXPECT_NE(bulk.get(), other_);
}

TEST_F(BulkChannelTest, UsesTheOtherForHosts) {
  const BulkChannel bulk("localhost:8470", other_);
  EXPECT_EQ(bulk.get(), other_);
}

TEST_F(BulkChannelTest, KnowsBothFormsOfAPath) {
  const SilentListener listener(path_);
  const BulkChannel bulk("unix://" + path_, other_);
  EXPECT_NE(bulk.get(), other_);
}

}  // namespace
}  // namespace tensord::internal
