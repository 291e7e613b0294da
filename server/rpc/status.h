// absl::Status -> what a gRPC call ends with. The only place that maps them.
#pragma once

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tensord::rpc {

/// The code and message of `status`. When it is not OK, adds the reason and the
/// cuTENSOR-like status to the call's trailing metadata, see error.proto.
grpc::Status ToGrpc(const absl::Status& status, grpc::ServerContext& context);

/// The status that cuTENSOR would return, e.g. "INVALID_VALUE". Total.
absl::string_view CutensorStatus(absl::StatusCode code);

/// "INVALID_ARGUMENT", ... for statistics and logs.
absl::string_view NameOf(absl::StatusCode code);

}  // namespace tensord::rpc
