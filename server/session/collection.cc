#include "server/session/collection.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tensord::server {
namespace {

constexpr size_t kMaxIdLength = 128;
constexpr size_t kMaxShownName = 300;

}  // namespace

absl::Status ValidateId(absl::string_view id, const CollectionKind& kind) {
  const auto is_allowed = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
           c == '-' || c == '.';
  };
  if (id.size() > kMaxIdLength ||
      !std::all_of(id.begin(), id.end(), is_allowed)) {
    return core::InvalidArgument(absl::StrCat(kind.reason, "_ID_MALFORMED"),
                                 kind.word, "_id '", id.substr(0, kMaxIdLength),
                                 "' wanted as 1 to ", kMaxIdLength,
                                 " letters, digits, '_', '-' or '.'");
  }
  return absl::OkStatus();
}

absl::string_view SessionOf(absl::string_view name,
                            const CollectionKind& kind) {
  const size_t at = name.find(absl::StrCat("/", kind.word, "s/"));
  return at == absl::string_view::npos ? absl::string_view()
                                       : name.substr(0, at);
}

absl::Status NameMalformed(absl::string_view name, const CollectionKind& kind) {
  return core::InvalidArgument(absl::StrCat(kind.reason, "_NAME_MALFORMED"),
                               kind.word, " '", name.substr(0, kMaxShownName),
                               "' wanted as sessions/{session}/", kind.word,
                               "s/{", kind.word, "}");
}

absl::Status NoSuch(absl::string_view name, const CollectionKind& kind) {
  return core::NotFound(absl::StrCat(kind.reason, "_NOT_FOUND"), kind.word,
                        " '", name.substr(0, kMaxShownName),
                        "' does not exist");
}

absl::Status ExistsAlready(absl::string_view name, const CollectionKind& kind) {
  return core::Error(absl::StatusCode::kAlreadyExists,
                     absl::StrCat(kind.reason, "_ALREADY_EXISTS"),
                     absl::StrCat(kind.word, " '", name, "' exists already"));
}

absl::Status SessionClosed(absl::string_view session) {
  return core::NotFound("SESSION_NOT_FOUND", "session '", session,
                        "' was closed");
}

std::string NameIn(absl::string_view session, const CollectionKind& kind,
                   absl::string_view id) {
  return absl::StrCat(session, "/", kind.word, "s/", id);
}

}  // namespace tensord::server
