// Random programs, as trees and as careless people write them.
#pragma once

#include <random>
#include <string>

#include "core/notation/syntax.h"

namespace tensord::core::test {

struct RandomProgram {
  /// With all that ParseProgram() fills in, but without positions.
  ProgramSyntax syntax;
  /// The same in many spellings, with blanks, comments and needless signs.
  std::string text;
};

RandomProgram MakeRandomProgram(std::mt19937& rng);

}  // namespace tensord::core::test
