#include "tests/unit/server/http/self_signed.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstdio>
#include <memory>

namespace tensord::http {
namespace {

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(std::FILE* file) const { std::fclose(file); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

}  // namespace

void WriteSelfSigned(const std::string& name, const std::string& certificate,
                     const std::string& key) {
  const Owned<EVP_PKEY> pair(EVP_EC_gen("P-256"));
  const Owned<X509> made(X509_new());
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
  X509_set_pubkey(made.get(), pair.get());
  X509_NAME* const subject = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(
      subject, "CN", MBSTRING_ASC,
      reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(made.get(), subject);
  X509_sign(made.get(), pair.get(), EVP_sha256());
  PEM_write_PrivateKey(Owned<std::FILE>(std::fopen(key.c_str(), "w")).get(),
                       pair.get(), nullptr, nullptr, 0, nullptr, nullptr);
  PEM_write_X509(Owned<std::FILE>(std::fopen(certificate.c_str(), "w")).get(),
                 made.get());
}

}  // namespace tensord::http
