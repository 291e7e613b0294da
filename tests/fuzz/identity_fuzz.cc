// What says who asks, and what configures that, is read or refused: keys and
// JWTs, tokens and their file, tenants, the context of a trace.
#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/identity/jwt.h"
#include "server/identity/tenants.h"
#include "server/identity/token_file.h"
#include "server/telemetry/trace_context.h"
#include "tests/fuzz/check.h"

namespace tensord::server {
namespace {

using fuzz::Check;

/// A public key that RFC 7517 has in its appendix A.1.
constexpr absl::string_view kKeys =
    R"({"keys": [{"kty": "EC", "crv": "P-256", "use": "sig", "kid": "1",
        "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
        "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]})";

void CheckRefusal(const absl::Status& status) {
  Check(absl::IsInvalidArgument(status), "the code is INVALID_ARGUMENT",
        status.ToString());
  Check(absl::StrContains(status.message(), "file"), "the file is named",
        status.ToString());
}

void TryKeys(absl::string_view text) {
  const auto keys = JwtKeys::Parse("file", text);
  if (!keys.ok()) CheckRefusal(keys.status());
}

/// Nobody has the private key: no input is good.
void TryJwt(absl::string_view text) {
  static const JwtKeys keys = JwtKeys::Parse("file", kKeys).value();
  const auto claims = keys.Verify(text, {.issuer = "i", .audience = "a"},
                                  absl::FromUnixSeconds(1'800'000'000));
  Check(absl::IsUnauthenticated(claims.status()), "nobody has signed it");
}

void TryTokens(absl::string_view text) {
  TokenIdOf(text);
  const auto tokens = ParseTokens("file", text);
  if (!tokens.ok()) return CheckRefusal(tokens.status());
  std::string again;
  for (const Token& token : *tokens) {
    again += FormatToken(token);
    Check(!IsSecretOf(token, text), "a file has no secrets", token.id);
  }
  Check(ParseTokens("file", again).value() == *tokens, "it is written as read",
        again);
}

void TryTenants(absl::string_view text) {
  const auto tenants = ParseTenants("file", text);
  if (!tenants.ok()) return CheckRefusal(tenants.status());
  for (const auto& [name, shares] : tenants->tenants) {
    Check(IsTenantName(name), "the name may be one", name);
    Check(shares.weight > 0, "the weight is positive", name);
  }
}

void TryTrace(absl::string_view text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const auto trace = ParseTraceContext(
      text.substr(0, end), text.substr(std::min(end + 1, text.size())));
  Check(!trace || trace->trace_id_text().size() == 32, "it has an id");
}

/// The first byte says what it is.
void Try(absl::string_view text) {
  if (text.empty()) return;
  const absl::string_view rest = text.substr(1);
  switch (text[0]) {
    case 'k': return TryKeys(rest);
    case 'j': return TryJwt(rest);
    case 't': return TryTokens(rest);
    case 'n': return TryTenants(rest);
    default: return TryTrace(rest);
  }
}

}  // namespace
}  // namespace tensord::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tensord::server::Try({reinterpret_cast<const char*>(data), size});
  return 0;
}
