// TLS for connections, with certificates that may change.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/identity/certificates.h"

namespace tensord::rpc {

/// TLS 1.2 or later with whatever `certificates` holds when a connection
/// begins; connections that are there stay. A client's certificate has to be
/// signed by one of its authorities, if it has any; without a certificate
/// clients are let in unless `must_have_certificate`.
///
/// Lifetime  `certificates` and the result outlive the server.
std::shared_ptr<grpc::ServerCredentials> TlsCredentials(
    const server::Certificates& certificates, bool must_have_certificate);

}  // namespace tensord::rpc
