#include "server/rpc/chunk_wire.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "tensord/v1/tensor.grpc.pb.h"

namespace tensord::rpc {
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

TEST(ChunkWireTest, ReadsWhatProtobufWrites) {
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
  chunk.Payload(reinterpret_cast<std::byte*>(data.data()));
  EXPECT_EQ(data, request.data());
}

TEST(ChunkWireTest, EmptyMessageIsAnEmptyChunk) {
  grpc::ByteBuffer wire = Wire("");
  const auto header = ChunkReader(wire).Header();
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->data_bytes, 0);
}

TEST(ChunkWireTest, TruncatedMessageIsMalformedOrWithoutItsData) {
  const std::string whole = Request().SerializeAsString();
  for (size_t size = 1; size < whole.size(); ++size) {
    grpc::ByteBuffer wire = Wire(whole.substr(0, size));
    const auto header = ChunkReader(wire).Header();
    if (header.ok()) {
      EXPECT_EQ(header->data_bytes, 0) << size;
    } else {
      EXPECT_EQ(core::ReasonOf(header.status()), "CHUNK_MALFORMED") << size;
    }
  }
}

TEST(ChunkWireTest, RandomBytesNeverGiveMoreDataThanTheMessageHas) {
  for (uint32_t seed = 0; seed < 5000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    std::string bytes = Request().SerializeAsString();
    for (int flips = 1 + rng() % 4; flips > 0; --flips) {
      bytes[rng() % bytes.size()] = static_cast<char>(rng());
    }
    grpc::ByteBuffer wire = Wire(bytes);
    const auto header = ChunkReader(wire).Header();
    if (!header.ok()) continue;
    ASSERT_LE(header->data_bytes, std::ssize(bytes));
    ASSERT_GE(header->offset_bytes, 0);
  }
}

TEST(ChunkWireTest, FieldsOutOfOrderAndUnknownFieldsAreMalformed) {
  v1::UploadTensorRequest data, offset;
  data.set_data("abc");
  offset.set_offset_bytes(8);
  grpc::ByteBuffer swapped =
      Wire(data.SerializeAsString() + offset.SerializeAsString());
  EXPECT_FALSE(ChunkReader(swapped).Header().ok());
  grpc::ByteBuffer unknown = Wire(std::string("\x38\x01", 2));
  EXPECT_FALSE(ChunkReader(unknown).Header().ok());
  grpc::ByteBuffer twice =
      Wire(offset.SerializeAsString() + offset.SerializeAsString());
  EXPECT_FALSE(ChunkReader(twice).Header().ok());
}

TEST(ChunkWireTest, ProtobufReadsWhatMakeChunkWrites) {
  const std::string data = "0123456789";
  const auto owner = std::make_shared<int>(0);
  {
    grpc::ByteBuffer wire =
        MakeChunk(1 << 20, 0x01020304, std::as_bytes(std::span(data)), owner);
    EXPECT_EQ(owner.use_count(), 2);
    v1::DownloadTensorResponse response;
    using Traits = grpc::SerializationTraits<v1::DownloadTensorResponse>;
    ASSERT_TRUE(Traits::Deserialize(&wire, &response).ok());
    EXPECT_EQ(response.offset_bytes(), 1 << 20);
    EXPECT_EQ(response.crc32c(), 0x01020304u);
    EXPECT_EQ(response.data(), data);
  }
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(ChunkWireTest, Crc32cHasItsCheckValue) {
  const std::string check = "123456789";  // RFC 3720, appendix B.4
  EXPECT_EQ(Crc32c(std::as_bytes(std::span(check))), 0xe3069283u);
  EXPECT_EQ(Crc32c({}), 0u);
}

}  // namespace
}  // namespace tensord::rpc
