// How far a transfer has come, on the terminal.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace tensord::cli {

/// One line on stderr, drawn again and again once a transfer has taken a
/// second. Draws nothing unless stdout and stderr are terminals.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  ~ProgressBar();

  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Update(int64_t done_bytes, int64_t total_bytes);

 private:
  const std::string label_;
  const bool visible_;
  const absl::Time start_;
  absl::Time drawn_ = absl::InfinitePast();
};

}  // namespace tensord::cli
