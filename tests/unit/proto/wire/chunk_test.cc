#include "proto/wire/chunk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/base/crc32c.h"
#include "tensord/v1/tensor.grpc.pb.h"

namespace tensord::wire {
namespace {

grpc::ByteBuffer Wire(const std::string& bytes, size_t slice_bytes = 7) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += slice_bytes) {
    slices.emplace_back(bytes.substr(at, slice_bytes));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

v1::UploadTensorRequest Request() {
  v1::UploadTensorRequest request;
  request.set_tensor("sessions/s/tensors/t");
  request.set_offset_bytes(int64_t{1} << 40);
  request.set_crc32c(0xdeadbeef);
  request.set_data("the payload of a chunk");
  return request;
}

TEST(ChunkTest, ReadsWhatProtobufWrites) {
  const v1::UploadTensorRequest request = Request();
  grpc::ByteBuffer wire = Wire(request.SerializeAsString());
  ChunkReader chunk(wire);
  const auto header = chunk.Header();
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->tensor, request.tensor());
  EXPECT_EQ(header->offset_bytes, request.offset_bytes());
  EXPECT_EQ(header->crc32c, request.crc32c());
  ASSERT_EQ(header->data_bytes, std::ssize(request.data()));
  std::string data(request.data().size(), '\0');
  const auto crc32c = chunk.Payload(reinterpret_cast<std::byte*>(data.data()));
  ASSERT_TRUE(crc32c.ok()) << crc32c.status();
  EXPECT_EQ(*crc32c, core::Crc32c(request.data()));
  EXPECT_EQ(data, request.data());
}

TEST(ChunkTest, EmptyMessageIsAnEmptyChunk) {
  grpc::ByteBuffer wire = Wire("");
  const auto header = ChunkReader(wire).Header();
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->data_bytes, 0);
}

TEST(ChunkTest, TruncatedMessageIsMalformedOrWithoutItsData) {
  const std::string whole = Request().SerializeAsString();
  for (size_t size = 1; size < whole.size(); ++size) {
    grpc::ByteBuffer wire = Wire(whole.substr(0, size));
    const auto header = ChunkReader(wire).Header();
    if (header.ok()) {
      EXPECT_EQ(header->data_bytes, 0) << size;
    } else {
      EXPECT_TRUE(absl::IsInvalidArgument(header.status())) << size;
    }
  }
}

/// What a ChunkReader makes of `bytes`, payload included.
absl::StatusOr<v1::UploadTensorRequest> Read(const std::string& bytes) {
  grpc::ByteBuffer wire = Wire(bytes);
  ChunkReader chunk(wire);
  const auto header = chunk.Header();
  if (!header.ok()) return header.status();
  if (header->data_bytes > std::ssize(bytes)) {
    return absl::OutOfRangeError("more data than the message has");
  }
  std::string data(static_cast<size_t>(header->data_bytes), '\0');
  if (header->data_bytes > 0) {
    const auto crc32c =
        chunk.Payload(reinterpret_cast<std::byte*>(data.data()));
    if (!crc32c.ok()) return crc32c.status();
  }
  v1::UploadTensorRequest request;
  request.set_tensor(header->tensor);
  request.set_offset_bytes(header->offset_bytes);
  request.set_crc32c(header->crc32c);
  request.set_data(data);
  return request;
}

/// One field of each wire type, and a group in a group, that no chunk has.
constexpr const char* kUnknownFields =
    "\x38\x96\x01"                          // 7: 150
    "\x41\x01\x02\x03\x04\x05\x06\x07\x08"  // 8: fixed64
    "\x4a\x03\x61\x62\x63"                  // 9: "abc"
    "\x55\x01\x02\x03\x04"                  // 10: fixed32
    "\x5b\x63\x08\x01\x64\x5c"              // 11: {12: {1: 1}}
    "\x08\x05";                             // 1, which is a string, as a varint

TEST(ChunkTest, UnknownFieldsAreSkippedWhereverTheyAre) {
  v1::UploadTensorRequest head = Request();
  head.clear_data();
  v1::UploadTensorRequest tail;
  tail.set_data(Request().data());
  const std::string first = head.SerializeAsString();
  const std::string last = tail.SerializeAsString();
  const std::string unknown = kUnknownFields;
  for (const std::string& bytes :
       {unknown + first + last, first + unknown + last, first + last + unknown,
        unknown + first + unknown + last + unknown}) {
    const auto request = Read(bytes);
    ASSERT_TRUE(request.ok()) << request.status();
    EXPECT_EQ(request->SerializeAsString(), Request().SerializeAsString());
  }
  const auto empty = Read(first + unknown);
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(empty->data(), "");
}

TEST(ChunkTest, MalformedUnknownFieldsAreRefused) {
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += '\x5b';
  for (int i = 0; i < 1000; ++i) deep += '\x5c';
  const std::string malformed[] = {
      std::string("\x38", 1),          // a varint cut off
      std::string("\x41\x01\x02", 3),  // fixed64 cut off
      std::string("\x4a\x04\x61", 3),  // a length beyond the end
      std::string("\x55\x01", 2),      // fixed32 cut off
      std::string("\x5b\x08\x01", 3),  // a group that does not end
      std::string("\x5b\x64", 2),      // a group that another ends
      std::string("\x5c", 1),          // the end of no group
      std::string("\x3e\x01", 2),      // no wire type
      std::string("\x00\x01", 2),      // no field number
      std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11),
      deep,
  };
  for (const std::string& bytes : malformed) {
    const std::string whole = Request().SerializeAsString();
    EXPECT_TRUE(absl::IsInvalidArgument(Read(bytes).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(Read(whole + bytes).status()));
  }
}

TEST(ChunkTest, MutatedMessagesAreRefusedOrReadAsProtobufReadsThem) {
  int accepted = 0;
  for (uint32_t seed = 0; seed < 20000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    std::string bytes = Request().SerializeAsString();
    if (rng() % 2 == 0) bytes.insert(0, kUnknownFields);
    if (rng() % 2 == 0) bytes += kUnknownFields;
    for (int edits = 1 + rng() % 4; edits > 0 && !bytes.empty(); --edits) {
      const size_t at = rng() % bytes.size();
      switch (rng() % 4) {
        case 0: bytes.erase(at, 1 + rng() % 4); break;
        case 1: bytes.insert(at, 1, static_cast<char>(rng())); break;
        default: bytes[at] = static_cast<char>(rng()); break;
      }
    }
    const auto request = Read(bytes);
    if (!request.ok()) {
      ASSERT_TRUE(absl::IsInvalidArgument(request.status()))
          << request.status();
      continue;
    }
    ++accepted;
    ASSERT_GE(request->offset_bytes(), 0);
    // Protobuf refuses names that are no UTF-8; no tensor has one.
    const std::string& name = request->tensor();
    if (std::any_of(name.begin(), name.end(), [](char c) { return c < 0; })) {
      continue;
    }
    v1::UploadTensorRequest wanted;
    ASSERT_TRUE(wanted.ParseFromString(bytes));
    wanted.DiscardUnknownFields();
    ASSERT_EQ(request->SerializeAsString(), wanted.SerializeAsString());
  }
  EXPECT_GT(accepted, 1000);
}

TEST(ChunkTest, FieldsOutOfOrderOrTwiceAreMalformed) {
  v1::UploadTensorRequest data, offset;
  data.set_data("abc");
  offset.set_offset_bytes(8);
  const std::string data_bytes = data.SerializeAsString();
  const std::string offset_bytes = offset.SerializeAsString();
  for (const std::string& bytes :
       {data_bytes + offset_bytes, offset_bytes + offset_bytes,
        data_bytes + data_bytes}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Read(bytes).status()));
  }
}

template <typename Message>
Message Parsed(grpc::ByteBuffer wire) {
  Message message;
  EXPECT_TRUE(
      grpc::SerializationTraits<Message>::Deserialize(&wire, &message).ok());
  return message;
}

TEST(ChunkTest, ProtobufReadsWhatMakeChunkWrites) {
  const std::string data = "0123456789";
  const auto owner = std::make_shared<int>(0);
  {
    const grpc::ByteBuffer wire =
        MakeChunk("", 1 << 20, std::as_bytes(std::span(data)), owner);
    EXPECT_EQ(owner.use_count(), 2);
    const auto response = Parsed<v1::DownloadTensorResponse>(wire);
    EXPECT_EQ(response.offset_bytes(), 1 << 20);
    EXPECT_EQ(response.crc32c(), core::Crc32c(data));
    EXPECT_EQ(response.data(), data);
  }
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(ChunkTest, ACopyNeedsNothingOfItsOrigin) {
  std::string data = "0123456789";
  const std::shared_ptr<std::byte[]> buffer(new std::byte[data.size()]);
  {
    const grpc::ByteBuffer wire =
        MakeChunkOfCopy("t", 8, std::as_bytes(std::span(data)), buffer);
    EXPECT_EQ(buffer.use_count(), 2);
    data.assign(data.size(), '?');
    const auto request = Parsed<v1::UploadTensorRequest>(wire);
    EXPECT_EQ(request.tensor(), "t");
    EXPECT_EQ(request.offset_bytes(), 8);
    EXPECT_EQ(request.crc32c(), core::Crc32c("0123456789"));
    EXPECT_EQ(request.data(), "0123456789");
  }
  EXPECT_EQ(buffer.use_count(), 1);
}

}  // namespace
}  // namespace tensord::wire
