#include "server/config/options.h"

#include <CLI/CLI.hpp>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "core/base/status.h"
#include "server/config/version.h"

namespace tensord::server {
namespace {

/// As CLI11's own, whose message has the largest double in it.
CLI::Validator PositiveNumber() {
  return {[](std::string& text) -> std::string {
            int64_t number = 0;
            return absl::SimpleAtoi(text, &number) && number > 0
                       ? ""
                       : "'" + text + "' is not a number, wanted 1 or more";
          },
          "POSITIVE"};
}

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

absl::Status ValidateListen(absl::string_view address, bool allow_remote) {
  if (absl::StartsWith(address, "unix:")) return absl::OkStatus();
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    return core::InvalidArgument("ADDRESS_MALFORMED", "--listen is '", address,
                                 "', wanted HOST:PORT or unix:PATH");
  }
  const absl::string_view host = address.substr(0, colon);
  const bool is_loopback =
      host == "localhost" || host == "[::1]" || absl::StartsWith(host, "127.");
  if (is_loopback || allow_remote) return absl::OkStatus();
  return core::InvalidArgument(
      "LISTEN_NEEDS_TLS", "--listen=", address,
      " would serve other machines without TLS; listen on localhost or "
      "unix:PATH, or say --insecure to allow it");
}

std::variant<Options, int> ParseOptions(int argc, const char* const* argv) {
  Options options;
  std::string devices = "auto";
  std::string log_level = "info";
  double lease_seconds = absl::ToDoubleSeconds(options.sessions.default_lease);
  double drain_seconds = absl::ToDoubleSeconds(options.drain_timeout);
  double plan_store_seconds =
      absl::ToDoubleSeconds(options.plan_store_interval);
  double plan_exchange_seconds =
      absl::ToDoubleSeconds(options.plan_exchange_interval);
  std::string password_file;

  CLI::App app("tensord, a tensor-compute server", "tensord");
  app.set_version_flag("--version", std::string(kVersion));
  app.set_config("--config", "", "Read flags from this TOML file");
  app.option_defaults()->always_capture_default();
  app.add_option("--listen", options.listen,
                 "Where to listen: HOST:PORT (port 0: any) or unix:PATH; may "
                 "be repeated");
  app.add_flag("--insecure", options.allow_insecure_remote,
               "Allow --listen beyond loopback, without TLS");
  app.add_option("--devices", devices,
                 "Devices to use: auto, or cpu, cuda, cuda:0, ... with commas "
                 "between; the first is the default")
      ->check([](const std::string& value) {
        return std::string(ParseDevices(value).status().message());
      });
  app.add_option("--cuda-module", options.engine.cuda_module,
                 "The CUDA backend's library; default: the one installed with "
                 "the server");
  app.add_option("--threads", options.engine.cpu_threads,
                 "Threads for CPU kernels; 0: one a core")
      ->check(CLI::Range(0, 4096));
  app.add_option("--memory-limit-bytes", options.engine.memory_limit_bytes,
                 "Memory for tensors and workspace, e.g. 16GiB; 0: three "
                 "quarters of the device's, less where that leaves the host "
                 "no GiB")
      ->transform(ByteSize());
  app.add_option("--staging-limit-bytes", options.engine.staging_limit_bytes,
                 "Pinned host memory for transfers and copies of each GPU, "
                 "e.g. 2GiB; 0: together an eighth of the host's")
      ->transform(ByteSize());
  app.add_option("--session-quota-bytes", options.sessions.quota_bytes,
                 "Most memory of one session, e.g. 4GiB; 0: all there is")
      ->transform(ByteSize());
  app.add_option("--max-sessions", options.sessions.max_sessions,
                 "Most sessions at a time")
      ->check(PositiveNumber());
  app.add_option("--lease-seconds", lease_seconds,
                 "Lease of a session that asks for none")
      ->check(CLI::Range(1.0, 86400.0));
  app.add_option("--queue-limit", options.engine.queue_limit,
                 "Most operations of one session that wait for its device")
      ->check(PositiveNumber());
  app.add_option("--plan-cache-entries", options.engine.plan_cache_entries,
                 "Most plans to keep")
      ->check(PositiveNumber());
  app.add_option("--plan-cache-bytes", options.engine.plan_cache_bytes,
                 "Most memory for plans, e.g. 1GiB")
      ->transform(ByteSize())
      ->check(PositiveNumber());
  app.add_option("--plan-store", options.plan_store,
                 "File that keeps plans from one run to the next; without it "
                 "they are forgotten");
  app.add_option("--plan-store-interval-seconds", plan_store_seconds,
                 "How often the file is written; it also is when the server "
                 "stops")
      ->check(CLI::Range(1.0, 86400.0));
  app.add_option("--plan-exchange", options.plan_exchange,
                 "Redis through which servers share plans: HOST:PORT or "
                 "unix:PATH; without it they do not");
  app.add_option("--plan-exchange-password-file", password_file,
                 "File with its password")
      ->check(CLI::ExistingFile);
  app.add_option("--plan-exchange-interval-seconds", plan_exchange_seconds,
                 "How often plans are sent and received")
      ->check(CLI::Range(0.1, 86400.0));
  app.add_option("--rpc-threads", options.loop_count,
                 "Threads that serve connections: the first takes calls, the "
                 "others uploads and downloads")
      ->check(CLI::Range(1, 256));
  app.add_option("--drain-timeout-seconds", drain_seconds,
                 "How long running calls may take after SIGTERM")
      ->check(CLI::Range(0.0, 3600.0));
  app.add_option("--log-level", log_level, "Least level of the log")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);
    return status == 0 ? 0 : 2;
  }
  options.sessions.default_lease = absl::Seconds(lease_seconds);
  options.drain_timeout = absl::Seconds(drain_seconds);
  options.plan_store_interval = absl::Seconds(plan_store_seconds);
  options.plan_exchange_interval = absl::Seconds(plan_exchange_seconds);
  if (!password_file.empty()) {
    std::ifstream file(password_file);
    std::getline(file, options.plan_exchange_password);
  }
  options.engine.devices = *ParseDevices(devices);
  options.log_level = *LogLevelFromName(log_level);
  for (const std::string& address : options.listen) {
    const absl::Status valid =
        ValidateListen(address, options.allow_insecure_remote);
    if (!valid.ok()) {
      app.exit(CLI::ValidationError(std::string(valid.message())));
      return 2;
    }
  }
  return options;
}

}  // namespace tensord::server
