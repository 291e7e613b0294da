#include "proto/wire/message_shape.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/support/slice.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tensord/v1/compute.pb.h"
#include "tensord/v1/program.pb.h"
#include "tensord/v1/tensor.pb.h"

namespace tensord::wire {
namespace {

// What it logs of malformed names would be all that one sees.
[[maybe_unused]] const auto kLogged = google::protobuf::SetLogHandler(nullptr);

/// In slices of `slice_bytes`.
grpc::ByteBuffer Sliced(const std::string& bytes, size_t slice_bytes) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += slice_bytes) {
    slices.emplace_back(bytes.substr(at, slice_bytes));
  }
  return {slices.data(), slices.size()};
}

template <typename M>
absl::StatusOr<MessageSize> Measure(const std::string& bytes) {
  return MessageShape::Of(*M::descriptor())
      .Measure(Sliced(bytes, bytes.size() + 1));
}

std::string Repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

/// A field of `number` that is `text`.
std::string Field(int number, const std::string& text) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  {
    google::protobuf::io::CodedOutputStream out(&stream);
    out.WriteTag(static_cast<uint32_t>(number << 3 | 2));
    out.WriteVarint32(static_cast<uint32_t>(text.size()));
    out.WriteString(text);
  }
  return bytes;
}

/// How much of what is measured `M` parsed from `bytes` takes.
template <typename M>
double Taken(const std::string& bytes) {
  M message;
  EXPECT_TRUE(message.ParseFromString(bytes));
  const auto size = Measure<M>(bytes);
  EXPECT_TRUE(size.ok()) << size.status();
  return static_cast<double>(message.SpaceUsedLong()) /
         static_cast<double>(size->parsed_bytes);
}

TEST(MessageShapeTest, DenseMessagesTakeNoMoreAndHalfAsMuch) {
  using ::testing::AllOf, ::testing::Ge, ::testing::Le;
  const auto is_measured = AllOf(Le(1.0), Ge(0.5));
  constexpr int kCount = 10'000;
  // Unknown: empty ones, numbers, groups, texts.
  using Request = v1::ContractRequest;
  EXPECT_THAT(Taken<Request>(Repeated({"\x7a\x00", 2}, kCount)), is_measured);
  EXPECT_THAT(Taken<Request>(Repeated("\x78\x01", kCount)), is_measured);
  EXPECT_THAT(Taken<Request>(Repeated("\x7b\x7c", kCount)), is_measured);
  EXPECT_THAT(Taken<Request>(Repeated(Field(15, std::string(40, 'x')), kCount)),
              is_measured);
  // Known: packed numbers, texts, messages in messages.
  EXPECT_THAT(Taken<v1::Layout>(
                  Field(1, std::string(static_cast<size_t>(1) << 14, '\1'))),
              is_measured);
  EXPECT_THAT(Taken<v1::DeleteTensorsRequest>(Repeated(Field(2, ""), kCount)),
              is_measured);
  EXPECT_THAT(Taken<v1::ExecuteStreamRequest>(
                  Repeated(Field(15, Field(4, "")), kCount)),
              is_measured);
}

TEST(MessageShapeTest, OrdinaryMessagesAreNotDense) {
  v1::ExecuteStreamRequest stream;
  for (int i = 0; i < 16; ++i) {
    v1::ContractRequest& contract = *stream.add_batch()->mutable_contract();
    contract.set_session("sessions/0123456789abcdef0123456789abcdef");
    for (v1::Operand* const input :
         {contract.mutable_a(), contract.mutable_b()}) {
      input->set_tensor(contract.session() + "/tensors/x");
      input->add_modes(1);
      input->add_modes(2);
    }
    contract.mutable_d()->add_modes(3);
  }
  const std::string bytes = stream.SerializeAsString();
  const auto size = Measure<v1::ExecuteStreamRequest>(bytes);
  ASSERT_TRUE(size.ok());
  EXPECT_LT(size->parsed_bytes, 12 * std::ssize(bytes));
}

TEST(MessageShapeTest, LooksAtSoManyFields) {
  const grpc::ByteBuffer message =
      Sliced(Repeated(Field(15, Field(4, "")), 10), 100);
  const MessageShape& shape =
      MessageShape::Of(*v1::ExecuteStreamRequest::descriptor());
  for (const int most : {1, 2, 10, 19}) {
    const auto size = shape.Measure(message, most);
    ASSERT_TRUE(size.ok());
    EXPECT_FALSE(size->is_complete);
  }
  EXPECT_TRUE(shape.Measure(message, 20)->is_complete);
  EXPECT_EQ(shape.Measure(message, 20)->field_count, 20);
}

TEST(MessageShapeTest, SlicesMakeNoDifference) {
  const std::string bytes = Repeated(
      Field(1, std::string(100, '\1')) + Field(9, "text") + "\x7b\x7c", 20);
  const MessageShape& shape = MessageShape::Of(*v1::Layout::descriptor());
  const auto whole = shape.Measure(Sliced(bytes, bytes.size()));
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const size_t slice_bytes : {1, 3, 64}) {
    const auto sliced = shape.Measure(Sliced(bytes, slice_bytes));
    ASSERT_TRUE(sliced.ok()) << sliced.status();
    EXPECT_EQ(sliced->parsed_bytes, whole->parsed_bytes);
    EXPECT_EQ(sliced->field_count, whole->field_count);
  }
}

TEST(MessageShapeTest, WhatIsNoMessageIsRefused) {
  const std::string deep = Repeated("\x7b", 200);
  for (const std::string& bytes :
       {std::string("\x08"),
        std::string("\x0a\x05"
                    "abc"),
        std::string("\x79xxx"), std::string("\x7b"), std::string("\x7c"),
        std::string("\x7b\x74"), std::string("\0", 1), deep,
        std::string("\x0a\xff\xff\xff\xff\x0f")}) {
    v1::Layout message;
    EXPECT_FALSE(message.ParseFromString(bytes));
    EXPECT_EQ(Measure<v1::Layout>(bytes).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

// Whatever the bytes: what protobuf takes was measured, and no smaller.
TEST(MessageShapeTest, AgreesWithProtobufOnRandomBytes) {
  std::mt19937 random(1);
  v1::CreateProgramRequest program;
  program.set_session("sessions/s");
  program.mutable_spec()->mutable_source()->set_statements(
      "c[i,k] = a[i,j] * b[j,k]");
  v1::PermuteRequest permute;
  permute.mutable_a()->add_modes(1);
  v1::ExecuteStreamRequest stream;
  *stream.add_batch()->mutable_permute() = permute;
  const std::string seeds[] = {program.SerializeAsString(),
                               stream.SerializeAsString()};
  int taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = seeds[i % 2];
    for (int changes = 0; changes < 3; ++changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    v1::ExecuteStreamRequest one;
    v1::CreateProgramRequest other;
    const bool is_taken =
        i % 2 == 0 ? other.ParseFromString(bytes) : one.ParseFromString(bytes);
    const size_t used =
        i % 2 == 0 ? other.SpaceUsedLong() : one.SpaceUsedLong();
    if (!is_taken) continue;
    ++taken;
    const auto size = i % 2 == 0 ? Measure<v1::CreateProgramRequest>(bytes)
                                 : Measure<v1::ExecuteStreamRequest>(bytes);
    ASSERT_TRUE(size.ok()) << size.status();
    EXPECT_LE(used, static_cast<size_t>(size->parsed_bytes));
  }
  EXPECT_GT(taken, 1000);
}

}  // namespace
}  // namespace tensord::wire
