#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/notation/parse_einsum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/notation/syntax_dump.h"

namespace tensord::core::test {
namespace {

using Numbers = std::vector<int64_t>;

struct Network {
  std::vector<Numbers> labels;
  Numbers order = {};
  Numbers output = {};
  std::vector<int> mode_counts = {};  // empty: as the labels
};

absl::StatusOr<EinsumSyntax> Parse(Network network) {
  if (network.mode_counts.empty()) {
    for (const Numbers& numbers : network.labels) {
      network.mode_counts.push_back(static_cast<int>(numbers.size()));
    }
  }
  return ParseNcon(network.labels, network.order, network.output,
                   network.mode_counts);
}

std::string Parsed(const Network& network) {
  const auto einsum = Parse(network);
  return einsum.ok() ? Dump(*einsum) : einsum.status().ToString();
}

// C11
TEST(ParseNconTest, ReadmesExampleSumsSmallNumbersFirst) {
  EXPECT_EQ(Parsed({{{-1, 3, 1, -2, 2}, {3, 2, 4, -5}, {1, 4, -4, -3}}}),
            "-1,3,1,-2,2|3,2,4,-5|1,4,-4,-3 -> -1,-2,-3,-4,-5 order 1,2,3,4");
}

// C12
TEST(ParseNconTest, OrdersMayBeGiven) {
  EXPECT_EQ(Parsed({{{-1, 2, 1}, {1, 2, -2}}, {2, 1}, {-2, -1}}),
            "-1,2,1|1,2,-2 -> -2,-1 order 2,1");
}

TEST(ParseNconTest, TracesGapsAndScalarsAreFine) {
  EXPECT_EQ(Parsed({{{5, 5, -3, -9}, {}}}), "5,5,-3,-9| -> -3,-9 order 5");
  EXPECT_EQ(Parsed({{{}}}), " -> ");
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(Parsed({{{lowest, -1}}}),
            "-9223372036854775808,-1 -> -1,-9223372036854775808");
}

TEST(ParseNconTest, RefusalsSayWhatIsWrong) {
  struct Refusal {
    Network network;
    std::string reason;
    std::string message;
  };
  const std::vector<Refusal> refusals = {
      {{{{1, 0}, {1}}},
       "NCON_MALFORMED",
       "label 0 occurs, wanted positive and negative numbers"},
      {{{{1, 1}, {1}}},
       "NCON_MALFORMED",
       "label 1 occurs 3 times, wanted positive labels twice"},
      {{{{-1, 7}}},
       "NCON_MALFORMED",
       "label 7 occurs 1 times, wanted positive labels twice"},
      {{{{-2}, {-2}}},
       "NCON_MALFORMED",
       "label -2 occurs 2 times, wanted negative labels once"},
      {{{{1}, {1}}, {1, 1}},
       "NCON_MALFORMED",
       "label 1 of the order is there twice or is none of the operands', "
       "wanted each positive label once"},
      {{{{1, -1}, {1}}, {-1}},
       "NCON_MALFORMED",
       "label -1 of the order is there twice or is none of the operands', "
       "wanted each positive label once"},
      {{{{1, 2}, {1, 2}}, {2}},
       "NCON_MALFORMED",
       "label 1 is missing in the order, wanted each positive label once"},
      {{{{-1, -2}}, {}, {-2}},
       "NCON_MALFORMED",
       "label -1 is missing in the output, wanted each negative label once"},
      {{{{1}, {1}}, {}, {}, {1}},
       "OPERAND_COUNT_MISMATCH",
       "got labels for 2 operands, wanted them for 1"},
      {{{}},
       "OPERAND_COUNT_MISMATCH",
       "got labels for 0 operands, wanted them for one or more"},
      {{{{1, 1}, {-1}}, {}, {}, {2, 2}},
       "MODE_COUNT_MISMATCH",
       "operand 1 has 1 labels, but 2 modes"}};
  for (const auto& [network, reason, message] : refusals) {
    const absl::Status status = Parse(network).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ReasonOf(status), reason);
    EXPECT_EQ(std::string(status.message()), message);
  }
}

TEST(ParseNconTest, LengthHasALimit) {
  const std::vector<Numbers> labels(3);
  const std::vector<int> counts(3, 0);
  EXPECT_TRUE(ParseNcon(labels, {}, {}, counts, {.max_factors = 3}).ok());
  const absl::Status status =
      ParseNcon(labels, {}, {}, counts, {.max_factors = 2}).status();
  EXPECT_EQ(ReasonOf(status), "PROGRAM_TOO_LONG");
  EXPECT_EQ(status.message(),
            "there are labels for 3 operands, the limit is 2");
}

}  // namespace
}  // namespace tensord::core::test
