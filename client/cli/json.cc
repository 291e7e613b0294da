#include "client/cli/json.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tensord::cli {

void JsonWriter::Key(std::string_view key) {
  Separate();
  Quote(key);
  text_.append(": ");
  after_key_ = true;
}

void JsonWriter::String(std::string_view value) {
  Separate();
  Quote(value);
}

void JsonWriter::Number(int64_t value) {
  Separate();
  absl::StrAppend(&text_, value);
}

void JsonWriter::Number(double value) {
  Separate();
  if (!std::isfinite(value)) {  // JSON has neither infinity nor NaN.
    text_.append("null");
    return;
  }
  char digits[32];
  const auto end = std::to_chars(digits, std::end(digits), value).ptr;
  text_.append(digits, end);
}

void JsonWriter::Numbers(const std::vector<int64_t>& values) {
  Separate();
  absl::StrAppend(&text_, "[", absl::StrJoin(values, ", "), "]");
}

void JsonWriter::Field(std::string_view key, std::string_view value) {
  Key(key);
  String(value);
}

void JsonWriter::Field(std::string_view key, int64_t value) {
  Key(key);
  Number(value);
}

void JsonWriter::Field(std::string_view key, double value) {
  Key(key);
  Number(value);
}

void JsonWriter::Flag(std::string_view key, bool value) {
  Key(key);
  Separate();
  text_.append(value ? "true" : "false");
}

void JsonWriter::Begin(char bracket) {
  Separate();
  text_.push_back(bracket);
  empty_.push_back(true);
}

void JsonWriter::End(char bracket) {
  const bool empty = empty_.back();
  empty_.pop_back();
  if (!empty) {
    text_.push_back('\n');
    text_.append(2 * empty_.size(), ' ');
  }
  text_.push_back(bracket);
}

void JsonWriter::Separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (empty_.empty()) return;
  if (!empty_.back()) text_.push_back(',');
  empty_.back() = false;
  text_.push_back('\n');
  text_.append(2 * empty_.size(), ' ');
}

void JsonWriter::Quote(std::string_view value) {
  text_.push_back('"');
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      text_.push_back('\\');
      text_.push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", c);
      text_.append(escape);
    } else {
      text_.push_back(c);
    }
  }
  text_.push_back('"');
}

}  // namespace tensord::cli
