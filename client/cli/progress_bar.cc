#include "client/cli/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/text.h"

namespace tensord::cli {

constexpr absl::Duration kPatience = absl::Seconds(1);
constexpr absl::Duration kInterval = absl::Milliseconds(100);
constexpr int kWidth = 30;

ProgressBar::ProgressBar(std::string label)
    : label_(std::move(label)),
      visible_(isatty(STDOUT_FILENO) != 0 && isatty(STDERR_FILENO) != 0),
      start_(absl::Now()) {}

ProgressBar::~ProgressBar() {
  if (drawn_ != absl::InfinitePast()) std::fputs("\r\033[K", stderr);
}

void ProgressBar::Update(int64_t done_bytes, int64_t total_bytes) {
  if (!visible_ || total_bytes <= 0) return;
  const absl::Time now = absl::Now();
  if (now - start_ < kPatience || now - drawn_ < kInterval) return;
  drawn_ = now;
  const double part = static_cast<double>(done_bytes) / total_bytes;
  const int filled = std::min(kWidth, static_cast<int>(part * kWidth));
  const double rate = done_bytes / absl::ToDoubleSeconds(now - start_);
  absl::FPrintF(stderr, "\r\033[K%s [%s%s] %3.0f %%  %s of %s  %s/s", label_,
                std::string(filled, '#'), std::string(kWidth - filled, '.'),
                part * 100, BytesText(done_bytes), BytesText(total_bytes),
                BytesText(static_cast<int64_t>(rate)));
}

}  // namespace tensord::cli
