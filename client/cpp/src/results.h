// Handles of what operations have made.
#pragma once

#include <memory>
#include <vector>

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
  /// Of several, each with the operation's report; an output for each.
  /// Errors  INTERNAL, reason RESPONSE_MALFORMED: there are not as many.
  static absl::StatusOr<std::vector<RemoteTensor>> All(
      const std::shared_ptr<Connection>& connection, const v1::Result& result,
      const std::vector<const RemoteTensor*>& outputs);
};

}  // namespace tensord::internal
