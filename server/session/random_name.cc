#include "server/session/random_name.h"

#include <sys/random.h>

#include <array>
#include <iterator>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace tensord::server {

absl::StatusOr<std::string> RandomName(absl::string_view prefix) {
  std::array<char, 16> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != std::ssize(bytes)) {
    return core::Internal("NO_RANDOMNESS", "getrandom() failed");
  }
  return absl::StrCat(prefix, absl::BytesToHexString(absl::string_view(
                                  bytes.data(), bytes.size())));
}

}  // namespace tensord::server
