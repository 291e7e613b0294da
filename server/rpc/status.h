// absl::Status -> what calls and operations end with on the wire. The only
// place that maps them.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/rpc/transport/wire_call.h"
#include "tensord/v1/error.pb.h"

namespace tensord::rpc {

/// The code and message of `status`, the message as valid UTF-8 and short
/// enough for every peer. When it is not OK, adds the reason, the
/// cuTENSOR-like status, a quota that is used up and the request's id to the
/// call's trailing metadata, see error.proto. When to try again is there as
/// google.rpc.RetryInfo, too.
grpc::Status ToGrpc(const absl::Status& status, WireCall& call,
                    absl::string_view request_id);

/// The same for an operation whose call goes on.
/// Requires  !status.ok().
v1::Error ToProto(const absl::Status& status, absl::string_view request_id);

/// The status that cuTENSOR would return, e.g. "INVALID_VALUE". Total.
absl::string_view CutensorStatus(absl::StatusCode code);

}  // namespace tensord::rpc
