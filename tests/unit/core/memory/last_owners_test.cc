#include "core/memory/last_owners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace tensord::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Range = LastOwners::Range;

class LastOwnersTest : public ::testing::Test {
 protected:
  std::byte* At(int64_t offset) { return memory_.data() + offset; }

  std::array<std::byte, 256> memory_{};
};

TEST_F(LastOwnersTest, WhatChangesHandsIsToBeCleared) {
  LastOwners owners(/*new_is_clean=*/true);
  EXPECT_THAT(owners.Take(At(0), 100, 1), IsEmpty());
  EXPECT_THAT(owners.Take(At(50), 50, 1), IsEmpty());
  EXPECT_THAT(owners.Take(At(40), 100, 2), ElementsAre(Range{At(40), 60}));
  EXPECT_THAT(owners.Take(At(40), 100, 2), IsEmpty());
  EXPECT_THAT(owners.Take(At(0), 140, 1), ElementsAre(Range{At(40), 100}));
}

TEST_F(LastOwnersTest, WhatWentBackIsNew) {
  LastOwners owners(/*new_is_clean=*/true);
  owners.Take(At(0), 100, 1);
  owners.Forget(At(20), 60);
  EXPECT_THAT(owners.Take(At(0), 100, 2),
              ElementsAre(Range{At(0), 20}, Range{At(80), 20}));
}

TEST_F(LastOwnersTest, WhatIsNewMayHaveToBeClearedToo) {
  LastOwners owners(/*new_is_clean=*/false);
  EXPECT_THAT(owners.Take(At(10), 10, 1), ElementsAre(Range{At(10), 10}));
  EXPECT_THAT(owners.Take(At(0), 40, 1),
              ElementsAre(Range{At(0), 10}, Range{At(20), 20}));
  EXPECT_THAT(owners.Take(At(0), 40, 1), IsEmpty());
}

TEST_F(LastOwnersTest, SaysForEveryByteWhatIsKnownOfIt) {
  for (const bool new_is_clean : {false, true}) {
    for (uint32_t seed = 0; seed < 200; ++seed) {
      SCOPED_TRACE(seed);
      std::mt19937 rng(seed);
      LastOwners owners(new_is_clean);
      std::array<uint64_t, 256> known{};  // 0: nobody
      for (int step = 0; step < 60; ++step) {
        const int64_t start = rng() % 255;
        const int64_t bytes = 1 + rng() % (256 - start);
        if (rng() % 5 == 0) {
          owners.Forget(At(start), bytes);
          std::fill_n(known.begin() + start, bytes, 0);
          continue;
        }
        const uint64_t owner = 1 + rng() % 3;
        std::array<bool, 256> unclean{};
        for (const Range& range : owners.Take(At(start), bytes, owner)) {
          std::fill_n(unclean.begin() + (range.start - At(0)), range.bytes,
                      true);
        }
        for (int64_t i = 0; i < 256; ++i) {
          const bool is_in = i >= start && i < start + bytes;
          const bool was_others =
              known[i] == 0 ? !new_is_clean : known[i] != owner;
          ASSERT_EQ(unclean[i], is_in && was_others) << "byte " << i;
          if (is_in) known[i] = owner;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tensord::core
