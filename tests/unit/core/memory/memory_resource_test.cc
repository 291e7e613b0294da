#include "core/memory/memory_resource.h"

#include <utility>

#include "core/memory/host_resource.h"
#include "core/memory/tracking_resource.h"
#include "core/memory/workspace.h"
#include "gtest/gtest.h"

namespace tensord::core {
namespace {

TEST(BufferTest, MovesItsMemoryAndGivesItBackOnce) {
  HostResource host;
  TrackingResource tracking(host);
  {
    Buffer first = Buffer::Allocate(tracking, 64).value();
    std::byte* const data = first.data();
    Buffer second = std::move(first);
    EXPECT_EQ(second.data(), data);
    EXPECT_EQ(first.data(), nullptr);
    first = std::move(second);
    EXPECT_EQ(first.data(), data);
    EXPECT_EQ(tracking.statistics().used_bytes, 64);
  }
  EXPECT_EQ(tracking.statistics().used_bytes, 0);
}

TEST(WorkspaceTest, PartsAreAlignedAndDisjoint) {
  HostResource host;
  const int64_t bytes = Workspace::BytesFor(3 * sizeof(double)) +
                        Workspace::BytesFor(1) + Workspace::BytesFor(1000);
  EXPECT_EQ(bytes, 256 + 256 + 1024);
  const Buffer block = Buffer::Allocate(host, bytes).value();
  Workspace workspace(
      std::span(block.data(), static_cast<size_t>(block.bytes())));
  const std::byte* const parts[] = {
      reinterpret_cast<std::byte*>(workspace.Take<double>(3)),
      workspace.Take<std::byte>(1), workspace.Take<std::byte>(1000)};
  EXPECT_EQ(parts[0], block.data());
  EXPECT_EQ(parts[1], block.data() + 256);
  EXPECT_EQ(parts[2], block.data() + 512);
}

}  // namespace
}  // namespace tensord::core
