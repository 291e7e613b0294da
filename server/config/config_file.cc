#include "server/config/config_file.h"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/base/status.h"

namespace tensord::server {
namespace {

absl::Status Malformed(const std::string& origin, absl::string_view problem) {
  return core::InvalidArgument("CONFIG_MALFORMED", origin, ": ", problem);
}

/// `node` as it would stand on a command line; nothing: it could not.
std::optional<std::string> TextOf(const toml::node& node) {
  if (node.is_string()) return node.value<std::string>();
  if (node.is_integer()) return absl::StrCat(*node.value<int64_t>());
  if (!node.is_boolean() && !node.is_floating_point()) return std::nullopt;
  std::ostringstream text;
  node.visit([&](const auto& value) { text << value; });
  return text.str();
}

Setting SettingOf(const std::string& key, const toml::node& node,
                  const std::string& file) {
  Setting setting{.key = absl::StrReplaceAll(key, {{"_", "-"}}),
                  .values = {},
                  .is_list = node.is_array(),
                  .origin = absl::StrCat(file, ":", node.source().begin.line)};
  const auto add = [&](const toml::node& value) {
    const std::optional<std::string> text = TextOf(value);
    if (text) setting.values.push_back(*text);
    return text.has_value();
  };
  setting.is_value =
      setting.is_list ? std::ranges::all_of(*node.as_array(), add) : add(node);
  return setting;
}

/// As it stands in TOML.
std::string Literal(const std::string& text) {
  int64_t integer = 0;
  double number = 0;
  const bool is_bare =
      text == "true" || text == "false" ||
      (absl::SimpleAtoi(text, &integer) && absl::StrCat(integer) == text) ||
      (text.find('.') != text.npos && text.find('e') == text.npos &&
       absl::SimpleAtod(text, &number) && absl::StrCat(number) == text);
  if (is_bare) return text;
  std::ostringstream quoted;
  quoted << toml::value<std::string>(text);
  return quoted.str();
}

}  // namespace

absl::StatusOr<std::vector<Setting>> ReadConfigFile(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) {
    return core::InvalidArgument("CONFIG_UNREADABLE",
                                 "cannot read the configuration '", path, "'");
  }
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    return Malformed(
        absl::StrCat(path, ":", parsed.error().source().begin.line),
        std::string(parsed.error().description()));
  }
  std::vector<Setting> settings;
  for (const auto& [key, node] : parsed.table()) {
    Setting setting = SettingOf(std::string(key.str()), node, path);
    for (const Setting& other : settings) {
      if (other.key != setting.key) continue;
      return Malformed(setting.origin, absl::StrCat(setting.key, " stands in ",
                                                    other.origin, " already"));
    }
    settings.push_back(std::move(setting));
  }
  return settings;
}

std::string TomlValue(const Setting& setting) {
  if (setting.values.empty()) return "";
  std::vector<std::string> literals;
  for (const std::string& value : setting.values) {
    literals.push_back(Literal(value));
  }
  const std::string values = absl::StrJoin(literals, ", ");
  return setting.is_list ? absl::StrCat("[", values, "]") : values;
}

std::string ToTomlLine(const Setting& setting) {
  return absl::StrCat(setting.key, " = ", TomlValue(setting));
}

}  // namespace tensord::server
