#include "core/base/steady_time.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace tensord::core {
namespace {

TEST(SteadyTimeTest, GoesOnFromTheTimeOnTheWall) {
  const absl::Time first = SteadyNow();
  EXPECT_LT(absl::AbsDuration(first - absl::Now()), absl::Minutes(1));
  absl::Time before = first;
  while (before < first + absl::Milliseconds(5)) {
    const absl::Time now = SteadyNow();
    ASSERT_GE(now, before);
    before = now;
  }
}

}  // namespace
}  // namespace tensord::core
