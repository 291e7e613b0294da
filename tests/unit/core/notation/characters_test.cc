#include "core/notation/characters.h"

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "tests/unit/core/notation/encoded.h"

namespace tensord::core::test {
namespace {

TEST(CharactersTest, EveryCodePointIsReadAndSurrogatesAreNot) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    const std::string text = "é" + Encoded(c) + "a";
    const Character character = CharacterAt(text, 2);
    if (c >= 0xd800 && c < 0xe000) {
      ASSERT_EQ(character.value, Character::kNotUtf8);
      ASSERT_EQ(character.byte_count, 1);
    } else {
      ASSERT_EQ(character.value, c);
      ASSERT_EQ(character.byte_count, text.size() - 3);
    }
  }
}

TEST(CharactersTest, EveryPairOfBytesIsReadOrRefusedByTheFirst) {
  for (int first = 0x80; first < 0x100; ++first) {
    for (int second = 0; second < 0x100; ++second) {
      const std::string text = {static_cast<char>(first),
                                static_cast<char>(second)};
      const bool is_valid =
          first >= 0xc2 && first < 0xe0 && second >= 0x80 && second < 0xc0;
      const Character character = CharacterAt(text, 0);
      ASSERT_EQ(character.value != Character::kNotUtf8, is_valid);
      ASSERT_EQ(character.byte_count, is_valid ? 2 : 1);
    }
  }
}

TEST(CharactersTest, ClassesDoNotOverlap) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    const int classes = IsLetter(c) + IsMark(c) + IsPrime(c) + IsBlank(c);
    ASSERT_LE(classes, 1) << "U+" << std::hex << static_cast<uint32_t>(c);
    ASSERT_FALSE(IsLetter(c) && IsUnprintable(c))
        << "U+" << std::hex << static_cast<uint32_t>(c);
  }
  EXPECT_FALSE(IsLetter(Character::kNotUtf8));
}

TEST(CharactersTest, AlphabetsHaveLettersAndPunctuationIsNone) {
  for (const char32_t c : std::u32string(U"aZªµºÀßøÿŁǅΑωЖяԱאب字カ한ກ𝒜𐍈")) {
    EXPECT_TRUE(IsLetter(c)) << static_cast<uint32_t>(c);
  }
  for (const char32_t c : std::u32string(
           U"019²⁴₁_@[`{~ \u00a0¡§«×÷–—“”…€→∑≠■☃「、。＋，［｝\u200b\ufeff😀")) {
    EXPECT_FALSE(IsLetter(c)) << static_cast<uint32_t>(c);
  }
}

TEST(CharactersTest, MarksAndDigitsOfAllScriptsFollowLetters) {
  for (const char32_t c : std::u32string(U"²⁴₁\u0302\u093f\u20d7٣७")) {
    EXPECT_TRUE(IsMark(c)) << static_cast<uint32_t>(c);
  }
  for (const char32_t c : std::u32string(U"a5½①⁺₊'′ ")) {
    EXPECT_FALSE(IsMark(c)) << static_cast<uint32_t>(c);
  }
}

TEST(CharactersTest, LongNamesAreCutBetweenCharacters) {
  std::string name = "x";
  for (int i = 0; i < 40; ++i) name += "é";
  const std::string quoted = Quoted(name);
  EXPECT_EQ(quoted, "'" + name.substr(0, 63) + "...'");
  EXPECT_EQ(Quoted("é'"), "'é''");
  EXPECT_EQ(Quoted("'f'"), "'f'");
}

}  // namespace
}  // namespace tensord::core::test
