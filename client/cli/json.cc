#include "client/cli/json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tensord::cli {
namespace {

/// On one line; what is not UTF-8 becomes U+FFFD.
std::string Compact(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Indented(const Json& json, const std::string& line_break) {
  if (!json.is_structured() || json.empty()) return Compact(json);
  const auto add = [](std::string* text, const Json& number) {
    text->append(Compact(number));
  };
  if (json.is_array() && std::ranges::all_of(json, [](const Json& value) {
        return value.is_number();
      })) {
    return absl::StrCat("[", absl::StrJoin(json, ", ", add), "]");
  }
  const std::string deeper = line_break + "  ";
  std::string text;
  for (const auto& [key, value] : json.items()) {
    absl::StrAppend(&text, text.empty() ? "" : ",", deeper,
                    json.is_object() ? Compact(key) + ": " : "",
                    Indented(value, deeper));
  }
  return json.is_object() ? absl::StrCat("{", text, line_break, "}")
                          : absl::StrCat("[", text, line_break, "]");
}

}  // namespace

Json JsonNumber(double value) {
  constexpr double kMostExact = 1LL << 53;
  const bool is_integer =
      std::trunc(value) == value && std::abs(value) <= kMostExact;
  return is_integer ? Json(static_cast<int64_t>(value)) : Json(value);
}

Json JsonSeconds(absl::Duration duration) {
  return JsonNumber(absl::ToDoubleSeconds(duration));
}

std::string JsonText(const Json& json) { return Indented(json, "\n"); }

}  // namespace tensord::cli
