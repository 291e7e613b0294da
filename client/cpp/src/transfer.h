// Bytes to and from tensors, in checked chunks, resumed where they broke off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/src/channels.h"
#include "tensord/remote_tensor.h"
#include "tensord/v1/tensor.pb.h"

namespace tensord::internal {

struct TransferOptions {
  int64_t chunk_bytes = 0;
  absl::Time deadline;
  const Progress* progress = nullptr;  // may be null or empty
};

/// Fills `tensor` with `bytes`. Returns what it is then.
///
/// Post  nothing refers to `bytes` any more, whatever the outcome.
absl::StatusOr<v1::Tensor> Upload(const Channels& channels,
                                  const std::string& tensor,
                                  std::span<const std::byte> bytes,
                                  const TransferOptions& options);

/// Fills `bytes` with those of `tensor`, from its first element on.
absl::Status Download(const Channels& channels, const std::string& tensor,
                      std::span<std::byte> bytes,
                      const TransferOptions& options);

}  // namespace tensord::internal
