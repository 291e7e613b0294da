#include "client/cli/options.h"

#include <tuple>

#include "absl/strings/numbers.h"

namespace tensord::cli {
namespace {

/// Turns "512MiB" into "536870912".
CLI::Validator ByteSize() {
  return {[](std::string& text) -> std::string {
            const std::string got = text;
            int64_t bytes = 0;
            try {
              CLI::AsSizeValue(/*kb_is_1000=*/true)(text);
              if (absl::SimpleAtoi(text, &bytes) && bytes >= 0) return "";
            } catch (const CLI::ValidationError&) {
              // Its message lists every unit there is.
            }
            return "'" + got + "' is not a size, wanted bytes, or e.g. 512MiB";
          },
          "BYTES"};
}

}  // namespace

CLI::Option* AddInteger(CLI::App& command, const std::string& name,
                        int64_t& value, const std::string& help) {
  return command
      .add_option_function<std::string>(
          name,
          [&value](const std::string& text) {
            std::ignore = absl::SimpleAtoi(text, &value);
          },
          help)
      ->check([](const std::string& text) -> std::string {
        int64_t number = 0;
        if (absl::SimpleAtoi(text, &number)) return "";
        return "'" + text + "' is no whole number of 64 bits";
      });
}

void AddBytes(CLI::App& command, const std::string& name,
              std::optional<int64_t>& value, const std::string& help) {
  command
      .add_option_function<int64_t>(
          name, [&value](int64_t bytes) { value = bytes; }, help)
      ->transform(ByteSize());
}

void AddDuration(CLI::App& command, const std::string& name,
                 std::optional<absl::Duration>& value,
                 const std::string& help) {
  const auto parse = [](const std::string& text, absl::Duration* duration) {
    return absl::ParseDuration(text, duration) &&
           *duration >= absl::ZeroDuration() &&
           *duration < absl::InfiniteDuration();
  };
  command
      .add_option_function<std::string>(
          name,
          [&value, parse](const std::string& text) {
            parse(text, &value.emplace());
          },
          help)
      ->check([parse](const std::string& text) -> std::string {
        absl::Duration unused;
        return parse(text, &unused)
                   ? ""
                   : "'" + text +
                         "' is not a duration, wanted e.g. 2s or 500ms";
      })
      ->type_name("DURATION");
}

void AddJsonFlag(CLI::App& command, bool& value) {
  command.add_flag("--json", value, "Print JSON");
}

}  // namespace tensord::cli
