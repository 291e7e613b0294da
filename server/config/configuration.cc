#include "server/config/configuration.h"

#include <algorithm>
#include <array>
#include <regex>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/nearest.h"

namespace tensord::server {
namespace {

constexpr absl::string_view kPrefix = "TENSORD_";

/// Whether it is a variable, as a key, that clients read, or that Kubernetes
/// sets for a service whose name is, or begins with, tensord.
bool IsOfOthers(const std::string& key) {
  constexpr std::array<absl::string_view, 9> kOfClients = {
      "address", "ca",    "cert",       "implementation", "key",
      "server",  "token", "token-file", "transport"};
  static const std::regex* const of_services = new std::regex(
      "(.+-)?(service-host|service-port(-.+)?|"
      "port(-[0-9]+-(tcp|udp|sctp)(-(proto|port|addr))?)?)");
  return std::ranges::count(kOfClients, key) > 0 ||
         std::regex_match(key, *of_services);
}

bool TakesSeveral(const CLI::Option& option) {
  return option.get_items_expected_max() > 1;
}

bool IsFlag(const CLI::Option& option) {
  return option.get_expected_min() == 0;
}

std::vector<std::string> DefaultOf(const CLI::Option& option) {
  if (IsFlag(option)) return {"false"};
  const std::string text = option.get_default_str();
  absl::string_view values = text;
  if (TakesSeveral(option) && absl::ConsumePrefix(&values, "[")) {
    absl::ConsumeSuffix(&values, "]");
  }
  if (values.empty()) return {};
  if (!TakesSeveral(option)) return {text};
  return absl::StrSplit(values, ',');
}

}  // namespace

Configuration::Configuration(CLI::App& app) {
  for (CLI::Option* const option : app.get_options()) {
    if (!option->get_configurable()) continue;
    const std::string& key = option->get_lnames().front();
    keys_.push_back(key);
    options_[key] = option;
    if (option->count() > 0) origins_[option] = "flag";
  }
}

void Configuration::ReadEnvironment(const char* const* environment) {
  for (; *environment != nullptr; ++environment) {
    const std::pair<absl::string_view, std::string> variable =
        absl::StrSplit(*environment, absl::MaxSplits('=', 1));
    absl::string_view name = variable.first;
    if (!absl::ConsumePrefix(&name, kPrefix) || variable.second.empty()) {
      continue;
    }
    Setting setting{
        .key = absl::StrReplaceAll(absl::AsciiStrToLower(name), {{"_", "-"}}),
        .values = {variable.second},
        .is_list = false,
        .origin = absl::StrCat("environment, ", variable.first)};
    const auto option = options_.find(setting.key);
    if (option != options_.end()) {
      setting.is_list = TakesSeveral(*option->second);
      if (setting.is_list)
        setting.values = absl::StrSplit(variable.second, ',');
      Set(setting);
    } else if (setting.key != "config" && !IsOfOthers(setting.key)) {
      const std::string nearest = core::Nearest(setting.key, keys_);
      const std::string name =
          absl::StrReplaceAll(absl::AsciiStrToUpper(nearest), {{"-", "_"}});
      throw CLI::ValidationError(absl::StrCat(
          "unknown variable ", variable.first, " in the environment",
          nearest.empty()
              ? ""
              : absl::StrCat(", did you mean ", kPrefix, name, "?")));
    }
  }
}

void Configuration::ReadFile(const std::string& path) {
  const absl::StatusOr<std::vector<Setting>> settings = ReadConfigFile(path);
  if (!settings.ok()) {
    throw CLI::ValidationError(std::string(settings.status().message()));
  }
  for (const Setting& setting : *settings) {
    if (!options_.contains(setting.key)) {
      throw CLI::ValidationError(absl::StrCat(setting.origin, ": unknown key '",
                                              setting.key, "'",
                                              Suggest(setting.key)));
    }
    if (!setting.is_value) {
      throw CLI::ValidationError(absl::StrCat(
          setting.origin, ": ", setting.key,
          " is no value, wanted a string, number, boolean or a list of those"));
    }
    Set(setting);
  }
}

void Configuration::Set(const Setting& setting) {
  CLI::Option& option = *options_.at(setting.key);
  if (option.count() > 0) return;
  try {
    if (setting.is_list && !TakesSeveral(option)) {
      throw CLI::ValidationError(
          absl::StrCat(setting.key, " is a list, wanted one value"));
    }
    if (setting.values.empty()) {
      throw CLI::ValidationError(
          absl::StrCat(setting.key, " is empty, wanted a value"));
    }
    for (const std::string& value : setting.values) {
      option.add_result(
          IsFlag(option) ? option.get_flag_value(setting.key, value) : value);
    }
    option.run_callback();
  } catch (const CLI::ParseError& error) {
    throw CLI::ValidationError(
        absl::StrCat(setting.origin, ": ", error.what()));
  }
  origins_[&option] = setting.origin;
}

std::string Configuration::Suggest(absl::string_view key) const {
  const std::string nearest = core::Nearest(key, keys_);
  return nearest.empty() ? "" : absl::StrCat(", did you mean '", nearest, "'?");
}

std::vector<Setting> Configuration::Settings() const {
  std::vector<Setting> settings;
  for (const std::string& key : keys_) {
    const CLI::Option& option = *options_.at(key);
    const auto origin = origins_.find(&option);
    settings.push_back(
        {.key = key,
         .values = option.count() > 0 ? option.results() : DefaultOf(option),
         .is_list = TakesSeveral(option),
         .origin = origin == origins_.end() ? "default" : origin->second});
  }
  return settings;
}

std::string Configuration::ToToml() const {
  std::string text;
  for (const Setting& setting : Settings()) {
    if (setting.values.empty()) {
      absl::StrAppend(&text, "# ", setting.key, " is not set\n");
    } else {
      absl::StrAppend(&text, ToTomlLine(setting), "  # ", setting.origin, "\n");
    }
  }
  return text;
}

}  // namespace tensord::server
