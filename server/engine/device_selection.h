// Which devices a server shall use.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tensord::server {

/// The choice of `--devices`.
struct DeviceSelection {
  struct Item {
    std::string kind;  // "cpu" or "cuda"
    int ordinal = 0;   // kAll: every device of the kind

    bool operator==(const Item&) const = default;
  };
  static constexpr int kAll = -1;

  /// Every GPU that can be used, then the CPU.
  bool is_automatic = true;
  /// Otherwise these, the first one being the default device.
  std::vector<Item> items;

  bool operator==(const DeviceSelection&) const = default;
};

/// The selection in `text`: "auto", or "cpu", "cuda" (all of them), "cuda:<n>"
/// with commas between.
///
/// Errors  INVALID_ARGUMENT, reason DEVICES_MALFORMED.
absl::StatusOr<DeviceSelection> ParseDevices(absl::string_view text);

}  // namespace tensord::server
