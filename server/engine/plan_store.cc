#include "server/engine/plan_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status.h"
#include "core/plan/plan_snapshot.h"

namespace tensord::server {
namespace {

absl::Status Failed(absl::string_view what, const std::string& path) {
  return core::Error(
      absl::StatusCode::kUnavailable, "PLAN_STORE_FAILED",
      absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(errno)));
}

/// All bytes of a file; nothing when there is none.
absl::StatusOr<std::optional<std::string>> ReadFile(const std::string& path) {
  // Without waiting: it may be a pipe.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0 && errno == ENOENT) return std::nullopt;
  if (file < 0) return Failed("open", path);
  const absl::Cleanup close_file = [file] { close(file); };
  struct stat info;
  if (fstat(file, &info) != 0) return Failed("read", path);
  if (!S_ISREG(info.st_mode) || info.st_size > kMaxSnapshotBytes) {
    return core::Error(absl::StatusCode::kUnavailable, "PLAN_STORE_FAILED",
                       absl::StrCat(path, " is not a file of at most ",
                                    kMaxSnapshotBytes, " bytes"));
  }
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = read(file, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failed("read", path);
    if (count == 0) break;  // It became shorter: the snapshot will show it.
    done += static_cast<size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

absl::Status WriteAll(int file, absl::string_view bytes,
                      const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failed("write", path);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  // Before its name: else a crash could leave the name and no contents.
  return fsync(file) == 0 ? absl::OkStatus() : Failed("write", path);
}

/// Puts `bytes` in place of the file, as a whole.
absl::Status ReplaceFile(const std::string& path, absl::string_view bytes) {
  // One name, so that what a killed process left behind is overwritten.
  const std::string temporary = absl::StrCat(path, ".saving");
  const int file =
      open(temporary.c_str(),
           O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (file < 0) return Failed("create", temporary);
  absl::Status status = WriteAll(file, bytes, temporary);
  if (close(file) != 0) status.Update(Failed("write", temporary));
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = Failed("rename to", path);
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  // So that the name is on the disk, too.
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "."
                             : slash == 0               ? "/"
                                                        : path.substr(0, slash);
  const int directory = open(folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (directory < 0) return Failed("open", folder);
  const absl::Cleanup close_directory = [directory] { close(directory); };
  return fsync(directory) == 0 ? absl::OkStatus() : Failed("write", folder);
}

/// Renames a file that cannot be taken in. Returns its new name.
absl::StatusOr<std::string> PutAside(const std::string& path) {
  const std::string aside = absl::StrCat(
      path, ".refused-",
      absl::FormatTime("%Y%m%dT%H%M%E6S", absl::Now(), absl::UTCTimeZone()));
  if (rename(path.c_str(), aside.c_str()) != 0) return Failed("rename", path);
  return aside;
}

}  // namespace

Snapshot MakeSnapshot(const core::PlanCache& cache, absl::string_view writer) {
  core::SnapshotWriter snapshot(writer);
  int64_t count = 0;
  cache.Export([&](absl::string_view record) {
    snapshot.Add(record);
    ++count;
  });
  return {std::move(snapshot).Finish(), count};
}

absl::StatusOr<LoadedSnapshot> LoadSnapshot(absl::string_view bytes,
                                            core::PlanCache& cache) {
  std::vector<absl::string_view> records;
  TENSORD_ASSIGN_OR_RETURN(
      core::SnapshotInfo info,
      core::ReadSnapshot(
          bytes, [&](absl::string_view record) { records.push_back(record); }));
  LoadedSnapshot loaded{std::move(info.writer), std::ssize(records), 0};
  for (const absl::string_view record : records) {
    loaded.taken_count += cache.AddRecord(std::string(record));
  }
  return loaded;
}

PlanStore::PlanStore(Options options, core::PlanCache& cache, Report report)
    : options_(std::move(options)), cache_(cache), report_(std::move(report)) {
  Load();
  thread_ = std::thread([this] { Run(); });
}

PlanStore::~PlanStore() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  thread_.join();
}

void PlanStore::Load() {
  LoadedSnapshot loaded;
  absl::Status status;
  bool is_there = true, is_refused = false;
  auto bytes = ReadFile(options_.path);
  if (!bytes.ok()) {
    status = bytes.status();
  } else if (!bytes->has_value()) {
    is_there = false;
  } else {
    auto result = LoadSnapshot(**bytes, cache_);
    status = result.status();
    is_refused = !result.ok();
    if (result.ok()) loaded = *std::move(result);
  }
  // Only what was read, and is no snapshot of ours, goes out of the way.
  const bool keeps_file = !status.ok() && !is_refused;
  std::string outcome = "nothing will be saved in its place";
  if (is_refused) {
    const absl::StatusOr<std::string> aside = PutAside(options_.path);
    outcome = aside.ok() ? absl::StrCat("kept as ", *aside)
                         : std::string(aside.status().message());
  }
  if (!status.ok()) {
    status = core::Error(
        status.code(), core::ReasonOf(status),
        absl::StrCat("the plan store ", options_.path,
                     " is not used: ", status.message(), "; ", outcome));
  }
  {
    absl::MutexLock lock(&mutex_);
    keeps_file_ = keeps_file;
    statistics_.loaded_count = loaded.taken_count;
    statistics_.error = std::string(status.message());
  }
  if (is_there) report_("plan_store_loaded", loaded.taken_count, status);
}

void PlanStore::Run() {
  absl::MutexLock lock(&mutex_);
  while (
      !mutex_.AwaitWithTimeout(absl::Condition(&closing_), options_.interval)) {
    mutex_.Unlock();
    Save().IgnoreError();  // It is reported, and in the statistics.
    mutex_.Lock();
  }
}

absl::Status PlanStore::Save() {
  absl::MutexLock one_at_a_time(&save_mutex_);
  int64_t count = 0;
  absl::Status status;
  bool keeps_file;
  {
    absl::MutexLock lock(&mutex_);
    keeps_file = keeps_file_;
  }
  if (keeps_file) {
    status = core::Error(absl::StatusCode::kUnavailable, "PLAN_STORE_FAILED",
                         absl::StrCat(options_.path,
                                      " is not overwritten: it "
                                      "could not be read at "
                                      "the start"));
  } else {
    const Snapshot snapshot = MakeSnapshot(cache_, options_.writer);
    count = snapshot.entry_count;
    status = ReplaceFile(options_.path, snapshot.bytes);
  }
  {
    absl::MutexLock lock(&mutex_);
    statistics_.error = std::string(status.message());
    if (status.ok()) {
      statistics_.saved_count = count;
      statistics_.saved_at = absl::Now();
    }
  }
  report_("plan_store_saved", count, status);
  return status;
}

PlanStore::Statistics PlanStore::statistics() const {
  absl::MutexLock lock(&mutex_);
  return statistics_;
}

}  // namespace tensord::server
