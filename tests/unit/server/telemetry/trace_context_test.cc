#include "server/telemetry/trace_context.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace tensord::server {
namespace {

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kParent[] = "00f067aa0ba902b7";

std::string Header(absl::string_view version = "00",
                   absl::string_view flags = "01",
                   absl::string_view trace = kTrace,
                   absl::string_view parent = kParent) {
  return absl::StrCat(version, "-", trace, "-", parent, "-", flags);
}

TEST(TraceContextTest, WhatACallerSaysIsKept) {
  const auto context = ParseTraceContext(Header(), "a=1,b=2");
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(context->trace_id_text(), kTrace);
  EXPECT_EQ(context->parent_span, 0x00f067aa0ba902b7u);
  EXPECT_TRUE(context->is_sampled);
  EXPECT_EQ(context->state, "a=1,b=2");
  EXPECT_EQ(context->span, 0u);
}

TEST(TraceContextTest, OnlyTheLowestFlagSamples) {
  EXPECT_FALSE(ParseTraceContext(Header("00", "00"), "")->is_sampled);
  EXPECT_FALSE(ParseTraceContext(Header("00", "fe"), "")->is_sampled);
  EXPECT_TRUE(ParseTraceContext(Header("00", "03"), "")->is_sampled);
}

TEST(TraceContextTest, LaterVersionsMayHaveMoreBehind) {
  EXPECT_TRUE(ParseTraceContext(Header("cc"), ""));
  EXPECT_TRUE(ParseTraceContext(Header("cc") + "-what-comes", ""));
  EXPECT_FALSE(ParseTraceContext(Header("cc") + ".what-comes", ""));
  EXPECT_FALSE(ParseTraceContext(Header("00") + "-what-comes", ""));
}

TEST(TraceContextTest, WhatIsMalformedIsNone) {
  const std::string none(32, '0');
  const std::string upper = "4BF92F3577B34DA6A3CE929D0E0E4736";
  for (const std::string& header :
       {std::string(), std::string("00"), Header().substr(0, 54),
        Header() + "0", Header("ff"), Header("0g"), Header("+1"),
        Header("00", "0x"), Header("00", "01", none), Header("00", "01", upper),
        Header("00", "01", kTrace, "0000000000000000"),
        Header("00", "01", kTrace, "-0f067aa0ba902b7"),
        absl::StrCat("00_", kTrace, "-", kParent, "-01"),
        absl::StrCat("00-", kTrace, "_", kParent, "-01"),
        absl::StrCat("00-", kTrace, "-", kParent, "_01"),
        std::string(10'000, '-'), std::string(55, '\0')}) {
    EXPECT_FALSE(ParseTraceContext(header, "a=1").has_value()) << header;
  }
}

TEST(TraceContextTest, StatesThatAreLongOrUnprintableAreLeftOut) {
  EXPECT_EQ(ParseTraceContext(Header(), std::string(512, 'x'))->state.size(),
            512u);
  for (const std::string& state :
       {std::string(513, 'x'), std::string("a=\x01"), std::string("a=\xff")}) {
    const auto context = ParseTraceContext(Header(), state);
    ASSERT_TRUE(context.has_value());
    EXPECT_EQ(context->state, "");
  }
}

TEST(TraceContextTest, RatiosAreKept) {
  constexpr int kTries = 100'000;
  int chosen = 0;
  for (int i = 0; i < kTries; ++i) {
    EXPECT_FALSE(IsChosen(0));
    EXPECT_TRUE(IsChosen(1));
    chosen += IsChosen(0.01) ? 1 : 0;
  }
  // Six standard deviations of a binomial distribution.
  EXPECT_NEAR(chosen, kTries / 100, 6 * 31.5);
  EXPECT_NE(NewSpanId(), NewSpanId());
}

}  // namespace
}  // namespace tensord::server
