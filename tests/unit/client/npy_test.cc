#include "client/cli/npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/testing/places.h"

namespace tensord::cli {
namespace {

std::string PathOf(const std::string& name) {
  return testing::TemporaryFolder() + "/" + name + ".npy";
}

void Write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

/// A file of format `version` with the header `text`, unpadded.
std::string FileOf(int version, const std::string& text) {
  std::string file("\x93NUMPY", 6);
  file.push_back(static_cast<char>(version));
  file.push_back('\0');
  const auto length = static_cast<uint32_t>(text.size());
  file.append(reinterpret_cast<const char*>(&length), version == 1 ? 2 : 4);
  return file + text;
}

TEST(NpyHeaderTest, ReadsWhatNumpyWrites) {
  const std::string text =
      "{'descr': '<f8', 'fortran_order': False, 'shape': (24, 24), }";
  for (const int version : {1, 2, 3}) {
    SCOPED_TRACE(version);
    const auto header = ParseNpyHeader(FileOf(version, text));
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->element_type, ElementType::kFloat64);
    EXPECT_EQ(header->order, Order::kLastModeFastest);
    EXPECT_EQ(header->extents, (std::vector<int64_t>{24, 24}));
    EXPECT_EQ(header->data_offset, (version == 1 ? 10 : 12) + text.size());
  }
}

TEST(NpyHeaderTest, ReadsOtherWaysToWriteTheSame) {
  const auto header = ParseNpyHeader(FileOf(
      1, "{ \"shape\":(3,),\"fortran_order\" : True,\"descr\":\"=c16\" }\n"));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->element_type, ElementType::kComplex128);
  EXPECT_EQ(header->order, Order::kFirstModeFastest);
  EXPECT_EQ(header->extents, (std::vector<int64_t>{3}));
}

TEST(NpyHeaderTest, EveryTypeAndShapeReadsBack) {
  for (int i = 1; i <= static_cast<int>(ElementType::kBool); ++i) {
    for (const std::vector<int64_t>& extents : {std::vector<int64_t>{},
                                                {7},
                                                {2, 0, 3},
                                                {int64_t{1} << 40, 2},
                                                std::vector<int64_t>(64, 1)}) {
      for (const Order order :
           {Order::kFirstModeFastest, Order::kLastModeFastest}) {
        NpyHeader header{static_cast<ElementType>(i), extents, order};
        const std::string file = MakeNpyHeader(header);
        EXPECT_EQ(file.size() % 64, 0);
        EXPECT_EQ(file.back(), '\n');
        header.data_offset = static_cast<int64_t>(file.size());
        const auto parsed = ParseNpyHeader(file);
        ASSERT_TRUE(parsed.ok()) << parsed.status();
        EXPECT_EQ(*parsed, header);
      }
    }
  }
}

TEST(NpyHeaderTest, SaysWhyItRefuses) {
  const auto message = [](const std::string& file) {
    return std::string(ParseNpyHeader(file).status().message());
  };
  EXPECT_NE(message("PK\3\4 a zip archive").find("begin"), std::string::npos);
  EXPECT_NE(message(FileOf(1,
                           "{'descr': '<U8', 'fortran_order': False, "
                           "'shape': (3,), }"))
                .find("'<U8'"),
            std::string::npos);
  EXPECT_NE(message(FileOf(1,
                           "{'descr': [('x', '<f8')], 'fortran_order': "
                           "False, 'shape': (3,), }"))
                .find("structures"),
            std::string::npos);
  EXPECT_NE(message(FileOf(4, "")).find("format 4"), std::string::npos);
  EXPECT_NE(message(FileOf(1, "{'descr': '<f8', 'fortran_order': False}"))
                .find("lacks"),
            std::string::npos);
}

TEST(NpyHeaderTest, EveryTruncationIsRefused) {
  const std::string file = MakeNpyHeader({ElementType::kFloat32, {4, 5}});
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(ParseNpyHeader(file.substr(0, size)).ok()) << size;
  }
  const std::string text =
      "{'descr': '<f8', 'fortran_order': False, 'shape': (24, 24), }";
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(ParseNpyHeader(FileOf(1, text.substr(0, size))).ok()) << size;
  }
}

TEST(NpyFileTest, WrittenFilesReadBack) {
  const std::string path = PathOf("round_trip");
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  {
    auto writer = NpyWriter::Create(path, {ElementType::kFloat32, {2, 3}});
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_EQ(writer->data().size(), 24);
    std::memcpy(writer->data().data(), values.data(), 24);
    ASSERT_TRUE(writer->Commit().ok());
  }
  const auto file = NpyFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const UntypedHostView view = file->view();
  EXPECT_EQ(view.element_type, ElementType::kFloat32);
  EXPECT_EQ(view.layout.extents, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(view.data, values.data(), 24), 0);
}

TEST(NpyFileTest, BigEndianFilesReadAsLittleEndian) {
  const auto read = [](const std::string& code, const std::string& data) {
    const std::string path = PathOf("big_endian");
    Write(path, FileOf(1, "{'descr': '" + code +
                              "', 'fortran_order': False, 'shape': (2,), }") +
                    data);
    const auto file = NpyFile::Open(path);
    EXPECT_TRUE(file.ok()) << file.status();
    if (!file.ok()) return std::string();
    return std::string(static_cast<const char*>(file->view().data),
                       data.size());
  };
  EXPECT_EQ(read(">i2", "abcd"), "badc");
  EXPECT_EQ(read(">f4", "abcdefgh"), "dcbahgfe");
  EXPECT_EQ(read(">f8", "abcdefghijklmnop"), "hgfedcbaponmlkji");
  // The parts of a complex number, not their order.
  EXPECT_EQ(read(">c8", "abcdefghijklmnop"), "dcbahgfelkjiponm");
  EXPECT_EQ(read("|i1", "ab"), "ab");
  EXPECT_EQ(read("<i2", "abcd"), "abcd");
}

TEST(NpyFileTest, FileThatIsNotCommittedDoesNotAppear) {
  const std::string path = PathOf("abandoned");
  std::filesystem::remove(path);
  {
    const auto writer = NpyWriter::Create(path, {ElementType::kInt8, {4}});
    ASSERT_TRUE(writer.ok()) << writer.status();
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(NpyFileTest, FileCutShortIsRefused) {
  const std::string path = PathOf("short");
  Write(path, MakeNpyHeader({ElementType::kFloat64, {3}}) + "only 16 bytes...");
  const auto file = NpyFile::Open(path);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.status().message().find("has only 16 bytes"),
            absl::string_view::npos)
      << file.status();
}

TEST(NpyFileTest, ScalarsAndEmptyArraysHaveViews) {
  Write(PathOf("scalar"),
        MakeNpyHeader({ElementType::kInt32, {}}) + std::string(4, '\0'));
  Write(PathOf("empty"), MakeNpyHeader({ElementType::kInt32, {0, 5}}));
  EXPECT_TRUE(NpyFile::Open(PathOf("scalar")).ok());
  EXPECT_TRUE(NpyFile::Open(PathOf("empty")).ok());
  EXPECT_EQ(NpyFile::Open(PathOf("missing")).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tensord::cli
