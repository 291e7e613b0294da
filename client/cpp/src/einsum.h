// Einsum text as one typed operation.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensord/operations.h"

namespace tensord::internal {

struct EinsumOperation {
  enum class Kind { kPermute, kReduce, kContract };

  Kind kind = Kind::kPermute;
  std::vector<Modes> inputs;  // one, or two to contract
  Modes output;
};

/// Reads `subscripts` for tensors of `mode_counts` modes each.
///
/// Errors  INVALID_ARGUMENT (`EINSUM_MALFORMED`); UNIMPLEMENTED
///         (`EINSUM_NOT_ONE_OPERATION`).
absl::StatusOr<EinsumOperation> ParseEinsum(std::string_view subscripts,
                                            absl::Span<const int> mode_counts);

}  // namespace tensord::internal
