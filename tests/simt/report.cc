#include "tests/simt/report.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tests/simt/sanitizers.h"
#include "tests/simt/simt.h"

namespace tensord::simt {
namespace {

std::atomic<ReportCapture*> active_capture = nullptr;

}  // namespace

ReportCapture::ReportCapture() {
  if (active_capture.exchange(this) != nullptr) {
    std::fprintf(stderr, "simt: two report captures at a time\n");
    std::abort();
  }
}

ReportCapture::~ReportCapture() { active_capture = nullptr; }

std::vector<std::string> ReportCapture::Take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(reports_, {});
}

void Report(const std::string& text) {
  ReportCapture* const capture = active_capture;
  if (capture == nullptr) {
    std::fprintf(stderr, "simt: %s\n", text.c_str());
    std::abort();
  }
  const std::lock_guard lock(capture->mutex_);
  capture->reports_.push_back(text);
}

}  // namespace tensord::simt
