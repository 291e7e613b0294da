#include "server/session/contents.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>

#include "core/memory/host_resource.h"

namespace tensord::server {
namespace {

class ContentsTest : public ::testing::Test {
 protected:
  ContentsTest() {
    EngineOptions options;
    options.devices = *ParseDevices("cpu");
    engine_ = Engine::Create(options).value();
  }

  Device& device() { return *engine_->devices().front(); }

  std::shared_ptr<StoredTensor> NewTensor(core::ElementType type,
                                          int64_t extent) {
    auto tensor = std::make_shared<StoredTensor>(
        "sessions/s/tensors/t", "cpu:0",
        core::TensorDesc{
            type, core::PackedLayout({extent}, core::Order::kFirstModeFastest)},
        std::make_shared<core::HostResource>());
    EXPECT_TRUE(tensor->Allocate().ok());
    return tensor;
  }

  void Write(ContentsWriter& writer, const void* bytes, int64_t count) {
    const auto place = writer.Place(count);
    ASSERT_TRUE(place.ok()) << place.status();
    std::memcpy(place->data(), bytes, static_cast<size_t>(count));
    ASSERT_TRUE(writer.Commit().ok());
  }

  std::unique_ptr<Engine> engine_;
  const std::shared_ptr<core::MemoryResource> staging_ =
      std::make_shared<core::HostResource>();
};

TEST_F(ContentsTest, WhatIsWrittenInPiecesIsReadInPieces) {
  const auto tensor = NewTensor(core::ElementType::kInt8, 6);
  ASSERT_TRUE(tensor->BeginUpload(0).ok());
  auto writer = ContentsWriter::Open(*tensor, device(), staging_);
  ASSERT_TRUE(writer.ok()) << writer.status();
  Write(*writer, "tens", 4);
  EXPECT_EQ(tensor->committed_bytes(), 4);
  Write(*writer, "or", 2);
  tensor->EndUpload();
  EXPECT_EQ(tensor->state(), TensorState::kReady);

  auto reader = ContentsReader::Open(tensor, device(), staging_, {1, 6, 2});
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::string read;
  for (int i = 0; i < 4; ++i) {
    const auto piece = reader->Next();
    ASSERT_TRUE(piece.ok()) << piece.status();
    read.append(reinterpret_cast<const char*>(piece->bytes.data()),
                piece->bytes.size());
    read += '|';
  }
  EXPECT_EQ(read, "en|so|r||");
}

// Kernels would treat bytes other than 0 and 1 as they like.
TEST_F(ContentsTest, EveryByteOfABoolThatIsNotZeroBecomesOne) {
  const auto tensor = NewTensor(core::ElementType::kBool, 6);
  ASSERT_TRUE(tensor->BeginUpload(0).ok());
  auto writer = ContentsWriter::Open(*tensor, device(), staging_);
  ASSERT_TRUE(writer.ok()) << writer.status();
  const std::array<uint8_t, 6> sent = {0, 1, 2, 255, 0, 128};
  Write(*writer, sent.data(), 4);
  Write(*writer, &sent[4], 2);
  tensor->EndUpload();
  std::array<uint8_t, 6> stored;
  std::memcpy(stored.data(), tensor->first(), 6);
  EXPECT_EQ(stored, (std::array<uint8_t, 6>{0, 1, 1, 1, 0, 1}));
}

}  // namespace
}  // namespace tensord::server
