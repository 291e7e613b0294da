#include "server/http/tls_files.h"

#include <openssl/err.h>
#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace tensord::http {
namespace {

/// Differs when a file's contents may.
std::string VersionOf(const std::string& path) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) return "none";
  return absl::StrCat(file.st_dev, " ", file.st_ino, " ", file.st_size, " ",
                      file.st_mtim.tv_sec, " ", file.st_mtim.tv_nsec);
}

absl::Status Wrong(absl::string_view what, const std::string& path) {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  const char* const reason = ERR_reason_error_string(error);
  return core::InvalidArgument("TLS_FILES_WRONG", what, " '", path, "': ",
                               reason == nullptr ? "unreadable" : reason);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TlsFiles>> TlsFiles::Read(
    std::string certificate, std::string key, Refused refused) {
  std::unique_ptr<TlsFiles> files(
      new TlsFiles(std::move(certificate), std::move(key), std::move(refused)));
  absl::MutexLock lock(&files->mutex_);
  files->version_ = absl::StrCat(VersionOf(files->certificate_), ", ",
                                 VersionOf(files->key_));
  TENSORD_ASSIGN_OR_RETURN(files->context_, files->Load());
  return files;
}

absl::StatusOr<TlsFiles::Context> TlsFiles::Load() const {
  ERR_clear_error();
  Context context(SSL_CTX_new(TLS_server_method()));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate_.c_str()) !=
      1) {
    return Wrong("certificate", certificate_);
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), key_.c_str(),
                                  SSL_FILETYPE_PEM) != 1) {
    return Wrong("key", key_);
  }
  return context;
}

SslSession TlsFiles::NewSession() {
  absl::MutexLock lock(&mutex_);
  std::string version =
      absl::StrCat(VersionOf(certificate_), ", ", VersionOf(key_));
  if (version != version_) {
    // Where one of the files is yet to follow, they do not fit together, and
    // are looked at again when it has.
    version_ = std::move(version);
    absl::StatusOr<Context> context = Load();
    if (context.ok()) {
      context_ = *std::move(context);
    } else {
      refused_(context.status());
    }
  }
  return SslSession(SSL_new(context_.get()));
}

}  // namespace tensord::http
