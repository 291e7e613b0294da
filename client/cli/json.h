// JSON for `--json`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tensord::cli {

/// Writes one indented JSON value, from the outside in.
///
///   JsonWriter json;
///   json.BeginObject();
///   json.Key("extents");
///   json.Numbers({2, 3});
///   json.EndObject();
///
/// Requires  calls in an order that makes a value: keys in objects alone, and
///           what begins ends.
class JsonWriter {
 public:
  void BeginObject() { Begin('{'); }
  void EndObject() { End('}'); }
  void BeginArray() { Begin('['); }
  void EndArray() { End(']'); }

  void Key(std::string_view key);
  void String(std::string_view value);
  void Number(int64_t value);
  void Number(double value);
  void Numbers(const std::vector<int64_t>& values);  // on one line

  void Field(std::string_view key, std::string_view value);
  void Field(std::string_view key, int64_t value);
  void Field(std::string_view key, double value);
  void Flag(std::string_view key, bool value);

  const std::string& text() const { return text_; }

 private:
  void Begin(char bracket);
  void End(char bracket);
  void Separate();
  void Quote(std::string_view value);

  std::string text_;
  std::vector<bool> empty_;  // of what has begun, whether nothing is in it
  bool after_key_ = false;
};

}  // namespace tensord::cli
