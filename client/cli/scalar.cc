#include "client/cli/scalar.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace tensord::cli {
namespace {

/// Where the imaginary part of `1.5e-3-2` begins: at the last sign that is not
/// an exponent's.
size_t ImaginaryStart(std::string_view text) {
  for (size_t at = text.size(); at-- > 1;) {
    const char before = text[at - 1];
    if ((text[at] == '+' || text[at] == '-') && before != 'e' &&
        before != 'E') {
      return at;
    }
  }
  return 0;
}

/// False for numbers beyond the range of doubles, too.
bool ParseNumber(std::string_view text, double* value) {
  return absl::SimpleAtod(absl::string_view(text.data(), text.size()), value) &&
         (std::isfinite(*value) ||
          text.find_first_of("0123456789") == text.npos);
}

}  // namespace

std::optional<Scalar> ParseScalar(std::string_view text) {
  std::string_view real = text;
  std::string_view imaginary = "0";
  if (const size_t comma = text.find(','); comma != text.npos) {
    real = text.substr(0, comma);
    imaginary = text.substr(comma + 1);
  } else if (text.ends_with('j')) {
    text.remove_suffix(1);
    const size_t start = ImaginaryStart(text);
    real = start == 0 ? "0" : text.substr(0, start);
    imaginary = text.substr(start);
  }
  double values[2];
  if (!ParseNumber(real, &values[0]) || !ParseNumber(imaginary, &values[1])) {
    return std::nullopt;
  }
  return Scalar(values[0], values[1]);
}

}  // namespace tensord::cli
