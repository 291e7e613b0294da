// Handles of what operations have made.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "client/cpp/src/connection.h"
#include "tensord/plan.h"
#include "tensord/remote_tensor.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::internal {

/// `output` is the existing tensor that a result went to; null: it is new, and
/// the handle owns it.
class Results {
 public:
  static RemoteTensor One(const std::shared_ptr<Connection>& connection,
                          const v1::Result& result, const RemoteTensor* output);
  /// Errors  INTERNAL, reason RESPONSE_MALFORMED: there are not two.
  static absl::StatusOr<Factors> Two(
      const std::shared_ptr<Connection>& connection, const v1::Result& result,
      const RemoteTensor* q, const RemoteTensor* r);
};

}  // namespace tensord::internal
