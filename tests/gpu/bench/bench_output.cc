#include "tests/gpu/bench/bench_output.h"

#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tensord::test {
namespace {

std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      absl::StrAppend(&quoted, "\\", std::string(1, c));
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", c);
    } else {
      quoted.push_back(c);
    }
  }
  return quoted + "\"";
}

}  // namespace

std::string Value::ToJson() const {
  if (const auto* text = std::get_if<std::string>(&value_)) {
    return Quoted(*text);
  }
  if (const auto* truth = std::get_if<bool>(&value_)) {
    return *truth ? "true" : "false";
  }
  if (const auto* number = std::get_if<int64_t>(&value_)) {
    return absl::StrCat(*number);
  }
  const double number = std::get<double>(value_);
  return std::isfinite(number) ? absl::StrFormat("%.6g", number) : "null";
}

void Print(const Row& row) {
  std::string line;
  for (const auto& [name, value] : row) {
    absl::StrAppend(&line, line.empty() ? "{" : ",", Quoted(name), ":",
                    value.ToJson());
  }
  std::printf("%s}\n", line.c_str());
  std::fflush(stdout);
}

CaseCounter::~CaseCounter() {
  Print(
      {{"part", part_}, {"cases_done", done_}, {"cases_left_out", left_out_}});
}

bool CaseCounter::Next() {
  const bool may_start = !effort_.IsOver();
  ++(may_start ? done_ : left_out_);
  return may_start;
}

}  // namespace tensord::test
