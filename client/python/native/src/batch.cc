#include "client/python/native/src/batch.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <grpcpp/support/slice.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace tensord::native {
namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::StringOutputStream;

constexpr uint32_t kTag = 15 << 3 | 2;  // a field of messages

}  // namespace

grpc::ByteBuffer BatchOf(std::span<const grpc::ByteBuffer> messages) {
  std::string batch;
  {
    StringOutputStream stream(&batch);
    CodedOutputStream out(&stream);
    std::vector<grpc::Slice> slices;
    for (const grpc::ByteBuffer& message : messages) {
      out.WriteTag(kTag);
      out.WriteVarint32(static_cast<uint32_t>(message.Length()));
      (void)message.Dump(&slices);
      for (const grpc::Slice& slice : slices) {
        out.WriteRaw(slice.begin(), static_cast<int>(slice.size()));
      }
    }
  }
  const grpc::Slice slice(batch);
  return grpc::ByteBuffer(&slice, 1);
}

std::vector<grpc::ByteBuffer> MessagesOf(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  grpc::Slice whole;
  // Large ones that are no batch are not copied for that.
  if (!message.Dump(&slices).ok() || slices.empty() ||
      slices.front().size() == 0 || *slices.front().begin() != kTag ||
      !message.DumpToSingleSlice(&whole).ok()) {
    return {message};
  }
  std::vector<grpc::ByteBuffer> messages;
  CodedInputStream in(whole.begin(), static_cast<int>(whole.size()));
  uint32_t size = 0;
  while (in.ReadTag() == kTag && in.ReadVarint32(&size)) {
    const size_t begin = in.CurrentPosition();
    if (size > whole.size() - begin) return {message};
    const grpc::Slice part = whole.sub(begin, begin + size);
    messages.emplace_back(&part, 1);
    in.Skip(static_cast<int>(size));
  }
  if (messages.empty() || !in.ConsumedEntireMessage()) return {message};
  return messages;
}

}  // namespace tensord::native
