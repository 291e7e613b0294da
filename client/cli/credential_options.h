// The options that say how a server is trusted and who asks.
#pragma once

#include <CLI/CLI.hpp>

#include "tensord/credentials.h"

namespace tensord::cli {

/// --ca, --cert, --key and --token-file. There is none for the token itself,
/// which other users would see in the list of processes.
///
/// Lifetime  `credentials` must outlive `app`.
void AddCredentialOptions(CLI::App& app, Credentials& credentials);

}  // namespace tensord::cli
