#include "client/cli/text.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tensord/status.h"

namespace tensord::cli {

std::string ShapeText(const std::vector<int64_t>& extents) {
  return absl::StrCat("(", absl::StrJoin(extents, ", "),
                      extents.size() == 1 ? ",)" : ")");
}

std::string BytesText(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.*f %s", unit == 0 ? 0 : 1, value, kUnits[unit]);
}

std::string DurationText(absl::Duration duration) {
  const double seconds = absl::ToDoubleSeconds(duration);
  if (seconds == 0) return "0 s";
  if (seconds < 1e-6) return absl::StrFormat("%.0f ns", seconds * 1e9);
  if (seconds < 1e-3) return absl::StrFormat("%.0f us", seconds * 1e6);
  if (seconds < 1) return absl::StrFormat("%.1f ms", seconds * 1e3);
  if (seconds < 120) return absl::StrFormat("%.2f s", seconds);
  return absl::FormatDuration(absl::Trunc(duration, absl::Seconds(1)));
}

int Fail(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  std::string text =
      absl::StrCat("tensorctl: ", absl::StatusCodeToString(status.code()), ": ",
                   status.message(),
                   reason.empty() ? "" : absl::StrCat(" [", reason, "]"), "\n");
  std::fputs(text.c_str(), stderr);
  const std::string request_id = RequestIdOf(status);
  if (status.code() == absl::StatusCode::kInternal && !request_id.empty()) {
    absl::FPrintF(stderr, "It is request %s in the server's log.\n",
                  request_id);
  }
  if (status.code() == absl::StatusCode::kUnavailable && reason.empty()) {
    std::fputs(
        "Is a server running there? Start one with `tensord`, or name another "
        "with --address or TENSORD_ADDRESS.\n",
        stderr);
  }
  return reason == "SUBSCRIPTS_MALFORMED" || reason == "SYNTAX_ERROR" ? kUsage
                                                                      : kFailed;
}

int FailUsage(const std::string& message) {
  absl::FPrintF(stderr, "tensorctl: %s\nRun with --help for more.\n", message);
  return kUsage;
}

}  // namespace tensord::cli
