// Certificates that vouch for themselves.
#pragma once

#include <string>

namespace tensord::http {

/// Writes a new key and its certificate, of `name` as common name, to files.
void WriteSelfSigned(const std::string& name, const std::string& certificate,
                     const std::string& key);

}  // namespace tensord::http
