#include "server/identity/certificates.h"

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "server/identity/file_watch.h"
#include "server/identity/openssl_owned.h"

namespace tensord::server {
namespace {

using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

Bio BioOf(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

absl::Status Invalid(const std::string& path, const std::string& problem) {
  ERR_clear_error();
  return core::InvalidArgument("CERTIFICATE_INVALID", path, ": ", problem);
}

/// The certificates of a PEM file, one or more.
absl::StatusOr<std::vector<Certificate>> Parse(const std::string& path,
                                               const std::string& pem) {
  std::vector<Certificate> chain;
  const Bio bio = BioOf(pem);
  while (X509* const next =
             PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    chain.emplace_back(next);
  }
  const bool is_at_end =
      ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!chain.empty() && is_at_end) return chain;
  return Invalid(
      path, absl::StrCat("certificate ", chain.size() + 1,
                         " is none, wanted PEM, -----BEGIN CERTIFICATE-----"));
}

absl::Time ExpiryOf(const X509& certificate) {
  std::tm when = {};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &when) != 1) {
    return absl::InfinitePast();
  }
  return absl::FromTM(when, absl::UTCTimeZone());
}

std::string DerOf(const X509& certificate) {
  std::string der(static_cast<size_t>(i2d_X509(&certificate, nullptr)), '\0');
  auto* end = reinterpret_cast<unsigned char*>(der.data());
  i2d_X509(&certificate, &end);
  return der;
}

/// A key without a passphrase: nobody is there to be asked for one.
Key ParseKey(const std::string& pem) {
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  return Key(PEM_read_bio_PrivateKey(BioOf(pem).get(), nullptr, no_passphrase,
                                     nullptr));
}

/// Whether TLS takes such a chain, as the system's OpenSSL is set up: weak keys
/// and digests it does not.
absl::Status CheckStrength(const std::string& path,
                           const std::vector<Certificate>& chain) {
  const Context context(SSL_CTX_new(TLS_server_method()));
  for (size_t i = 0; i < chain.size(); ++i) {
    X509* const certificate = chain[i].get();
    if (i == 0 ? SSL_CTX_use_certificate(context.get(), certificate) == 1
               : SSL_CTX_add1_chain_cert(context.get(), certificate) == 1) {
      continue;
    }
    const char* const why = ERR_reason_error_string(ERR_peek_last_error());
    return Invalid(
        path, absl::StrCat("certificate ", i + 1, " is not taken by TLS: ",
                           why == nullptr ? "OpenSSL does not say why" : why));
  }
  return absl::OkStatus();
}

absl::StatusOr<Certificates::Contents> Read(const CertificateFiles& files) {
  Certificates::Contents contents;
  TENSORD_ASSIGN_OR_RETURN(contents.certificate, ReadFile(files.certificate));
  TENSORD_ASSIGN_OR_RETURN(contents.key, ReadFile(files.key));
  TENSORD_ASSIGN_OR_RETURN(const auto chain,
                           Parse(files.certificate, contents.certificate));
  TENSORD_RETURN_IF_ERROR(CheckStrength(files.certificate, chain));
  const Key key = ParseKey(contents.key);
  if (key == nullptr) {
    return Invalid(files.key,
                   "no private key, wanted PEM without a passphrase, "
                   "-----BEGIN PRIVATE KEY-----");
  }
  if (X509_check_private_key(chain.front().get(), key.get()) != 1) {
    return Invalid(files.key, absl::StrCat("not the key of the certificate in ",
                                           files.certificate));
  }
  contents.expires = absl::InfiniteFuture();
  for (const Certificate& certificate : chain) {
    contents.expires = std::min(contents.expires, ExpiryOf(*certificate));
  }
  if (!files.client_ca.empty()) {
    TENSORD_ASSIGN_OR_RETURN(contents.client_ca, ReadFile(files.client_ca));
    TENSORD_ASSIGN_OR_RETURN(const auto authorities,
                             Parse(files.client_ca, contents.client_ca));
    for (const Certificate& authority : authorities) {
      contents.authorities.insert(DerOf(*authority));
    }
  }
  return contents;
}

}  // namespace

std::vector<std::string> CertificateFiles::paths() const {
  std::vector<std::string> paths = {certificate, key};
  if (!client_ca.empty()) paths.push_back(client_ca);
  return paths;
}

absl::StatusOr<std::unique_ptr<Certificates>> Certificates::Load(
    CertificateFiles files) {
  std::unique_ptr<Certificates> certificates(
      new Certificates(std::move(files)));
  TENSORD_RETURN_IF_ERROR(certificates->Reload());
  return certificates;
}

absl::Status Certificates::Reload() {
  TENSORD_ASSIGN_OR_RETURN(Contents read, Read(files_));
  absl::MutexLock lock(&mutex_);
  read.version = 1;
  if (contents_ != nullptr) {
    read.version += contents_->version;
    const bool has_all =
        std::ranges::includes(read.authorities, contents_->authorities);
    read.loss_count = contents_->loss_count + (has_all ? 0 : 1);
  }
  contents_ = std::make_shared<const Contents>(std::move(read));
  return absl::OkStatus();
}

std::shared_ptr<const Certificates::Contents> Certificates::contents() const {
  absl::MutexLock lock(&mutex_);
  return contents_;
}

}  // namespace tensord::server
