#include "server/telemetry/trace_context.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "absl/random/random.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tensord::server {
namespace {

// VV-TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT-PPPPPPPPPPPPPPPP-FF
constexpr size_t kTraceAt = 3;
constexpr size_t kParentAt = 36;
constexpr size_t kFlagsAt = 53;
constexpr size_t kLength = 55;
constexpr size_t kMaxStateBytes = 512;
constexpr uint64_t kSampled = 1;

absl::InsecureBitGen& Random() {
  thread_local absl::InsecureBitGen random;
  return random;
}

/// The number that lower-case hexadecimal digits are.
std::optional<uint64_t> ParseHex(absl::string_view digits) {
  if (std::ranges::any_of(digits, absl::ascii_isupper)) return std::nullopt;
  uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, number, 16);
  if (error != std::errc() || at != end) return std::nullopt;
  return number;
}

bool IsGoodState(absl::string_view state) {
  return state.size() <= kMaxStateBytes &&
         std::ranges::all_of(state, [](unsigned char c) {
           return absl::ascii_isprint(c) || c == '\t';
         });
}

}  // namespace

std::string TraceContext::trace_id_text() const {
  if (!has_trace()) return "";
  return absl::StrCat(absl::Hex(trace_id[0], absl::kZeroPad16),
                      absl::Hex(trace_id[1], absl::kZeroPad16));
}

std::optional<TraceContext> ParseTraceContext(absl::string_view traceparent,
                                              absl::string_view tracestate) {
  if (traceparent.size() < kLength || traceparent[kTraceAt - 1] != '-' ||
      traceparent[kParentAt - 1] != '-' || traceparent[kFlagsAt - 1] != '-') {
    return std::nullopt;
  }
  const auto version = ParseHex(traceparent.substr(0, 2));
  const auto high = ParseHex(traceparent.substr(kTraceAt, 16));
  const auto low = ParseHex(traceparent.substr(kTraceAt + 16, 16));
  const auto parent = ParseHex(traceparent.substr(kParentAt, 16));
  const auto flags = ParseHex(traceparent.substr(kFlagsAt, 2));
  if (!version || !high || !low || !parent || !flags) return std::nullopt;
  // Later versions may have more behind; 255 is none.
  const bool is_whole = traceparent.size() == kLength ||
                        (*version > 0 && traceparent[kLength] == '-');
  if (*version == 255 || !is_whole || (*high | *low) == 0 || *parent == 0) {
    return std::nullopt;
  }
  TraceContext context = {.trace_id = {*high, *low},
                          .parent_span = *parent,
                          .is_sampled = (*flags & kSampled) != 0};
  if (IsGoodState(tracestate)) context.state = std::string(tracestate);
  return context;
}

uint64_t NewSpanId() {
  return absl::Uniform<uint64_t>(absl::IntervalClosedClosed, Random(), 1,
                                 ~uint64_t{0});
}

bool IsChosen(double ratio) { return absl::Bernoulli(Random(), ratio); }

}  // namespace tensord::server
