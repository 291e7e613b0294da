#include "core/tensor/tensor.h"

#include "gtest/gtest.h"

namespace tensord::core {
namespace {

// E7
TEST(AlignmentTest, IsThatOfTheOffsetAndTheMemory) {
  const auto alignment = [](int64_t offset, ElementType type) {
    return AlignmentOf({type, {{2}, {1}}, offset});
  };
  EXPECT_EQ(alignment(0, ElementType::kFloat32), kBufferAlignment);
  EXPECT_EQ(alignment(1, ElementType::kFloat32), 4);
  EXPECT_EQ(alignment(4, ElementType::kFloat32), 16);
  EXPECT_EQ(alignment(6, ElementType::kFloat64), 16);
  EXPECT_EQ(alignment(3, ElementType::kInt8), 1);
  EXPECT_EQ(alignment(1024, ElementType::kFloat32), kBufferAlignment);
}

}  // namespace
}  // namespace tensord::core
