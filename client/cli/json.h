// JSON for `--json`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/cli/text.h"

namespace tensord::cli {

/// Keys stay in the order in which they are given.
using Json = nlohmann::ordered_json;

/// The number, without a point where it is an integer: 16 rather than 16.0.
Json JsonNumber(double value);

/// The same of a duration, in seconds.
Json JsonSeconds(absl::Duration duration);

/// A list of what `convert` makes of each of `values`.
template <typename Values, typename Convert>
Json JsonList(const Values& values, Convert convert) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(convert(value));
  return list;
}

/// Each value on a line of its own, but for lists of numbers.
std::string JsonText(const Json& json);

/// Prints what a server has answered: what `to_json` makes of it, or by `print`
/// for people. Returns an exit code.
template <typename Value, typename ToJson, typename Print>
int PrintAs(const absl::StatusOr<Value>& answer, bool as_json, ToJson to_json,
            Print print) {
  if (!answer.ok()) return Fail(answer.status());
  if (as_json) {
    absl::PrintF("%s\n", JsonText(to_json(*answer)));
  } else {
    print(*answer);
  }
  return kOk;
}

}  // namespace tensord::cli
