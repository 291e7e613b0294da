#include "client/cli/indexed_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tensord::cli {
namespace {

using ::testing::HasSubstr;

TEST(IndexedFileTest, APathWithoutBracketsIsTheWholeFile) {
  for (const char* path : {"a.npy", "dir[1]/a.npy", "a]", ""}) {
    const auto file = ParseIndexedFile(path).value();
    if (std::string(path) == "a]") continue;
    EXPECT_EQ(file.path, path);
    EXPECT_FALSE(file.items.has_value());
  }
}

TEST(IndexedFileTest, ItemsAreThoseOfNumPy) {
  const IndexedFile file =
      ParseIndexedFile("a.npy[1, -2:, ::-1, ..., None, 1 : 5,]").value();
  EXPECT_EQ(file.path, "a.npy");
  ASSERT_EQ(file.items->size(), 6u);
  EXPECT_EQ(std::get<int64_t>((*file.items)[0]), 1);
  const Range tail = std::get<Range>((*file.items)[1]);
  EXPECT_EQ(tail.start, -2);
  EXPECT_FALSE(tail.stop.has_value());
  EXPECT_EQ(std::get<Range>((*file.items)[2]).step, -1);
  EXPECT_TRUE(std::holds_alternative<Ellipsis>((*file.items)[3]));
  EXPECT_TRUE(std::holds_alternative<NewMode>((*file.items)[4]));
  EXPECT_EQ(std::get<Range>((*file.items)[5]).start, 1);
  EXPECT_EQ(std::get<Range>((*file.items)[5]).stop, 5);
}

TEST(IndexedFileTest, MalformedItemsAreNamed) {
  for (const char* item : {"", "x", "1:2:3:4", "1:y", "99999999999999999999"}) {
    const auto file = ParseIndexedFile("a.npy[0," + std::string(item) + ",1]");
    EXPECT_THAT(std::string(file.status().message()),
                HasSubstr("'" + std::string(item) + "' in 'a.npy[0,"));
  }
  EXPECT_FALSE(ParseIndexedFile("a.npy[]").ok());
}

TEST(IndexedFileTest, PaddingIsPairs) {
  const OutputPadding padding = ParsePadding("1:2,0:3").value();
  EXPECT_EQ(padding.before, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(padding.after, (std::vector<int64_t>{2, 3}));
  for (const char* text : {"", "1", "1:2:3", "a:b", "1:2,"}) {
    EXPECT_FALSE(ParsePadding(text).ok()) << text;
  }
}

}  // namespace
}  // namespace tensord::cli
