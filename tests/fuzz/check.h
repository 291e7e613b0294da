// What a fuzz target says when something is not so.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"

namespace tensord::fuzz {

inline void Check(bool is_true, absl::string_view claim,
                  const std::string& seen = "") {
  if (is_true) return;
  std::fprintf(stderr, "not so: %.*s\n%s\n", static_cast<int>(claim.size()),
               claim.data(), seen.c_str());
  std::abort();
}

}  // namespace tensord::fuzz
