#include "client/cpp/src/access.h"

#include <arpa/inet.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "client/cpp/src/errors.h"

namespace tensord::internal {
namespace {

constexpr absl::Duration kLookInterval = absl::Seconds(1);
constexpr unsigned kCertificateIntervalSeconds = 1;
constexpr char kSystem[] = "system";

/// A file, or a token, and how it came to be asked for.
struct Given {
  std::string value;
  std::string origin;  // e.g. `ca` or `$TENSORD_CA`
};

Given Resolve(const std::string& value, const char* name) {
  if (!value.empty()) return {value, name};
  const std::string variable =
      absl::StrCat("TENSORD_", absl::AsciiStrToUpper(name));
  const char* const found = std::getenv(variable.c_str());
  return {found == nullptr ? "" : found, absl::StrCat("$", variable)};
}

template <typename... Parts>
absl::Status Unreadable(const Given& file, const Parts&... parts) {
  return InvalidArgument("CREDENTIALS_UNREADABLE", file.origin, " is ",
                         file.value, ": ", parts...);
}

absl::StatusOr<std::string> ReadFile(const Given& file) {
  errno = 0;
  const std::ifstream stream(file.value, std::ios::binary);
  std::ostringstream contents;
  contents << stream.rdbuf();  // does not throw, as iterators do
  if (contents.str().empty() && errno != 0) {
    return Unreadable(
        file, std::error_code(errno, std::generic_category()).message());
  }
  return contents.str();
}

/// The contents of a PEM file that has `label`.
absl::StatusOr<std::string> ReadPem(const Given& file, absl::string_view label,
                                    absl::string_view wanted) {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(const std::string contents, ReadFile(file));
  // E.g. BEGIN EC PRIVATE KEY, too.
  if (!absl::StrContains(contents, "-----BEGIN ") ||
      !absl::StrContains(contents, absl::StrCat(label, "-----"))) {
    return Unreadable(file, "it holds no ", label, " in PEM, wanted ", wanted);
  }
  return contents;
}

bool IsUnix(absl::string_view address) {
  return absl::StartsWith(address, "unix:");
}

std::string HostOf(absl::string_view address) {
  absl::string_view host = address.substr(0, address.rfind(':'));
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return std::string(host);
}

}  // namespace

bool IsLocal(const std::string& address) {
  if (IsUnix(address)) return true;
  const std::string host = HostOf(address);
  in_addr ipv4;
  in6_addr ipv6;
  if (inet_pton(AF_INET, host.c_str(), &ipv4) == 1) {
    return ntohl(ipv4.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  if (inet_pton(AF_INET6, host.c_str(), &ipv6) == 1) {
    return IN6_IS_ADDR_LOOPBACK(&ipv6);
  }
  return absl::EqualsIgnoreCase(host, "localhost");
}

Token::Token(std::string origin, std::string path)
    : origin_(std::move(origin)), path_(std::move(path)) {}

absl::StatusOr<std::unique_ptr<Token>> Token::Read(std::string origin,
                                                   absl::string_view secret,
                                                   std::string path) {
  std::unique_ptr<Token> token(new Token(std::move(origin), std::move(path)));
  absl::MutexLock lock(&token->mutex_);
  TENSORD_CLIENT_RETURN_IF_ERROR(secret.empty() ? token->TakeFile()
                                                : token->Take(secret));
  return token;
}

std::string Token::name() const {
  return path_.empty() ? origin_ : absl::StrCat(origin_, " (", path_, ")");
}

std::string Token::authorization() {
  absl::MutexLock lock(&mutex_);
  if (!path_.empty() && absl::Now() - looked_ >= kLookInterval &&
      FileSignature() != seen_) {
    // While it is being written, the old one holds.
    TakeFile().IgnoreError();
  }
  return authorization_;
}

Token::Signature Token::FileSignature() const {
  struct stat file {};
  if (stat(path_.c_str(), &file) != 0) return {};
  return {file.st_dev, file.st_ino,
          file.st_mtim.tv_sec * 1'000'000'000 + file.st_mtim.tv_nsec,
          file.st_size};
}

absl::Status Token::Take(absl::string_view secret) {
  if (secret.empty() || !std::ranges::all_of(secret, absl::ascii_isgraph)) {
    return InvalidArgument(
        "TOKEN_MALFORMED", name(),
        " is no token, wanted printable ASCII without spaces");
  }
  authorization_ = absl::StrCat("Bearer ", secret);
  return absl::OkStatus();
}

absl::Status Token::TakeFile() {
  looked_ = absl::Now();
  const Signature signature = FileSignature();
  TENSORD_CLIENT_ASSIGN_OR_RETURN(const std::string contents,
                                  ReadFile({path_, origin_}));
  TENSORD_CLIENT_RETURN_IF_ERROR(Take(absl::StripAsciiWhitespace(contents)));
  seen_ = signature;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Access>> Access::Resolve(
    std::string address, const Credentials& given) {
  std::unique_ptr<Access> access(new Access());
  access->address_ = std::move(address);
  access->channel_credentials_ = grpc::InsecureChannelCredentials();
  if (!IsUnix(access->address_)) {
    TENSORD_CLIENT_RETURN_IF_ERROR(access->ResolveTls(given));
  }
  TENSORD_CLIENT_RETURN_IF_ERROR(access->ResolveToken(given));
  return access;
}

absl::Status Access::ResolveTls(const Credentials& given) {
  const Given ca = internal::Resolve(given.ca, "ca");
  const Given cert = internal::Resolve(given.cert, "cert");
  Given key = internal::Resolve(given.key, "key");
  if (cert.value.empty() && !key.value.empty()) {
    return Unreadable(key, "there is no cert that it is the key of");
  }
  if (ca.value.empty() && cert.value.empty()) return absl::OkStatus();
  const bool is_system = ca.value.empty() || ca.value == kSystem;
  authorities_ = is_system ? "the system's" : ca.value;
  grpc::SslCredentialsOptions roots;
  if (!is_system) {
    TENSORD_CLIENT_ASSIGN_OR_RETURN(
        roots.pem_root_certs,
        ReadPem(ca, "CERTIFICATE", "the certificates of authorities"));
  }
  if (cert.value.empty()) {
    channel_credentials_ = grpc::SslCredentials(roots);
    return absl::OkStatus();
  }
  if (key.value.empty()) key = cert;
  TENSORD_CLIENT_RETURN_IF_ERROR(
      ReadPem(cert, "CERTIFICATE", "the certificate of the client").status());
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const std::string secret,
      ReadPem(key, "PRIVATE KEY", "the key of the certificate"));
  if (absl::StrContains(secret, "ENCRYPTED")) {
    return Unreadable(key, "it is encrypted, wanted a key without a password");
  }
  cert_ = cert.value;
  key_ = key.value;
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          key_, cert_, is_system ? "" : ca.value, kCertificateIntervalSeconds));
  options.watch_identity_key_cert_pairs();
  if (!is_system) options.watch_root_certs();
  channel_credentials_ = grpc::experimental::TlsCredentials(options);
  return absl::OkStatus();
}

absl::Status Access::ResolveToken(const Credentials& given) {
  const Given secret = internal::Resolve(given.token, "token");
  const Given file = internal::Resolve(given.token_file, "token_file");
  // What was given beats the environment, and there the token the file.
  const bool is_file = secret.value.empty() ||
                       (given.token.empty() && !given.token_file.empty());
  if ((is_file ? file : secret).value.empty()) return absl::OkStatus();
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      token_, is_file ? Token::Read(file.origin, "", file.value)
                      : Token::Read(secret.origin, secret.value, ""));
  if (authorities_.empty() && !IsLocal(address_)) {
    return InvalidArgument(
        "TOKEN_WITHOUT_TLS", token_->name(), " would go to ", address_,
        " without TLS, for all to read; wanted ca or $TENSORD_CA, the "
        "authority of the server's certificate");
  }
  return absl::OkStatus();
}

std::string Access::authorization() const {
  return token_ == nullptr ? "" : token_->authorization();
}

absl::Status Access::Explain(const absl::Status& status) const {
  const std::string message = absl::AsciiStrToLower(status.message());
  // What gRPC says when a connection does not come about; OpenSSL's words and
  // BoringSSL's.
  const auto says = [&message](absl::string_view words) {
    return absl::StrContains(message, words);
  };
  std::string cause;
  if (status.code() != absl::StatusCode::kUnavailable || IsUnix(address_) ||
      !(says("failed to connect to all addresses") ||
        (says("empty address list") && !authorities_.empty()))) {
    return status;
  }
  if (says("certificate verify failed") || says("certificate_verify_failed")) {
    cause = absl::StrCat(
        "the server's certificate is not accepted: it has expired, or none of "
        "the authorities (",
        authorities_, ") signed it");
  } else if (says("not in peer certificate") ||
             says("hostname verification check failed")) {
    cause =
        absl::StrCat("the server's certificate is not for ", HostOf(address_));
  } else if (says("wrong version number") || says("wrong_version_number")) {
    cause = "the server there does not speak TLS";
  } else if (says("failed to create security handshaker") ||
             says("empty address list")) {
    cause = cert_.empty() ? absl::StrCat(authorities_, " is damaged")
                          : absl::StrCat(key_, " is not the key of ", cert_,
                                         ", or one of them or ", authorities_,
                                         " is damaged");
  } else if (says("socket closed") || says("connection reset")) {
    cause = authorities_.empty() ? "the server there closes the connection; it "
                                   "may speak TLS, which needs ca or "
                                   "$TENSORD_CA"
            : cert_.empty()
                ? "the server closes the connection: it may want the client's "
                  "cert and key"
                : "the server closes the connection: it refuses the client's "
                  "cert";
  } else {
    return status;
  }
  return Error(absl::StatusCode::kUnavailable, "TLS_HANDSHAKE_FAILED",
               absl::StrCat("cannot connect to ", address_, ": ", cause));
}

}  // namespace tensord::internal
