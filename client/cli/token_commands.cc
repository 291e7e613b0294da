// token: the file of tokens that a server takes (its --tokens).
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/cli/commands.h"
#include "client/cli/json.h"
#include "client/cli/options.h"
#include "client/cli/text.h"
#include "core/base/status.h"
#include "server/identity/token_file.h"

namespace tensord::cli {
namespace {

using server::Token;

absl::Status FileError(const std::string& path, absl::string_view what) {
  return core::FailedPrecondition("TOKEN_FILE_UNUSABLE", "cannot ", what, " ",
                                  path, ": ", std::strerror(errno));
}

/// A file of tokens that nobody else of this program's kind changes meanwhile.
/// What others read is always whole: a new file takes the place of the old.
class TokenFile {
 public:
  TokenFile(const TokenFile&) = delete;
  ~TokenFile() {
    if (lock_ >= 0) close(lock_);
  }

  /// The file must be there unless `creates`.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(
      const std::string& path, bool creates) {
    // A link stays one: what it leads to is replaced.
    const std::unique_ptr<char, decltype(&free)> target(
        realpath(path.c_str(), nullptr), &free);
    std::unique_ptr<TokenFile> file(
        new TokenFile(target == nullptr ? path : target.get()));
    // The file itself is replaced, so its lock is another one.
    const std::string lock = file->path_ + ".lock";
    file->lock_ = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file->lock_ < 0 || flock(file->lock_, LOCK_EX) != 0) {
      return FileError(lock, "lock");
    }
    TENSORD_RETURN_IF_ERROR(file->Read(creates));
    return file;
  }

  const std::string& text() const { return text_; }

  absl::Status Replace(const std::string& text) const {
    const std::string path = path_ + ".new";
    const int file =
        open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return FileError(path, "write");
    // Its readers stay who they were.
    const bool is_written =
        fchmod(file, mode_) == 0 &&
        (owner_ == static_cast<uid_t>(-1) || geteuid() != 0 ||
         fchown(file, owner_, group_) == 0) &&
        write(file, text.data(), text.size()) == std::ssize(text) &&
        fsync(file) == 0;
    if (close(file) != 0 || !is_written ||
        rename(path.c_str(), path_.c_str()) != 0) {
      return FileError(path, "write");
    }
    return absl::OkStatus();
  }

 private:
  explicit TokenFile(std::string path) : path_(std::move(path)) {}

  absl::Status Read(bool creates) {
    const int file = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
      if (creates && errno == ENOENT) return absl::OkStatus();
      return FileError(path_, "read");
    }
    struct stat known;
    if (fstat(file, &known) == 0) {
      mode_ = known.st_mode & 07777;
      owner_ = known.st_uid;
      group_ = known.st_gid;
    }
    char part[4096];
    ssize_t count = 0;
    while ((count = read(file, part, sizeof(part))) > 0) {
      text_.append(part, static_cast<size_t>(count));
    }
    close(file);
    return count == 0 ? absl::OkStatus() : FileError(path_, "read");
  }

  const std::string path_;
  int lock_ = -1;
  std::string text_;
  mode_t mode_ = 0600;
  uid_t owner_ = static_cast<uid_t>(-1);
  gid_t group_ = static_cast<gid_t>(-1);
};

/// When a token ends that lasts for e.g. "90d", "12h" or "15m".
absl::StatusOr<absl::Time> ExpiryOf(std::string text) {
  if (text.empty()) return absl::InfiniteFuture();
  absl::Duration duration;
  int64_t days = 0;
  if (absl::EndsWith(text, "d") &&
      absl::SimpleAtoi(absl::string_view(text).substr(0, text.size() - 1),
                       &days)) {
    text = absl::StrCat(24 * std::min<int64_t>(days, 1'000'000), "h");
  }
  if (!absl::ParseDuration(text, &duration) ||
      duration <= absl::ZeroDuration() ||
      duration > absl::Hours(24 * 365 * 100)) {
    return core::InvalidArgument("EXPIRY_MALFORMED", "--expires is '", text,
                                 "', wanted e.g. 90d, 12h or 15m");
  }
  return absl::Now() + duration;
}

std::string ExpiryText(const Token& token) {
  return token.expires == absl::InfiniteFuture()
             ? "never"
             : absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", token.expires,
                                absl::UTCTimeZone());
}

absl::Status New(const std::string& path, const std::string& tenant,
                 const std::string& role, const std::string& lasts) {
  if (!server::IsTenantName(tenant)) {
    return core::InvalidArgument(
        "TENANT_MALFORMED", "--tenant is '", tenant,
        "', wanted 1 to 63 of a-z, 0-9, '-', '_' and '.', the first a letter "
        "or digit");
  }
  TENSORD_ASSIGN_OR_RETURN(const absl::Time expires, ExpiryOf(lasts));
  TENSORD_ASSIGN_OR_RETURN(const auto file,
                           TokenFile::Open(path, /*creates=*/true));
  TENSORD_RETURN_IF_ERROR(server::ParseTokens(path, file->text()).status());
  TENSORD_ASSIGN_OR_RETURN(const server::NewToken made,
                           server::MakeToken(tenant, role, expires));
  std::string text = file->text();
  if (!text.empty() && text.back() != '\n') text += '\n';
  TENSORD_RETURN_IF_ERROR(
      file->Replace(text + server::FormatToken(made.token)));
  absl::PrintF(
      "token %s of tenant %s, role %s, expires %s; its secret is not "
      "shown again:\n%s\n",
      made.token.id, tenant, role, ExpiryText(made.token), made.secret);
  return absl::OkStatus();
}

absl::Status List(const std::string& path, bool is_json) {
  TENSORD_ASSIGN_OR_RETURN(const auto file,
                           TokenFile::Open(path, /*creates=*/false));
  TENSORD_ASSIGN_OR_RETURN(const std::vector<Token> tokens,
                           server::ParseTokens(path, file->text()));
  if (is_json) {
    const auto to_json = [](const Token& token) {
      return Json{{"id", token.id},
                  {"tenant", token.tenant},
                  {"role", token.role},
                  {"expires", ExpiryText(token)},
                  {"is_expired", token.expires <= absl::Now()}};
    };
    absl::PrintF("%s\n", JsonText(JsonList(tokens, to_json)));
    return absl::OkStatus();
  }
  absl::PrintF("%-8s  %-20s  %-8s  %s\n", "id", "tenant", "role", "expires");
  for (const Token& token : tokens) {
    absl::PrintF("%-8s  %-20s  %-8s  %s%s\n", token.id, token.tenant,
                 token.role, ExpiryText(token),
                 token.expires <= absl::Now() ? " (expired)" : "");
  }
  return absl::OkStatus();
}

absl::Status Revoke(const std::string& path, const std::string& id) {
  TENSORD_ASSIGN_OR_RETURN(const auto file,
                           TokenFile::Open(path, /*creates=*/false));
  TENSORD_ASSIGN_OR_RETURN(const std::vector<Token> tokens,
                           server::ParseTokens(path, file->text()));
  if (std::none_of(tokens.begin(), tokens.end(),
                   [&](const Token& token) { return token.id == id; })) {
    return core::NotFound("TOKEN_NOT_FOUND", path, " has no token '", id, "'");
  }
  std::string text;
  for (const absl::string_view line :
       absl::StrSplit(file->text(), '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (!words.empty() && words[0] == id) continue;
    absl::StrAppend(&text, line, "\n");
  }
  TENSORD_RETURN_IF_ERROR(file->Replace(text));
  absl::PrintF("token %s is revoked\n", id);
  return absl::OkStatus();
}

/// What a command is told.
struct Settings {
  std::string file, tenant, role, expires, id;
  bool is_json = false;
};

CLI::App& AddCommand(CLI::App& token, const std::string& name,
                     const std::string& help, CommandLine& line,
                     const std::shared_ptr<Settings>& settings,
                     std::function<absl::Status(const Settings&)> run) {
  CLI::App* const command = token.add_subcommand(name, help);
  command->add_option("--tokens", settings->file, "The server's file of tokens")
      ->required();
  command->callback([&line, settings, run = std::move(run)] {
    const absl::Status status = run(*settings);
    line.exit_code = status.ok() ? kOk : Fail(status);
  });
  return *command;
}

}  // namespace

void AddTokenCommands(CLI::App& app, CommandLine& line) {
  CLI::App* const token = app.add_subcommand(
      "token", "The file of tokens that a server takes, on its machine");
  token->require_subcommand(1);
  const auto settings = std::make_shared<Settings>();
  CLI::App& make = AddCommand(
      *token, "new",
      "Add a token and print its secret, once, alone on the last line", line,
      settings, [](const Settings& with) {
        return New(with.file, with.tenant, with.role, with.expires);
      });
  make.add_option("--tenant", settings->tenant, "Whose it is")->required();
  make.add_option("--role", settings->role, "What it may do")
      ->check(CLI::IsMember({"user", "operator"}))
      ->required();
  make.add_option("--expires", settings->expires,
                  "How long it is good, e.g. 90d, 12h; for ever unless given");
  CLI::App& list = AddCommand(
      *token, "list", "List tokens, without their secrets", line, settings,
      [](const Settings& with) { return List(with.file, with.is_json); });
  AddJsonFlag(list, settings->is_json);
  CLI::App& revoke = AddCommand(
      *token, "revoke", "Take a token out: within a second no server takes it",
      line, settings,
      [](const Settings& with) { return Revoke(with.file, with.id); });
  revoke.add_option("id", settings->id, "As list shows it")->required();
}

}  // namespace tensord::cli
