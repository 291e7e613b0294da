#include "server/telemetry/health.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include "tests/testing/places.h"

namespace tensord::server {
namespace {

TEST(HealthTest, FollowsTheServersLife) {
  Health health;
  EXPECT_EQ(health.readiness().message(), "starting");
  health.Enter(Health::Phase::kServing);
  EXPECT_TRUE(health.readiness().ok());
  EXPECT_EQ(health.remark(), "");
  health.Note("computing on the CPU");
  EXPECT_TRUE(health.readiness().ok());
  EXPECT_EQ(health.remark(), "computing on the CPU");
  health.Enter(Health::Phase::kDraining);
  EXPECT_EQ(health.readiness().message(), "draining");
  EXPECT_TRUE(health.liveness().ok());
}

TEST(HealthTest, ALostDeviceMakesTheProcessUseless) {
  Health health;
  health.Enter(Health::Phase::kServing);
  health.LoseDevice(absl::UnavailableError("cuda:0 is lost"));
  health.Enter(Health::Phase::kDraining);
  EXPECT_EQ(health.readiness().message(), "cuda:0 is lost");
  EXPECT_EQ(health.liveness().message(), "cuda:0 is lost");
}

/// Receives what is sent to a socket of that name; '@' begins an abstract one.
std::string Received(const std::string& name) {
  const int file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  name.copy(address.sun_path, sizeof(address.sun_path) - 1);
  if (name.front() == '@') address.sun_path[0] = '\0';
  const auto size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  EXPECT_EQ(bind(file, reinterpret_cast<sockaddr*>(&address), size), 0);
  setenv("NOTIFY_SOCKET", name.c_str(), 1);
  NotifyServiceManager("READY=1");
  unsetenv("NOTIFY_SOCKET");
  char buffer[64];
  const ssize_t got = recv(file, buffer, sizeof(buffer), MSG_DONTWAIT);
  close(file);
  return got < 0 ? "" : std::string(buffer, static_cast<size_t>(got));
}

TEST(NotifyServiceManagerTest, TellsWhoAskedForIt) {
  EXPECT_EQ(Received(tensord::testing::TemporaryFolder() + "/notify"),
            "READY=1");
  EXPECT_EQ(Received("@tensord-test-" + std::to_string(getpid())), "READY=1");
  unsetenv("NOTIFY_SOCKET");
  NotifyServiceManager("READY=1");
}

}  // namespace
}  // namespace tensord::server
