// Pictures of the orders in which products are contracted.
#pragma once

#include <string>
#include <vector>

#include "tensord/program.h"

namespace tensord::cli {

/// The trees of `products` side by side, as an SVG picture: factors below, what
/// is made of them above their middle.
std::string TreeSvg(const std::vector<ProgramProduct>& products);

}  // namespace tensord::cli
