// What a benchmark prints: one JSON object a line.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tensord::test {

/// A value of a row: text, a number or a truth.
class Value {
 public:
  Value(absl::string_view text) : value_(std::string(text)) {}
  Value(const std::string& text) : value_(text) {}
  Value(const char* text) : value_(std::string(text)) {}
  Value(double number) : value_(number) {}
  Value(int64_t number) : value_(number) {}
  Value(int number) : value_(int64_t{number}) {}
  Value(bool truth) : value_(truth) {}

  std::string ToJson() const;

 private:
  std::variant<std::string, double, int64_t, bool> value_;
};

using Row = std::vector<std::pair<std::string, Value>>;

/// `row` on stdout as one line, at once: what a benchmark has measured is there
/// when it is stopped.
void Print(const Row& row);

/// How much a benchmark may do.
struct Effort {
  std::chrono::steady_clock::time_point end;  // no case starts after it
  /// Problems of a few thousand elements and few of them, each run once: to
  /// see that everything works.
  bool tiny = false;
  /// Of permutations and contractions, just cases that have this in "SUITE ID
  /// TYPE".
  std::string only;

  bool IsAsked(absl::string_view suite, int64_t id,
               absl::string_view type) const {
    return absl::StrContains(absl::StrCat(suite, " ", id, " ", type), only);
  }
  bool IsOver() const { return std::chrono::steady_clock::now() >= end; }
  int repetitions() const { return tiny ? 1 : 7; }
};

/// Counts the cases of a part that ran and those for which no time was left.
class CaseCounter {
 public:
  CaseCounter(std::string part, const Effort& effort)
      : part_(std::move(part)), effort_(effort) {}
  /// Prints both counts.
  ~CaseCounter();
  CaseCounter(const CaseCounter&) = delete;
  CaseCounter& operator=(const CaseCounter&) = delete;

  /// True when the next case may start.
  bool Next();

 private:
  const std::string part_;
  const Effort& effort_;
  int64_t done_ = 0;
  int64_t left_out_ = 0;
};

}  // namespace tensord::test
