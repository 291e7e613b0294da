#include "client/cli/scalar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>

namespace tensord::cli {
namespace {

using ::testing::Optional;
using Number = std::complex<double>;

std::optional<Number> Parse(const char* text) {
  const std::optional<Scalar> scalar = ParseScalar(text);
  if (!scalar.has_value()) return std::nullopt;
  return Number(scalar->real, scalar->imaginary);
}

TEST(ParseScalarTest, ReadsRealNumbers) {
  EXPECT_THAT(Parse("2"), Optional(Number(2)));
  EXPECT_THAT(Parse("-1.5e-3"), Optional(Number(-1.5e-3)));
}

TEST(ParseScalarTest, ReadsComplexNumbersAsPythonWritesThem) {
  EXPECT_THAT(Parse("1+2j"), Optional(Number(1, 2)));
  EXPECT_THAT(Parse("-1.5-2.5j"), Optional(Number(-1.5, -2.5)));
  EXPECT_THAT(Parse("1e-3-2E+4j"), Optional(Number(1e-3, -2e4)));
  EXPECT_THAT(Parse("2j"), Optional(Number(0, 2)));
  EXPECT_THAT(Parse("-2e-1j"), Optional(Number(0, -0.2)));
}

TEST(ParseScalarTest, ReadsPairs) {
  EXPECT_THAT(Parse("1.5,-2"), Optional(Number(1.5, -2)));
}

TEST(ParseScalarTest, RefusesTheRest) {
  for (const char* text :
       {"", "x", "j", "1+j", "1+2", "1+2i", "1+2jj", "1,2,3", "1,2j", "1,",
        "1+-2j", "--2j", "1e400", "1-1e400j"}) {
    EXPECT_EQ(Parse(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tensord::cli
