// Every message is a chunk, and then protobuf reads the same from it, or it is
// refused. The first byte says in which pieces it comes.
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/support/byte_buffer.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/crc32c.h"
#include "proto/wire/chunk.h"
#include "tensord/v1/tensor.pb.h"
#include "tests/fuzz/check.h"

namespace tensord::wire {
namespace {

using fuzz::Check;

// What it logs of malformed names would be all that one sees.
[[maybe_unused]] const auto kLogged = google::protobuf::SetLogHandler(nullptr);

void Try(const std::string& bytes, size_t slice_bytes) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += slice_bytes) {
    slices.emplace_back(bytes.substr(at, slice_bytes));
  }
  grpc::ByteBuffer message(slices.data(), slices.size());
  ChunkReader chunk(message);
  const auto header = chunk.Header();
  if (!header.ok()) {
    Check(absl::IsInvalidArgument(header.status()),
          "the code is INVALID_ARGUMENT", header.status().ToString());
    return;
  }
  Check(header->data_bytes >= 0 &&
            header->data_bytes <= static_cast<int64_t>(bytes.size()),
        "the payload is in the message");
  std::string data(static_cast<size_t>(header->data_bytes), '\0');
  const auto crc32c = chunk.Payload(reinterpret_cast<std::byte*>(data.data()));
  if (!crc32c.ok()) {
    Check(absl::IsInvalidArgument(crc32c.status()),
          "the code is INVALID_ARGUMENT", crc32c.status().ToString());
    return;
  }
  Check(*crc32c == core::Crc32c(data), "the checksum is the payload's");
  v1::UploadTensorRequest request;
  if (!request.ParseFromString(bytes)) {
    // protobuf wants names to be UTF-8; nobody has such a name.
    Check(!header->tensor.empty(), "protobuf reads it, too");
    return;
  }
  Check(request.tensor() == header->tensor &&
            request.offset_bytes() == header->offset_bytes &&
            request.crc32c() == header->crc32c && request.data() == data,
        "protobuf reads the same", request.ShortDebugString());
}

}  // namespace
}  // namespace tensord::wire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  tensord::wire::Try(
      std::string(reinterpret_cast<const char*>(data) + 1, size - 1),
      std::max<size_t>(data[0], 1));
  return 0;
}
