// What tiles should reach on an H200.
#include "core/backend/cuda/contraction/tile_efficiency.h"

#include <gtest/gtest.h>

#include "tests/unit/core/backend/cuda/h200.h"

namespace tensord::core::cuda {
namespace {

constexpr DirectReading kByElements = {};
constexpr DirectReading kByVectors = {.by_vectors = true};
constexpr DirectTile kShapes[] = {DirectTile::kSquare, DirectTile::kTall,
                                  DirectTile::kTall24, DirectTile::kDeep};

double Efficiency(ElementType type, DirectTile tile,
                  const DirectReading& reading) {
  return TileEfficiency(kH200, type, tile, reading, reading);
}

TEST(TileEfficiencyTest, IsAPartOfThePeak) {
  for (const ElementType type :
       {ElementType::kFloat16, ElementType::kFloat32, ElementType::kFloat64,
        ElementType::kComplex64, ElementType::kComplex128, ElementType::kInt8,
        ElementType::kInt64}) {
    for (const DirectTile tile : kShapes) {
      EXPECT_GT(Efficiency(type, tile, kByElements), 0.1);
      EXPECT_LT(Efficiency(type, tile, kByVectors), 1);
      EXPECT_GE(Efficiency(type, tile, kByVectors),
                Efficiency(type, tile, kByElements));
    }
  }
}

TEST(TileEfficiencyTest, VectorsSaveInstructions) {
  EXPECT_GT(Efficiency(ElementType::kFloat32, DirectTile::kTall24, kByVectors),
            1.2 * Efficiency(ElementType::kFloat32, DirectTile::kTall24,
                             kByElements));
}

TEST(TileEfficiencyTest, LargerShareOfAThreadReachesMore) {
  const auto of = [](DirectTile tile) {
    return Efficiency(ElementType::kFloat32, tile, kByElements);
  };
  EXPECT_GT(of(DirectTile::kLarge), of(DirectTile::kSquare));
  EXPECT_GT(of(DirectTile::kTall24), of(DirectTile::kTall));
  EXPECT_GT(of(DirectTile::kTall), of(DirectTile::kDeep));
}

}  // namespace
}  // namespace tensord::core::cuda
