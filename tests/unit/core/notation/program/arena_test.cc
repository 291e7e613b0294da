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

// An operation with two results, of which nobody reads the second.
TEST(ArenaTest, AllResultsOfAStepHaveMemory) {
  Program program;
  program.tensors.resize(5);
  for (const int t : {1, 2, 3}) {
    program.tensors[t].layout = PackedLayout({64}, Order::kFirstModeFastest);
  }
  program.tensors[0].place = ProgramTensor::Place::kOperand;
  program.tensors[4].place = ProgramTensor::Place::kOutput;
  ProgramStep decomposition = Step(0, 1);
  decomposition.others.push_back(
      {.tensor = 2, .offset = 0, .slice_strides = {}});
  program.blocks.push_back({.steps = {decomposition, Step(1, 3), Step(3, 4)}});
  ASSERT_TRUE(AssignArena(program, 0).ok());
  EXPECT_EQ(program.arena_bytes, 2 * 256);
  EXPECT_NE(program.tensors[1].arena_offset_bytes,
            program.tensors[2].arena_offset_bytes);
  // Later, another may have its place.
  EXPECT_EQ(program.tensors[3].arena_offset_bytes,
            program.tensors[2].arena_offset_bytes);
}

}  // namespace
}  // namespace tensord::core
