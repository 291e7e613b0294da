// How a server proves who it is, and what it is told about the caller.
#pragma once

#include <string>

namespace tensord {

/// What is empty, the environment says: $TENSORD_CA, $TENSORD_CERT,
/// $TENSORD_KEY, $TENSORD_TOKEN or else $TENSORD_TOKEN_FILE.
///
/// The connection has TLS if there is `ca` or `cert`; Unix sockets have none. A
/// token never goes to another machine without TLS.
///
/// Errors  calls end with INVALID_ARGUMENT when a file is missing or something
///         else (CREDENTIALS_UNREADABLE), the token is none (TOKEN_MALFORMED)
///         or would leave this machine as plaintext (TOKEN_WITHOUT_TLS), and
///         with UNAVAILABLE when no TLS comes about (TLS_HANDSHAKE_FAILED).
struct Credentials {
  /// PEM file of the authorities that may have signed the server's
  /// certificate; "system" for those of this machine.
  std::string ca;
  /// PEM files of the client's certificate and its key, which is in `cert`,
  /// too, if `key` is empty. With a certificate, files are read again when they
  /// have changed, for new connections.
  std::string cert;
  std::string key;
  /// Says who asks, with each call.
  std::string token;
  /// A file that holds it instead, and may be replaced: it is looked at about
  /// once a second.
  std::string token_file;
};

}  // namespace tensord
