#include "server/engine/device_selection.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"

namespace tensord::server {
namespace {

absl::StatusOr<DeviceSelection::Item> ParseItem(absl::string_view text) {
  if (text == "cpu" || text == "cpu:0") return DeviceSelection::Item{"cpu", 0};
  if (text == "cuda")
    return DeviceSelection::Item{"cuda", DeviceSelection::kAll};
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  int ordinal = 0;
  if (parts.first == "cuda" && absl::SimpleAtoi(parts.second, &ordinal) &&
      ordinal >= 0) {
    return DeviceSelection::Item{"cuda", ordinal};
  }
  return core::InvalidArgument(
      "DEVICES_MALFORMED", "device is '", text,
      "', wanted auto, or cpu, cuda, cuda:0, ... with commas between");
}

}  // namespace

absl::StatusOr<DeviceSelection> ParseDevices(absl::string_view text) {
  DeviceSelection selection;
  if (absl::StripAsciiWhitespace(text) == "auto") return selection;
  selection.is_automatic = false;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    part = absl::StripAsciiWhitespace(part);
    TENSORD_ASSIGN_OR_RETURN(DeviceSelection::Item item, ParseItem(part));
    const bool is_repeated = std::any_of(
        selection.items.begin(), selection.items.end(), [&](const auto& other) {
          return other.kind == item.kind &&
                 (other.ordinal == item.ordinal ||
                  other.ordinal == DeviceSelection::kAll ||
                  item.ordinal == DeviceSelection::kAll);
        });
    if (is_repeated) {
      return core::InvalidArgument("DEVICES_MALFORMED", "device '", part,
                                   "' is named twice in '", text, "'");
    }
    selection.items.push_back(std::move(item));
  }
  return selection;
}

}  // namespace tensord::server
