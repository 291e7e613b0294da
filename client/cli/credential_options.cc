#include "client/cli/credential_options.h"

namespace tensord::cli {

void AddCredentialOptions(CLI::App& app, Credentials& credentials) {
  app.add_option(
         "--ca", credentials.ca,
         "PEM file of the authorities that may have signed the server's "
         "certificate, or `system`; the connection has TLS then (or "
         "$TENSORD_CA)")
      ->type_name("FILE");
  app.add_option("--cert", credentials.cert,
                 "PEM file of the client's certificate (or $TENSORD_CERT)")
      ->type_name("FILE");
  app.add_option("--key", credentials.key,
                 "PEM file of its key (or $TENSORD_KEY)")
      ->type_name("FILE");
  app.add_option("--token-file", credentials.token_file,
                 "File with the token that says who asks (or "
                 "$TENSORD_TOKEN_FILE, or the token itself in $TENSORD_TOKEN; "
                 "no option takes it, as all users see command lines)")
      ->type_name("FILE");
}

}  // namespace tensord::cli
