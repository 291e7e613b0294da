#include "server/identity/file_watch.h"

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace tensord::server {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(250);
constexpr std::streamsize kMaxBytes = 16 << 20;

/// Differs when the file does; "" where there is none.
std::string FingerprintOf(const std::string& path) {
  struct stat known;
  if (stat(path.c_str(), &known) != 0) return "";
  return absl::StrCat(known.st_dev, " ", known.st_ino, " ", known.st_size, " ",
                      known.st_mtim.tv_sec, " ", known.st_mtim.tv_nsec, " ",
                      known.st_ctim.tv_sec, " ", known.st_ctim.tv_nsec);
}

std::vector<std::string> FingerprintsOf(const std::vector<std::string>& paths) {
  std::vector<std::string> seen;
  for (const std::string& path : paths) seen.push_back(FingerprintOf(path));
  return seen;
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxBytes + 1, '\0');
  // A directory opens, and cannot be read.
  if (!file || (file.read(text.data(), std::ssize(text)), file.bad())) {
    return core::NotFound("FILE_UNREADABLE", path, ": ", std::strerror(errno));
  }
  if (file.gcount() > kMaxBytes) {
    return core::InvalidArgument("FILE_TOO_LARGE", path, ": wanted at most ",
                                 kMaxBytes, " bytes");
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

FileWatch::FileWatch(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    first_seen_.emplace(path, FingerprintOf(path));
  }
}

FileWatch::~FileWatch() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  ends_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void FileWatch::Add(std::vector<std::string> paths,
                    std::function<void()> changed) {
  std::vector<std::string> seen;
  for (const std::string& path : paths) {
    const auto first = first_seen_.find(path);
    seen.push_back(first == first_seen_.end() ? FingerprintOf(path)
                                              : first->second);
  }
  watched_.push_back({std::move(paths), std::move(seen), std::move(changed)});
}

void FileWatch::Start() {
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!ends_.wait_for(lock, kInterval, [this] { return is_ending_; })) {
      lock.unlock();
      Look();
      lock.lock();
    }
  });
}

void FileWatch::Look() {
  const bool reads_all = reads_all_.exchange(false);
  for (Watched& watched : watched_) {
    std::vector<std::string> seen = FingerprintsOf(watched.paths);
    if (seen == watched.seen && !reads_all) continue;
    watched.seen = std::move(seen);
    watched.changed();
  }
}

}  // namespace tensord::server
