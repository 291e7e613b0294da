// The bytes of tensors, between the server and memory that Python owns.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "client/cpp/src/channels.h"
#include "client/python/native/src/channel.h"

namespace tensord::native {

/// Uploads and downloads as the C++ client has them, without the GIL.
///
/// `bytes` is what has a buffer, contiguous and, for downloads, writable. Both
/// take the bytes that have come so far, at most every 100 ms, to
/// `progress`, unless that is None. A signal that Python handles by an
/// exception cancels them: soon, if the server takes or sends anything; else
/// the exception is raised all the same, and the memory is held until the
/// deadline.
///
/// Threads  safe for concurrent use.
class Transfers {
 public:
  explicit Transfers(std::shared_ptr<Channel> channel);

  /// Fills a tensor that was never written before.
  /// Errors  CallError: as the status says, after a few tries.
  void Upload(const std::string& tensor, nanobind::handle bytes,
              int64_t chunk_bytes, double timeout_seconds,
              nanobind::handle metadata, nanobind::object progress);

  /// Errors  CallError: as the status says, after a few tries.
  void Download(const std::string& tensor, nanobind::handle bytes,
                int64_t chunk_bytes, double timeout_seconds,
                nanobind::handle metadata, nanobind::object progress);

 private:
  const std::shared_ptr<Channel> channel_;
  const std::shared_ptr<internal::Channels> channels_;
};

}  // namespace tensord::native
