#include "core/view/index_domain.h"

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/view/view_oracle.h"

namespace tensord::core::test {
namespace {

constexpr int64_t kBillion = 1000000000;

bool AreEqual(const IndexSum& x, const IndexSum& y) {
  return Compare(x, y) == 0;
}

TEST(IndexDomainTest, QuotientsAndRemaindersAddUpAgain) {
  IndexDomain domain({kBillion});
  const IndexSum i = domain.Index(0);
  const IndexSum quotient = domain.Quotient(i, 7);
  const IndexSum remainder = domain.Remainder(i, 7);
  EXPECT_FALSE(IsAffine(quotient));
  EXPECT_TRUE(AreEqual(domain.Add(remainder, quotient, 7), i));
}

TEST(IndexDomainTest, NestedQuotientsAreOne) {
  IndexDomain domain({kBillion});
  const IndexSum i = domain.Index(0);
  EXPECT_TRUE(AreEqual(domain.Quotient(domain.Quotient(i, 7), 5),
                       domain.Quotient(i, 35)));
  EXPECT_TRUE(AreEqual(domain.Remainder(domain.Remainder(i, 35), 7),
                       domain.Remainder(i, 7)));
  EXPECT_TRUE(AreEqual(domain.Quotient(domain.Remainder(i, 35), 7),
                       domain.Remainder(domain.Quotient(i, 7), 5)));
}

TEST(IndexDomainTest, BackwardsIsTheSameQuotient) {
  IndexDomain domain({kBillion});
  const IndexSum i = domain.Index(0);
  const IndexSum backwards = domain.Add({kBillion - 1, {}}, i, -1);
  const IndexSum sum =
      domain.Add(domain.Quotient(backwards, 1000), domain.Quotient(i, 1000));
  EXPECT_TRUE(AreEqual(sum, {kBillion / 1000 - 1, {}}));
}

TEST(IndexDomainTest, QuotientsThatStayWithinTheDivisorVanish) {
  IndexDomain domain({10, kBillion});
  const IndexSum i = domain.Index(0);
  const IndexSum j = domain.Index(1);
  EXPECT_TRUE(AreEqual(domain.Quotient(i, 10), {}));
  EXPECT_TRUE(AreEqual(domain.Quotient(domain.Add(i, {20, {}}), 10), {2, {}}));
  EXPECT_TRUE(AreEqual(domain.Quotient(domain.Add(i, j, 10), 10), j));
  EXPECT_TRUE(AreEqual(domain.Remainder(domain.Add(i, j, 10), 10), i));
  // floor(11 * i / 10) == i for i < 10.
  EXPECT_TRUE(AreEqual(domain.Quotient(domain.Multiply(i, 11), 10), i));
  EXPECT_FALSE(IsAffine(domain.Quotient(domain.Multiply(j, 11), 10)));
}

TEST(IndexDomainTest, QuotientsLoseCommonFactors) {
  IndexDomain domain({4, kBillion, kBillion});
  const IndexSum i = domain.Index(0);
  const IndexSum j = domain.Index(1);
  const IndexSum k = domain.Index(2);
  EXPECT_TRUE(AreEqual(domain.Quotient(domain.Multiply(domain.Add(j, k), 4), 8),
                       domain.Quotient(domain.Add(j, k), 2)));
  EXPECT_TRUE(
      AreEqual(domain.Quotient(domain.Add(i, j, 4), 8), domain.Quotient(j, 2)));
  const IndexSum low_bits = domain.Remainder(k, 4);
  EXPECT_TRUE(AreEqual(domain.Quotient(domain.Add(low_bits, j, 4), 8),
                       domain.Quotient(j, 2)));
}

TEST(IndexDomainTest, HalvesOfTheDivisorAreWrittenAlike) {
  IndexDomain domain({kBillion, kBillion});
  const IndexSum i = domain.Index(0);
  const IndexSum j = domain.Index(1);
  // floor((4 j - i) / 8) == j - floor((i + 4 j + 7) / 8)
  const IndexSum one =
      domain.Quotient(domain.Add(domain.Multiply(j, 4), i, -1), 8);
  const IndexSum other =
      domain.Quotient(domain.Add(domain.Add(i, {7, {}}), j, 4), 8);
  EXPECT_TRUE(AreEqual(domain.Add(one, other), j));
}

TEST(IndexDomainTest, BoundsOfRemaindersAreTight) {
  IndexDomain domain({kBillion, kBillion});
  const IndexSum i = domain.Index(0);
  const IndexSum j = domain.Index(1);
  const auto expect = [](const IndexSum& sum, int64_t lowest, int64_t highest) {
    const auto bounds = BoundsOf(sum);
    ASSERT_TRUE(bounds.has_value());
    EXPECT_EQ(bounds->lowest, lowest);
    EXPECT_EQ(bounds->highest, highest);
  };
  expect(domain.Remainder(i, 7), 0, 6);
  expect(domain.Remainder(domain.Quotient(i, 12), 5), 0, 4);
  expect(domain.Remainder(domain.Add(i, j, 3), 7), 0, 6);
  expect(domain.Add(domain.Remainder(i, 7), domain.Remainder(j, 4), -10), -30,
         6);
}

TEST(IndexDomainTest, BitsThatDoNotMeetAddUp) {
  IndexDomain domain({8, kBillion});
  const IndexSum i = domain.Index(0);
  const IndexSum j = domain.Index(1);
  const IndexSum blocks = domain.Multiply(j, 8);
  EXPECT_TRUE(AreEqual(domain.Xor({blocks, i}), domain.Add(blocks, i)));
  EXPECT_TRUE(AreEqual(domain.Xor({j, i, j}), i));
  EXPECT_TRUE(AreEqual(domain.Xor({i, {7, {}}}), domain.Add({7, {}}, i, -1)));
  EXPECT_TRUE(AreEqual(domain.Xor({domain.Xor({j, {5, {}}}), {5, {}}}), j));
}

TEST(IndexDomainTest, BitsThatMeetStayTogether) {
  IndexDomain domain({kBillion, kBillion});
  const IndexSum sum =
      domain.Xor({domain.Multiply(domain.Index(0), 2), domain.Index(1)});
  EXPECT_EQ(AtomCount(sum), 3) << "one exclusive or of two indices";
}

TEST(IndexDomainTest, SumsThatLeaveInt64AreRemembered) {
  const int64_t max = std::numeric_limits<int64_t>::max();
  IndexDomain domain({max});
  EXPECT_TRUE(domain.status("this").ok());
  domain.Quotient(domain.Multiply(domain.Index(0), max - 1), max);
  const absl::Status status = domain.status("this");
  EXPECT_EQ(ReasonOf(status), "SIZE_OVERFLOW");
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("this needs numbers beyond"));
}

/// A sum beside its value at every coordinate.
struct Known {
  IndexSum sum;
  std::vector<int64_t> values;
};

class RandomSums {
 public:
  explicit RandomSums(uint32_t seed)
      : rng_(seed), extents_(AnyExtents()), domain_(extents_) {
    for (size_t mode = 0; mode < extents_.size(); ++mode) {
      Known known{domain_.Index(static_cast<int>(mode)), {}};
      for (const Coordinates& one : AllCoordinates(extents_)) {
        known.values.push_back(one[mode]);
      }
      known_.push_back(std::move(known));
    }
  }

  /// One operation on what is known.
  void Step() {
    const Known x = known_[rng_() % known_.size()];
    const Known y = known_[rng_() % known_.size()];
    const int64_t divisor = 1 + static_cast<int64_t>(rng_() % 12);
    const int64_t factor = static_cast<int64_t>(rng_() % 9) - 4;
    const int64_t constant = static_cast<int64_t>(rng_() % 21) - 10;
    Known made = x;
    switch (rng_() % 5) {
      case 0:
        made.sum =
            domain_.Add(domain_.Add(x.sum, y.sum, factor), {constant, {}});
        for (size_t i = 0; i < x.values.size(); ++i) {
          made.values[i] += factor * y.values[i] + constant;
        }
        break;
      case 1:
        made.sum = domain_.Quotient(x.sum, divisor);
        for (int64_t& value : made.values) {
          int64_t quotient = 0;
          while (quotient * divisor > value) --quotient;
          while ((quotient + 1) * divisor <= value) ++quotient;
          value = quotient;
        }
        break;
      case 2:
        made.sum = domain_.Remainder(x.sum, divisor);
        for (int64_t& value : made.values) {
          value = ((value % divisor) + divisor) % divisor;
        }
        break;
      case 3:
        made.sum = domain_.Xor({x.sum, y.sum});
        for (size_t i = 0; i < x.values.size(); ++i) {
          made.values[i] ^= y.values[i];
        }
        break;
      default: made.sum = domain_.Linearize(x.sum); break;
    }
    if (AtomCount(made.sum) < 100) known_.push_back(std::move(made));
  }

  void Check() {
    ASSERT_TRUE(domain_.status("a sum").ok()) << domain_.status("a sum");
    const std::vector<Coordinates> all = AllCoordinates(extents_);
    const Known& made = known_.back();
    for (size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(Evaluate(made.sum, all[i]), made.values[i]);
    }
    const auto [lowest, highest] = std::ranges::minmax(made.values);
    const auto bounds = BoundsOf(made.sum);
    ASSERT_TRUE(bounds.has_value());
    ASSERT_LE(bounds->lowest, lowest);
    ASSERT_GE(bounds->highest, highest);
    const auto tight = domain_.TightBounds(made.sum);
    ASSERT_TRUE(tight.has_value());
    ASSERT_EQ(tight->lowest, lowest);
    ASSERT_EQ(tight->highest, highest);
  }

 private:
  ModeVector AnyExtents() {
    ModeVector extents(1 + rng_() % 3);
    for (int64_t& extent : extents) {
      extent = 1 + static_cast<int64_t>(rng_() % 9);
    }
    return extents;
  }

  std::mt19937 rng_;
  ModeVector extents_;
  IndexDomain domain_;
  std::vector<Known> known_;
};

TEST(IndexDomainTest, KeepsEveryValue) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    RandomSums sums(seed);
    for (int i = 0; i < 12; ++i) {
      sums.Step();
      ASSERT_NO_FATAL_FAILURE(sums.Check());
    }
  }
}

}  // namespace
}  // namespace tensord::core::test
