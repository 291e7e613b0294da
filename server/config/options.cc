#include "server/config/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/nearest.h"
#include "core/base/status.h"
#include "core/base/version.h"
#include "server/config/configuration.h"
#include "server/identity/file_watch.h"
#include "server/identity/tenants.h"

namespace tensord::server {
namespace {

/// Below it there is no room for one small operation and what it needs.
constexpr int64_t kLeastMemoryBytes = int64_t{1} << 20;

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

/// As CLI11's own, which lets "nan" pass.
CLI::Validator Within(double least, double most) {
  return {[least, most](std::string& text) -> std::string {
            double number = 0;
            return absl::SimpleAtod(text, &number) && number >= least &&
                           number <= most
                       ? ""
                       : absl::StrCat("'", text, "' is not a number of ", least,
                                      " to ", most);
          },
          absl::StrCat("[", least, " - ", most, "]")};
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

/// Of a size in bytes: so much, or 0, which stands for something else.
CLI::Validator AtLeast(int64_t least_bytes) {
  return {[least_bytes](const std::string& text) -> std::string {
            int64_t bytes = 0;
            if (!absl::SimpleAtoi(text, &bytes)) return "";
            if (bytes == 0 || bytes >= least_bytes) return "";
            return absl::StrCat(bytes, " bytes are too few, wanted at least ",
                                least_bytes, ", or 0");
          },
          ""};
}

CLI::Validator ReadableFile() {
  return {[](std::string& path) -> std::string {
            std::ifstream file(path);
            return file.is_open() && file.peek() != EOF
                       ? ""
                       : "'" + path + "' is no file with something to read";
          },
          "FILE"};
}

/// Weights by job, from "a=3,b=0.5".
/// Errors  INVALID_ARGUMENT.
absl::StatusOr<std::map<std::string, double>> ParseWeights(
    absl::string_view text) {
  std::map<std::string, double> weights;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(item, absl::MaxSplits('=', 1));
    double weight = 0;
    if (parts.first.empty() || !absl::SimpleAtod(parts.second, &weight) ||
        !(weight >= 1e-3 && weight <= 1e3)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", item,
                       "' is no job with its weight, wanted JOB=WEIGHT, 0.001 "
                       "to 1000"));
    }
    if (!weights.emplace(parts.first, weight).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("job '", parts.first, "' has two weights"));
    }
  }
  return weights;
}

/// Permissions, in octal digits.
std::optional<int> ParseMode(const std::string& text) {
  int mode = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (error != std::errc() || end != text.data() + text.size() || mode < 1 ||
      mode > 0777) {
    return std::nullopt;
  }
  return mode;
}

/// An empty value would leave something unguarded that was to be guarded.
CLI::Validator Named() {
  return {[](std::string& text) -> std::string {
            return text.empty() ? "no file is named" : "";
          },
          "FILE"};
}

/// What is wrong with flags that belong together; OK: nothing.
absl::Status CheckIdentity(const Options& options) {
  const auto together = [](absl::string_view flag, bool is_given,
                           absl::string_view needed, bool is_there) {
    return !is_given || is_there
               ? absl::OkStatus()
               : core::InvalidArgument("FLAG_MISSING", flag, " needs ", needed);
  };
  const CertificateFiles& tls = options.tls;
  const Authenticator::Options& identity = options.identity;
  TENSORD_RETURN_IF_ERROR(together("--tls-certificate",
                                   !tls.certificate.empty(), "--tls-key",
                                   !tls.key.empty()));
  TENSORD_RETURN_IF_ERROR(together("--tls-key", !tls.key.empty(),
                                   "--tls-certificate",
                                   !tls.certificate.empty()));
  TENSORD_RETURN_IF_ERROR(together("--tls-client-ca", !tls.client_ca.empty(),
                                   "--tls-certificate",
                                   !tls.certificate.empty()));
  TENSORD_RETURN_IF_ERROR(together("--operators", !identity.operators.empty(),
                                   "--tls-client-ca", !tls.client_ca.empty()));
  const bool takes_jwts = !identity.jwt_keys.empty();
  TENSORD_RETURN_IF_ERROR(together("--jwt-keys", takes_jwts, "--jwt-issuer",
                                   !identity.jwt_rules.issuer.empty()));
  TENSORD_RETURN_IF_ERROR(together("--jwt-keys", takes_jwts, "--jwt-audience",
                                   !identity.jwt_rules.audience.empty()));
  TENSORD_RETURN_IF_ERROR(together("--jwt-issuer",
                                   !identity.jwt_rules.issuer.empty(),
                                   "--jwt-keys", takes_jwts));
  return together("--jwt-audience", !identity.jwt_rules.audience.empty(),
                  "--jwt-keys", takes_jwts);
}

/// A flag that is a number of seconds.
CLI::Option* AddSeconds(CLI::App& app, const std::string& name,
                        absl::Duration& duration, const std::string& help) {
  return app
      .add_option_function<double>(
          name,
          [&duration](double seconds) { duration = absl::Seconds(seconds); },
          help)
      ->default_str(absl::StrCat(absl::ToDoubleSeconds(duration)));
}

/// The flags of one topic each, which set what they are given.
void AddListenFlags(CLI::App& app, Options& options) {
  app.add_option(
      "--listen", options.listen,
      "Where to listen: HOST:PORT (port 0: any), unix:PATH, or "
      "systemd, for the sockets that it has passed; may be repeated");
  app.add_option_function<std::string>(
         "--shared-memory",
         [&options](const std::string& text) {
           options.takes_shared_memory = text == "auto";
         },
         "Whether clients on the same host may bring memory of theirs that the "
         "server works on in place: auto, beside Unix sockets and loopback "
         "addresses, or off")
      ->check(CLI::IsMember({"auto", "off"}))
      ->default_str("auto");
  app.add_flag("--insecure", options.allow_insecure_remote,
               "Allow --listen and --metrics-listen beyond loopback, without "
               "TLS");
}

void AddIdentityFlags(CLI::App& app, Options& options) {
  app.add_option("--tls-certificate", options.tls.certificate,
                 "PEM file with the server's certificate and those that lead "
                 "to its authority; TCP addresses speak TLS then")
      ->check(Named());
  app.add_option("--tls-key", options.tls.key, "PEM file with its key")
      ->check(Named());
  app.add_option("--tls-client-ca", options.tls.client_ca,
                 "PEM file with authorities whose clients are let in; without "
                 "tokens or JWTs, a certificate is required")
      ->check(Named());
  app.add_option("--operators", options.identity.operators,
                 "Names of certificates of operators, common names or URIs "
                 "with commas between; where other machines are served, no "
                 "certificate is one's that nobody names")
      ->delimiter(',')
      ->check([](const std::string& text) {
        return text.empty() ? "no certificate is named" : "";
      });
  app.add_option("--tokens", options.identity.tokens,
                 "File of the tokens that clients may bring, made by tensorctl "
                 "token")
      ->check(Named());
  app.add_option("--jwt-keys", options.identity.jwt_keys,
                 "JWKS file with the keys that sign JSON Web Tokens, RS256 or "
                 "ES256, with the claims tenant and role")
      ->check(Named());
  app.add_option("--jwt-issuer", options.identity.jwt_rules.issuer,
                 "Their iss");
  app.add_option("--jwt-audience", options.identity.jwt_rules.audience,
                 "Their aud");
  app.add_option("--tenants", options.tenants,
                 "TOML file with [tenant.NAME]: certificates, operators, "
                 "weight, priority, sessions, and [operators]; read again when "
                 "it changes")
      ->check(Named());
  app.add_option("--admin-listen", options.admin_listen,
                 "Where to serve operators, as --listen, which serves what "
                 "they ask no more, nor reflection; may be repeated");
  app.add_option_function<std::string>(
         "--socket-mode",
         [&options](const std::string& text) {
           options.socket_mode = *ParseMode(text);
         },
         "Permissions of Unix sockets, e.g. 0660; default: as the umask says")
      ->check([](const std::string& text) {
        return ParseMode(text)
                   ? std::string()
                   : "'" + text + "' is no mode, wanted 0001 to 0777";
      });
}

void AddDeviceFlags(CLI::App& app, EngineOptions& engine) {
  app.add_option_function<std::string>(
         "--devices",
         [&engine](const std::string& text) {
           engine.devices = *ParseDevices(text);
         },
         "Devices to use: auto, or cpu, cuda, cuda:0, ... with commas between; "
         "the first is the default")
      ->check([](const std::string& text) {
        return std::string(ParseDevices(text).status().message());
      })
      ->default_str("auto");
  app.add_option("--cuda-module", engine.cuda_module,
                 "The CUDA backend's library; default: the one installed with "
                 "the server");
  app.add_flag("--require-gpu", engine.requires_gpu,
               "Do not start without a GPU");
  app.add_option("--threads", engine.cpu_threads,
                 "Threads for CPU kernels; 0: one a core")
      ->check(CLI::Range(0, 4096));
  app.add_option("--memory-limit-bytes", engine.memory_limit_bytes,
                 "Memory for tensors and workspace, e.g. 16GiB; 0: three "
                 "quarters of the device's, less where that leaves the host "
                 "no GiB")
      ->transform(ByteSize())
      ->check(AtLeast(kLeastMemoryBytes));
  app.add_option("--staging-limit-bytes", engine.staging_limit_bytes,
                 "Pinned host memory for transfers and copies of each GPU, and "
                 "half as much again for regions of its clients, e.g. 2GiB; 0: "
                 "together an eighth of the host's")
      ->transform(ByteSize());
}

void AddSessionFlags(CLI::App& app, Options& options) {
  app.add_option("--session-quota-bytes", options.sessions.quota_bytes,
                 "Most memory of one session, e.g. 4GiB; 0: all there is")
      ->transform(ByteSize());
  app.add_option("--max-connections", options.max_connections,
                 "Most connections at a time; fewer where the system lets the "
                 "process have fewer files")
      ->check(PositiveNumber());
  app.add_option("--max-connections-per-peer", options.max_connections_per_peer,
                 "Most connections of one address, network of IPv6, or user of "
                 "Unix sockets")
      ->check(PositiveNumber());
  app.add_option("--max-sessions", options.sessions.max_sessions,
                 "Most sessions at a time")
      ->check(PositiveNumber());
  app.add_option("--max-sessions-per-peer",
                 options.sessions.max_sessions_per_peer,
                 "Most sessions of one identity whose tenant has no limit of "
                 "its own or, where nobody is asked who they are, of one user "
                 "of Unix sockets or address; 0: a quarter of all")
      ->check(CLI::NonNegativeNumber);
  app.add_option(
         "--max-tensors-per-session",
         options.sessions.session_host[static_cast<int>(HostUse::kTensors)]
             .count,
         "Most tensors of one session, empty ones and views too")
      ->check(PositiveNumber());
  app.add_option("--host-limit-bytes", options.sessions.host_bytes,
                 "Host memory for all but the contents of tensors: what is "
                 "known of them, plans, programs, waiting requests, "
                 "snapshots; e.g. 2GiB; 0: an eighth of the host's")
      ->transform(ByteSize());
  AddSeconds(app, "--lease-seconds", options.sessions.default_lease,
             "Lease of a session that asks for none")
      ->check(Within(1.0, 86400.0));
  app.add_option("--max-priority", options.sessions.max_priority,
                 "Highest priority that a session may ask for, among those of "
                 "its job")
      ->check(CLI::Range(0, 9));
  app.add_option_function<std::string>(
         "--job-weights",
         [&options](const std::string& text) {
           options.engine.weights = *ParseWeights(text);
         },
         "How jobs share a device's time, e.g. a=3,b=1; others have weight 1")
      ->check([](const std::string& text) {
        return std::string(ParseWeights(text).status().message());
      });
  AddSeconds(app, "--max-operation-seconds", options.engine.longest_operation,
             "An operation or program that is predicted to take longer is "
             "refused")
      ->check(Within(0.001, 1e9));
  app.add_option("--queue-limit", options.engine.queue_limit,
                 "Most operations of one session that wait for its device")
      ->check(PositiveNumber());
}

void AddPlanFlags(CLI::App& app, Options& options) {
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
  AddSeconds(app, "--plan-store-interval-seconds", options.plan_store_interval,
             "How often the file is written; it also is when the server stops")
      ->check(Within(1.0, 86400.0));
  app.add_option("--plan-exchange", options.plan_exchange,
                 "Redis through which servers share plans: HOST:PORT or "
                 "unix:PATH; without it they do not");
  app.add_option_function<std::string>(
         "--plan-exchange-password-file",
         [&options](const std::string& path) {
           std::ifstream file(path);
           std::getline(file, options.plan_exchange_password);
         },
         "File with its password")
      ->check(ReadableFile());
  AddSeconds(app, "--plan-exchange-interval-seconds",
             options.plan_exchange_interval,
             "How often plans are sent and received")
      ->check(Within(0.1, 86400.0));
}

void AddServingFlags(CLI::App& app, Options& options) {
  app.add_option("--rpc-threads", options.loop_count,
                 "Threads that serve connections: the first takes calls, the "
                 "others uploads and downloads")
      ->check(CLI::Range(1, 256));
  AddSeconds(app, "--transfer-idle-seconds", options.transfer_idle,
             "How long a call waits for a client that does nothing: sends no "
             "request, no data of an upload, or takes no answer")
      ->check(Within(0.1, 86400.0));
  AddSeconds(app, "--stream-idle-seconds", options.stream_idle,
             "How long a stream of operations waits for a client that asks for "
             "nothing")
      ->check(Within(1.0, 86400.0));
  AddSeconds(
      app, "--drain-timeout-seconds", options.drain_timeout,
      "How long running calls may take after SIGTERM; the process ends a "
      "second later at most")
      ->check(Within(0.0, 3600.0));
  app.add_option_function<bool>(
         "--exit-on-device-loss",
         [&options](bool exits) { options.exit_on_device_loss = exits; },
         "End, with status 3, when a device is lost, so that whoever watches "
         "the process starts it anew; default: with one accelerator at most")
      ->default_str("");
  app.add_option_function<std::string>(
         "--log-level",
         [&options](const std::string& name) {
           options.log_level = *LogLevelFromName(name);
         },
         "Least level of the log")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->default_str("info");
  app.add_option_function<std::string>(
         "--log-format",
         [&options](const std::string& name) {
           options.log_format =
               name == "json" ? LogFormat::kJson : LogFormat::kText;
         },
         "How its lines are written: text, or json, an object a line")
      ->check(CLI::IsMember({"text", "json"}))
      ->default_str("text");
  app.add_option("--audit-log", options.audit_log,
                 "File that lines of the audit log are added to, instead of "
                 "standard error; SIGHUP has it opened anew")
      ->check(Named());
}

void AddMonitoringFlags(CLI::App& app, MonitoringOptions& monitoring) {
  app.add_option("--metrics-listen", monitoring.metrics,
                 "Where to serve metrics and probes over HTTP: HOST:PORT (port "
                 "0: any); without it nowhere");
  app.add_option("--metrics-tls-certificate", monitoring.tls.certificate,
                 "Certificate of that address, with its chain, in PEM")
      ->check(ReadableFile());
  app.add_option("--metrics-tls-key", monitoring.tls.key, "Its key, in PEM")
      ->check(ReadableFile());
  app.add_option("--metrics-token-file", monitoring.token_file,
                 "File whose first line metrics are shown for, as a bearer "
                 "token; without it they are for everybody")
      ->check(ReadableFile());
  app.add_option("--probe-listen", monitoring.probes,
                 "Where to serve probes alone, without TLS and token: "
                 "HOST:PORT");
}

void AddTraceFlags(CLI::App& app, TraceOptions& traces) {
  app.add_option("--otlp", traces.collector,
                 "Where to send traces: an OpenTelemetry collector that takes "
                 "OTLP over gRPC, HOST:PORT or unix:PATH; without it nowhere");
  app.add_option("--trace-sample", traces.ratio,
                 "Share of the calls to trace whose caller does not say "
                 "whether to, by traceparent")
      ->check(Within(0.0, 1.0));
}

/// What is no key of a file.
struct Verbs {
  std::string file;
  bool prints = false;
  bool checks = false;
};

void AddVerbs(CLI::App& app, Verbs& verbs) {
  app.add_option("--config", verbs.file, "TOML file with options")
      ->envname("TENSORD_CONFIG")
      ->configurable(false);
  app.add_flag("--print-config", verbs.prints,
               "Print all options in TOML, each with its origin, and exit")
      ->configurable(false);
  app.add_flag("--check-config", verbs.checks,
               "Exit, with status 2 if an option is wrong")
      ->configurable(false);
}

/// Errors  exceptions of CLI11; so below.
void Parse(CLI::App& app, int argc, const char* const* argv) {
  app.allow_extras();
  app.parse(argc, argv);
  const std::vector<std::string> unknown = app.remaining();
  if (unknown.empty()) return;
  const std::string flag = unknown.front().substr(0, unknown.front().find('='));
  std::vector<std::string> known;
  for (const CLI::Option* const option : app.get_options()) {
    known.push_back(absl::StrCat("--", option->get_lnames().front()));
  }
  const std::string nearest = core::Nearest(flag, known);
  throw CLI::ValidationError(absl::StrCat(
      "unknown flag '", flag, "'",
      nearest.empty() ? "" : absl::StrCat(", did you mean '", nearest, "'?")));
}

void Throw(const absl::Status& status) {
  if (status.ok()) return;
  const std::string reason = core::ReasonOf(status);
  throw CLI::ValidationError(absl::StrCat(status.message(),
                                          reason.empty() ? "" : " [", reason,
                                          reason.empty() ? "" : "]"));
}

/// The same for HTTP, which knows no Unix sockets.
void CheckHttp(absl::string_view flag, const std::string& address,
               bool allow_remote) {
  if (address.empty()) return;
  if (absl::StartsWith(address, "unix:")) {
    throw CLI::ValidationError(
        absl::StrCat(flag, " is '", address, "', wanted HOST:PORT"));
  }
  Throw(ValidateListen(flag, address, allow_remote));
}

void Check(const MonitoringOptions& monitoring, bool allow_remote) {
  if (monitoring.tls.certificate.empty() != monitoring.tls.key.empty()) {
    throw CLI::ValidationError(
        "--metrics-tls-certificate and --metrics-tls-key are wanted together");
  }
  const bool has_tls = !monitoring.tls.certificate.empty();
  CheckHttp("--metrics-listen", monitoring.metrics, allow_remote || has_tls);
  CheckHttp("--probe-listen", monitoring.probes, /*allow_remote=*/true);
}

/// What follows from several options.
void Finish(Options& options) {
  // More than may be queued: that many say QUEUE_FULL.
  int64_t& requests =
      options.sessions.session_host[static_cast<int>(HostUse::kRequests)].count;
  requests = std::max(requests, 2 * options.engine.queue_limit);
  options.identity.takes_certificates = !options.tls.client_ca.empty();
  Throw(CheckIdentity(options));
  const Authenticator::Options& identity = options.identity;
  const bool asks = identity.takes_certificates || !identity.tokens.empty() ||
                    !identity.jwt_keys.empty();
  options.allows_remote = options.allow_insecure_remote ||
                          (!options.tls.certificate.empty() && asks);
  for (const std::string& address : options.listen) {
    // What is passed is looked at when it is there.
    if (address == kListenSystemd) continue;
    Throw(ValidateListen("--listen", address, options.allows_remote));
  }
  for (const std::string& address : options.admin_listen) {
    Throw(ValidateListen("--admin-listen", address, options.allows_remote));
  }
  const auto serves_others = [&](const std::string& address) {
    return address == kListenSystemd ? options.allows_remote
                                     : !IsOfThisMachine(address);
  };
  options.identity.serves_others =
      std::ranges::any_of(options.listen, serves_others) ||
      std::ranges::any_of(options.admin_listen, serves_others);
  Check(options.monitoring, options.allow_insecure_remote);
  if (!options.traces.collector.empty()) {
    Throw(ValidateListen("--otlp", options.traces.collector,
                         /*allow_remote=*/true));
  }
}

/// Whether what says who asks can be read.
void CheckFiles(const Options& options) {
  for (const CertificateFiles& files : {options.tls, options.monitoring.tls}) {
    if (!files.certificate.empty()) Throw(Certificates::Load(files).status());
  }
  Throw(Authenticator::Create(options.identity).status());
  if (options.tenants.empty()) return;
  const absl::StatusOr<std::string> text = ReadFile(options.tenants);
  Throw(text.status());
  Throw(ParseTenants(options.tenants, *text).status());
}

}  // namespace

std::variant<Options, int> ParseOptions(int argc, const char* const* argv,
                                        const char* const* environment) {
  Options options;
  CLI::App app("tensord, a tensor-compute server", "tensord");
  app.footer(
      "Each flag is a variable, too (--max-sessions: TENSORD_MAX_SESSIONS), "
      "and a key of\nthe TOML file (max-sessions); flags go before variables, "
      "those before the file.");
  app.set_version_flag("--version", std::string(core::kVersion));
  app.option_defaults()->always_capture_default();
  Verbs verbs;
  AddVerbs(app, verbs);
  AddListenFlags(app, options);
  AddIdentityFlags(app, options);
  AddDeviceFlags(app, options.engine);
  AddSessionFlags(app, options);
  AddPlanFlags(app, options);
  AddServingFlags(app, options);
  AddMonitoringFlags(app, options.monitoring);
  AddTraceFlags(app, options.traces);
  try {
    Parse(app, argc, argv);
    Configuration configuration(app);
    configuration.ReadEnvironment(environment);
    if (!verbs.file.empty()) configuration.ReadFile(verbs.file);
    Finish(options);
    if (verbs.checks) CheckFiles(options);
    if (verbs.prints) std::cout << configuration.ToToml();
    options.settings = configuration.Settings();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (verbs.prints || verbs.checks) return 0;
  return options;
}

}  // namespace tensord::server
