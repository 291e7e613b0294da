#include "core/base/nearest.h"

#include <gtest/gtest.h>

namespace tensord::core {
namespace {

TEST(NearestTest, IsTheMostSimilarName) {
  EXPECT_EQ(Nearest("wieght", {"name", "weight"}), "weight");
  EXPECT_EQ(Nearest("extent", {"extents", "element_type"}), "extents");
  EXPECT_EQ(Nearest("colour", {"name", "weight"}), "");
  EXPECT_EQ(Nearest("A", {"qr", "lq"}), "");
  EXPECT_EQ(Nearest("ql", {"qr"}), "qr");
}

TEST(NearestTest, IsTheNameThatBeginsSo) {
  EXPECT_EQ(Nearest("memory-limit", {"memory-unit", "memory-limit-bytes"}),
            "memory-limit-bytes");
  EXPECT_EQ(Nearest("m", {"memory-limit-bytes"}), "");
}

}  // namespace
}  // namespace tensord::core
