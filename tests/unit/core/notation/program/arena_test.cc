#include "core/notation/program/arena.h"

#include <gtest/gtest.h>

#include "core/base/layout.h"
#include "core/notation/program/program.h"

namespace tensord::core {
namespace {

ProgramStep Step(int32_t from, int32_t to) {
  ProgramStep step;
  step.a.tensor = from;
  step.d.tensor = to;
  return step;
}

// A constant, which the first of three steps reads in each slice.
TEST(ArenaTest, ConstantsOutliveTheSlicesThatReadThem) {
  Program program;
  program.tensors.resize(4);
  program.tensors[0].place = ProgramTensor::Place::kConstant;
  program.tensors[1].layout = PackedLayout({64}, Order::kFirstModeFastest);
  program.tensors[2].layout = PackedLayout({64}, Order::kFirstModeFastest);
  program.tensors[3].place = ProgramTensor::Place::kOutput;
  program.blocks.push_back(
      {.slice_extents = {2}, .steps = {Step(0, 1), Step(1, 2), Step(2, 3)}});
  ASSERT_TRUE(AssignArena(program, 0).ok());
  EXPECT_EQ(program.arena_bytes, 3 * 256);
  program.blocks[0].slice_extents.clear();
  ASSERT_TRUE(AssignArena(program, 0).ok());
  EXPECT_EQ(program.arena_bytes, 2 * 256);
}

}  // namespace
}  // namespace tensord::core
