#include "core/notation/program/program.h"

namespace tensord::core {

int64_t ProgramBlock::slice_count() const {
  int64_t count = 1;
  for (const int64_t extent : slice_extents) count *= extent;
  return count;
}

}  // namespace tensord::core
