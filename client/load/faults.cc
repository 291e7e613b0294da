#include "client/load/faults.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "tensord/element_type.h"
#include "tensord/layout.h"
#include "tensord/remote_tensor.h"
#include "tensord/session.h"
#include "tensord/status.h"

namespace tensord::load {
namespace {

constexpr int kMostClients = 1000;
/// More than connections hold by themselves.
constexpr int64_t kBytes = int64_t{32} << 20;
constexpr absl::Duration kPause = absl::Milliseconds(250);
constexpr absl::Duration kStill = absl::Seconds(40);
constexpr absl::Duration kGraceOfFaults = absl::Seconds(5);
/// Exit codes of UploadAndDie(): this and the number of a status code.
constexpr int kExitCodes = 64;

absl::StatusOr<Session> Connect(const FaultTarget& target) {
  SessionOptions options;
  options.transport = Transport::kGrpc;  // whose streams break off
  options.job = "tensord-load-faults";
  options.device = target.device;
  options.lease = absl::Seconds(10);
  options.deadline = absl::Seconds(10);
  options.credentials = target.credentials;
  return Session::Connect(target.address, options);
}

absl::StatusOr<RemoteTensor> Upload(Session& session, Progress progress) {
  const std::vector<std::byte> bytes(kBytes);
  UploadOptions options;
  options.progress = std::move(progress);
  return session.Upload(
      UntypedHostView{ElementType::kUint8, bytes.data(), {{kBytes}, {}}},
      options);
}

constexpr std::pair<std::string_view, FaultKind> kNames[] = {
    {"kill-upload", FaultKind::kKillUpload},
    {"slow-reader", FaultKind::kSlowReader}};

/// Runs this program as a client that dies. OK: it did.
absl::Status RunDyingUpload(const FaultTarget& target) {
  std::vector<std::string> words = {"/proc/self/exe", "--die-in-upload"};
  const std::pair<const char*, const std::string&> options[] = {
      {"--address=", target.address},
      {"--device=", target.device},
      {"--ca=", target.credentials.ca},
      {"--cert=", target.credentials.cert},
      {"--key=", target.credentials.key},
      {"--token-file=", target.credentials.token_file}};
  for (const auto& [name, value] : options) {
    if (!value.empty()) words.push_back(absl::StrCat(name, value));
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawn(&child, words[0].c_str(), nullptr, nullptr,
                                arguments.data(), environ);
  if (error != 0) {
    return absl::ErrnoToStatus(error, "cannot start a client to kill");
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return absl::OkStatus();
  const int code = WEXITSTATUS(status) - kExitCodes;
  return absl::Status(static_cast<absl::StatusCode>(code),
                      "the client could not upload");
}

}  // namespace

std::string ToString(FaultKind kind) {
  return kind == FaultKind::kKillUpload ? "kill_upload" : "slow_reader";
}

absl::StatusOr<std::vector<FaultSpec>> ParseFaults(const std::string& text) {
  std::vector<FaultSpec> specs;
  const std::vector<std::string> items = absl::StrSplit(text, ',');
  for (const std::string& item : items) {
    const size_t equals = item.find('=');
    FaultSpec spec{};
    bool is_known = false;
    for (const auto& [name, kind] : kNames) {
      if (item.substr(0, equals) != name) continue;
      spec.kind = kind;
      is_known = true;
    }
    if (equals != std::string::npos &&
        !absl::SimpleAtoi(item.substr(equals + 1), &spec.count)) {
      spec.count = 0;
    }
    if (!is_known || spec.count < 1 || spec.count > kMostClients) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--faults has '", item,
          "', wanted kill-upload or slow-reader, with a number of clients up "
          "to ",
          kMostClients, " if not 4, e.g. kill-upload,slow-reader=16"));
    }
    specs.push_back(spec);
  }
  return specs;
}

Faults::Faults(const std::vector<FaultSpec>& specs, FaultTarget target)
    : target_(std::move(target)),
      workers_(static_cast<int>(std::size(kNames)) * kMostClients) {
  for (const FaultSpec& spec : specs) {
    counts_[spec.kind];
    for (int i = 0; i < spec.count; ++i) {
      workers_.TryRun([this, kind = spec.kind] {
        kind == FaultKind::kKillUpload ? KillUploads() : StopReading();
      });
    }
  }
}

bool Faults::Stop() {
  stopping_.Notify();
  return workers_.AwaitIdle(kGraceOfFaults);
}

std::map<FaultKind, FaultCounts> Faults::counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

void Faults::KillUploads() {
  while (!stopping_.WaitForNotificationWithTimeout(kPause)) {
    const absl::Status status = RunDyingUpload(target_);
    Note(FaultKind::kKillUpload, status,
         status.ok() ? &FaultCounts::begun : &FaultCounts::refused);
  }
}

void Faults::StopReading() {
  while (!stopping_.WaitForNotificationWithTimeout(kPause)) {
    absl::StatusOr<Session> session = Connect(target_);
    absl::StatusOr<RemoteTensor> tensor =
        session.ok() ? Upload(*session, nullptr) : session.status();
    if (!tensor.ok()) {
      Note(FaultKind::kSlowReader, tensor.status(), &FaultCounts::refused);
      continue;
    }
    std::vector<std::byte> bytes(kBytes);
    DownloadOptions options;
    options.deadline = 2 * kStill;
    bool has_stopped = false;
    options.progress = [&](int64_t, int64_t) {
      if (std::exchange(has_stopped, true)) return;
      Note(FaultKind::kSlowReader, absl::OkStatus(), &FaultCounts::begun);
      stopping_.WaitForNotificationWithTimeout(kStill);
    };
    const absl::Status status =
        tensor->DownloadTo(ElementType::kUint8, bytes, options);
    if (!status.ok()) {
      Note(FaultKind::kSlowReader, status,
           has_stopped ? &FaultCounts::ended : &FaultCounts::refused);
    }
  }
}

void Faults::Note(FaultKind kind, const absl::Status& status,
                  int64_t FaultCounts::*which) {
  absl::MutexLock lock(&mutex_);
  FaultCounts& counts = counts_[kind];
  ++(counts.*which);
  if (status.ok()) return;
  ErrorCount& error =
      counts
          .errors[{absl::StatusCodeToString(status.code()), ReasonOf(status)}];
  if (error.count++ == 0) error.example = std::string(status.message());
}

int UploadAndDie(const FaultTarget& target) {
  absl::StatusOr<Session> session = Connect(target);
  const absl::Status status = session.ok()
                                  ? Upload(*session,
                                           [](int64_t done, int64_t total) {
                                             if (2 * done >= total)
                                               kill(getpid(), SIGKILL);
                                           })
                                        .status()
                                  : session.status();
  return kExitCodes + static_cast<int>(status.code());
}

}  // namespace tensord::load
