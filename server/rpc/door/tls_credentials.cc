#include "server/rpc/door/tls_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <atomic>
#include <string>

namespace tensord::rpc {
namespace {

// gRPC's own watcher of files would serve a key that is no longer, or not yet,
// that of its certificate, and drop what it has for a file that is not good.
class ReloadingCredentials final : public grpc::ServerCredentials {
 public:
  ReloadingCredentials(const server::Certificates& certificates,
                       bool must_have_certificate)
      : certificates_(certificates) {
    const bool asks = !certificates.files().client_ca.empty();
    const grpc_ssl_client_certificate_request_type request =
        !asks ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
        : must_have_certificate
            ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
            : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            request, &Fetch, this));
  }
  ~ReloadingCredentials() override {
    grpc_server_credentials_release(credentials_);
  }

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    // The door looks at metadata.
  }

 private:
  /// gRPC asks this when a connection begins, one at a time.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<ReloadingCredentials*>(self)->Fetch(config);
  }
  grpc_ssl_certificate_config_reload_status Fetch(
      grpc_ssl_server_certificate_config** config) {
    const auto contents = certificates_.contents();
    if (contents->version == version_) {
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    }
    const grpc_ssl_pem_key_cert_pair pair = {
        .private_key = contents->key.c_str(),
        .cert_chain = contents->certificate.c_str()};
    // gRPC wants authorities also where it asks no client for a certificate.
    const std::string& authorities = contents->client_ca.empty()
                                         ? contents->certificate
                                         : contents->client_ca;
    *config = grpc_ssl_server_certificate_config_create(authorities.c_str(),
                                                        &pair, 1);
    version_ = contents->version;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  int AddPortToServer(const std::string& address,
                      grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  const server::Certificates& certificates_;
  uint64_t version_ = 0;  // that gRPC has
  grpc_server_credentials* credentials_ = nullptr;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> TlsCredentials(
    const server::Certificates& certificates, bool must_have_certificate) {
  return std::make_shared<ReloadingCredentials>(certificates,
                                                must_have_certificate);
}

}  // namespace tensord::rpc
