// Numbers, tensors and failures as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tensord::cli {

/// "(2, 3)", and "(2,)" as Python has it.
std::string ShapeText(const std::vector<int64_t>& extents);

/// "1.5 GiB".
std::string BytesText(int64_t bytes);

/// "12.3 ms".
std::string DurationText(absl::Duration duration);

/// What exits of the program mean.
enum ExitCode { kOk = 0, kFailed = 1, kUsage = 2 };

/// Says on stderr what went wrong, and why as programs know it; of a fault of
/// the server also which request it was. Returns what to exit with: kUsage when
/// the notation is malformed, else kFailed.
int Fail(const absl::Status& status);

/// Says on stderr how the command line is wrong. Returns kUsage.
int FailUsage(const std::string& message);

}  // namespace tensord::cli
