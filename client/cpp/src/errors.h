// Statuses with the reason that ReasonOf() reads.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tensord/v1/error.pb.h"

namespace tensord::internal {

absl::Status Error(absl::StatusCode code, std::string_view reason,
                   std::string_view message);

template <typename... Parts>
absl::Status InvalidArgument(std::string_view reason, const Parts&... parts) {
  return Error(absl::StatusCode::kInvalidArgument, reason,
               absl::StrCat(parts...));
}

/// The outcome of an operation whose call goes on, with the server's detail.
absl::Status FromProto(const v1::Error& error);

/// The outcome of a call that has ended, with the server's error detail.
absl::Status FromGrpc(const grpc::Status& status,
                      const grpc::ClientContext& context);

}  // namespace tensord::internal

#define TENSORD_CLIENT_RETURN_IF_ERROR(expression)                        \
  do {                                                                    \
    if (absl::Status tensord_status = (expression); !tensord_status.ok()) \
      return tensord_status;                                              \
  } while (false)

#define TENSORD_CLIENT_ASSIGN_OR_RETURN(left, expression) \
  TENSORD_CLIENT_ASSIGN_OR_RETURN_AT(left, expression, __LINE__)
#define TENSORD_CLIENT_ASSIGN_OR_RETURN_AT(left, expression, line) \
  TENSORD_CLIENT_ASSIGN_OR_RETURN_NAMED(left, expression, line)
#define TENSORD_CLIENT_ASSIGN_OR_RETURN_NAMED(left, expression, line) \
  auto tensord_statusor_##line = (expression);                        \
  if (!tensord_statusor_##line.ok())                                  \
    return std::move(tensord_statusor_##line).status();               \
  left = *std::move(tensord_statusor_##line)
