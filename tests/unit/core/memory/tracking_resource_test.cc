#include "core/memory/tracking_resource.h"

#include "core/memory/host_resource.h"
#include "core/memory/limiting_resource.h"
#include "gtest/gtest.h"

namespace tensord::core {
namespace {

TEST(TrackingResourceTest, CountsUsePeakAllocationsAndFailures) {
  HostResource host;
  LimitingResource limit(host, 4096, "test limit");
  TrackingResource tracking(limit);
  {
    const Buffer first = Buffer::Allocate(tracking, 100).value();
    { const Buffer second = Buffer::Allocate(tracking, 1000).value(); }
    EXPECT_FALSE(Buffer::Allocate(tracking, 1 << 20).ok());
    EXPECT_EQ(tracking.statistics(), (MemoryStatistics{.used_bytes = 100,
                                                       .peak_bytes = 1100,
                                                       .allocation_count = 2,
                                                       .failure_count = 1}));
  }
  EXPECT_EQ(tracking.statistics().used_bytes, 0);
}

}  // namespace
}  // namespace tensord::core
