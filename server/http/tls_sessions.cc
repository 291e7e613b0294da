#include "server/http/tls_sessions.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <string>

namespace tensord::http {
namespace {

using Context = std::unique_ptr<SSL_CTX, FreeSsl>;

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

Owned<BIO> Reading(const std::string& pem) {
  return Owned<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

/// Requires  `contents` are good, as those of Certificates are.
Context ContextOf(const server::Certificates::Contents& contents) {
  Context context(SSL_CTX_new(TLS_server_method()));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  const Owned<BIO> chain = Reading(contents.certificate);
  const auto next = [&] {
    return PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr);
  };
  SSL_CTX_use_certificate(context.get(), Owned<X509>(next()).get());
  while (X509* const certificate = next()) {
    SSL_CTX_add0_chain_cert(context.get(), certificate);
  }
  const Owned<BIO> key = Reading(contents.key);
  SSL_CTX_use_PrivateKey(
      context.get(), Owned<EVP_PKEY>(PEM_read_bio_PrivateKey(key.get(), nullptr,
                                                             nullptr, nullptr))
                         .get());
  return context;
}

}  // namespace

SslSession TlsSessions::New() {
  const auto contents = certificates_.contents();
  absl::MutexLock lock(&mutex_);
  if (version_ != contents->version) {
    context_ = ContextOf(*contents);
    version_ = contents->version;
  }
  return SslSession(SSL_new(context_.get()));
}

}  // namespace tensord::http
