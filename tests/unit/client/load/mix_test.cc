#include "client/load/mix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/testing/places.h"

namespace tensord::load {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kProduct[] = R"([[operation]]
kind = "contract"
subscripts = "ik,kj->ij"
extents = { i = 2, j = 3, k = 4 }
)";

/// What is wrong with a mix.
std::string Mistake(const std::string& text) {
  const absl::StatusOr<Mix> mix = ParseMix(text, "mix.toml");
  EXPECT_EQ(mix.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(mix.status().message());
}

TEST(MixTest, OperandsHaveTheExtentsOfTheirModes) {
  const auto mix = ParseMix(R"(
name = "two"
job = "planning"
[[operation]]
name = "product"
kind = "contract"
weight = 2.5
subscripts = "ik,kj->ij"
extents = { i = 2, j = 3, k = 4 }
strides = [[4, 1], [1, 4]]
element_type = ["float16", "float32"]
compute_type = "float32"
deadline = "50ms"
inline = true
[[operation]]
kind = "reduce"
op = "max"
subscripts = "ij->"
extents = { i = 5, j = 0 }
selection = "measure"
)",
                            "mix.toml");
  ASSERT_TRUE(mix.ok()) << mix.status();
  EXPECT_EQ(mix->name, "two");
  EXPECT_EQ(mix->job, "planning");
  ASSERT_EQ(mix->operations.size(), 2);
  const OperationSpec& product = mix->operations[0];
  EXPECT_EQ(product.name, "product");
  EXPECT_EQ(product.kind, OperationKind::kContract);
  EXPECT_EQ(product.weight, 2.5);
  EXPECT_EQ(product.result_modes, "ij");
  EXPECT_THAT(product.tensors,
              ElementsAre(TensorSpec{.modes = "ik",
                                     .extents = {2, 4},
                                     .strides = {4, 1},
                                     .element_type = ElementType::kFloat16},
                          TensorSpec{.modes = "kj",
                                     .extents = {4, 3},
                                     .strides = {1, 4},
                                     .element_type = ElementType::kFloat32}));
  EXPECT_EQ(product.compute_type, ComputeType::kFloat32);
  EXPECT_EQ(product.deadline, absl::Milliseconds(50));
  EXPECT_TRUE(product.is_inline);
  const OperationSpec& reduction = mix->operations[1];
  EXPECT_EQ(reduction.name, "reduce");
  EXPECT_EQ(reduction.op, BinaryOperator::kMax);
  EXPECT_EQ(reduction.selection, Selection::kMeasure);
  EXPECT_THAT(reduction.tensors[0].extents, ElementsAre(5, 0));
}

TEST(MixTest, ProgramsNameTheirTensorsAndNumbers) {
  const auto mix = ParseMix(R"([[operation]]
kind = "program"
statements = "D[i,k] := x*A[i,j]*B[j,k]"
tensors = { A = [2, 3], B = [3, 4] }
scalars = { x = 2 }
element_type = "complex64"
)",
                            "mix.toml");
  ASSERT_TRUE(mix.ok()) << mix.status();
  const OperationSpec& program = mix->operations[0];
  EXPECT_THAT(program.tensors,
              ElementsAre(TensorSpec{.name = "A",
                                     .extents = {2, 3},
                                     .element_type = ElementType::kComplex64},
                          TensorSpec{.name = "B",
                                     .extents = {3, 4},
                                     .element_type = ElementType::kComplex64}));
  EXPECT_EQ(program.scalars.at("x"), 2);
}

TEST(MixTest, TheExampleIsRead) {
  const auto mix =
      ReadMix(testing::InRepository("client/load/examples/mixed.toml"));
  ASSERT_TRUE(mix.ok()) << mix.status();
  EXPECT_EQ(mix->operations.size(), 9);
}

TEST(MixTest, UnknownKeysAreToldWithTheNearest) {
  EXPECT_EQ(Mistake(std::string(kProduct) + "wieght = 2\n"),
            "mix.toml:5: operation 1: wieght is not known here, did you mean "
            "weight?");
  EXPECT_THAT(Mistake(std::string("jobb = 'x'\n") + kProduct),
              HasSubstr("mix.toml:1: jobb is not known here, did you mean "
                        "job?"));
  EXPECT_THAT(Mistake(std::string(kProduct) + "statements = 'x'\n"),
              HasSubstr("statements is not known here, wanted one of name"));
}

TEST(MixTest, WrongTypesAreTold) {
  EXPECT_EQ(Mistake(std::string(kProduct) + "weight = '2'\n"),
            "mix.toml:5: operation 1: weight is '2', wanted a number");
  EXPECT_THAT(Mistake(std::string(kProduct) + "inline = 1\n"),
              HasSubstr("inline is 1, wanted true or false"));
  EXPECT_THAT(Mistake(std::string(kProduct) + "name = 1\n"),
              HasSubstr("name is 1, wanted a string"));
  EXPECT_THAT(Mistake("operation = 3"),
              HasSubstr("operation is 3, wanted tables"));
  EXPECT_THAT(Mistake("[[operation]]\nkind = 'upload'\nextents = 3\n"),
              HasSubstr("extents is 3, wanted a list of whole numbers"));
}

TEST(MixTest, WrongValuesAreTold) {
  EXPECT_THAT(Mistake(std::string(kProduct) + "weight = -1\n"),
              HasSubstr("weight is -1, wanted a number of at least 0"));
  EXPECT_THAT(Mistake(std::string(kProduct) + "weight = nan\n"),
              HasSubstr("wanted a number of at least 0"));
  EXPECT_THAT(Mistake(std::string(kProduct) + "weight = 0\n"),
              HasSubstr("operation has weights of 0 only"));
  EXPECT_THAT(Mistake(std::string(kProduct) + "element_type = 'float'\n"),
              HasSubstr("element_type is 'float', wanted one of bfloat16"));
  EXPECT_THAT(Mistake(std::string(kProduct) +
                      "element_type = ['int8', 'int8', 'int8']\n"),
              HasSubstr("has 3 names, wanted one, or 2"));
  EXPECT_THAT(Mistake(std::string(kProduct) + "deadline = 'soon'\n"),
              HasSubstr("deadline is 'soon', wanted a duration"));
  EXPECT_THAT(Mistake(std::string(kProduct) + "strides = [[1, 2]]\n"),
              HasSubstr("strides has 1 lists, wanted 2"));
  EXPECT_THAT(Mistake(std::string(kProduct) + "strides = [[1, 2], [1]]\n"),
              HasSubstr("strides has 1 numbers for 'kj', wanted 2"));
  EXPECT_THAT(Mistake(std::string(kProduct) + kProduct),
              HasSubstr("mix.toml:5: operation 2: name is 'contract' as that "
                        "of another operation"));
  EXPECT_THAT(Mistake("[[operation]]\nkind = 'upload'\nextents = [4000000000, "
                      "4000000000]\n"),
              HasSubstr("more than 2^63 bytes"));
}

TEST(MixTest, WhatIsMissingIsTold) {
  EXPECT_THAT(Mistake(""), HasSubstr("mix.toml:1: operation is missing"));
  EXPECT_THAT(Mistake("operation = []"), HasSubstr("operation is"));
  EXPECT_THAT(Mistake("[[operation]]\n"),
              HasSubstr("kind is missing, wanted one of contract, permute"));
  EXPECT_THAT(Mistake("[[operation]]\nkind = 'sort'\n"),
              HasSubstr("kind is 'sort', wanted one of"));
  EXPECT_THAT(Mistake("[[operation]]\nkind = 'permute'\n"),
              HasSubstr("subscripts is missing"));
  EXPECT_THAT(Mistake("[[operation]]\nkind = 'upload'\n"),
              HasSubstr("extents is missing"));
  EXPECT_THAT(Mistake("[[operation]]\nkind = 'program'\n"),
              HasSubstr("statements is missing"));
}

TEST(MixTest, SubscriptsFitTheOperationAndItsExtents) {
  const auto mistake = [](const std::string& subscripts,
                          const std::string& extents) {
    return Mistake("[[operation]]\nkind = 'contract'\nsubscripts = '" +
                   subscripts + "'\nextents = {" + extents + "}\n");
  };
  EXPECT_THAT(mistake("ik,kj->ij", "i = 1, j = 1"),
              HasSubstr("extents lacks 'k' of 'ik,kj->ij'"));
  EXPECT_THAT(mistake("ik,kj->ij", "i = 1, j = 1, k = 1, l = 1"),
              HasSubstr("extents.l is no mode of 'ik,kj->ij'"));
  EXPECT_THAT(mistake("ik,kj->ij", "i = 1, j = 1, k = -1"),
              HasSubstr("extents.k is -1, wanted a whole number"));
  EXPECT_THAT(mistake("ik,kj->ij", "i = 1, j = 1, k = 1.5"),
              HasSubstr("extents.k is 1.5, wanted a whole number"));
  EXPECT_THAT(mistake("ik->i", "i = 1, k = 1"),
              HasSubstr("is 'ik->i', with 1 terms; wanted 2 to 3"));
  EXPECT_THAT(mistake("ik,kj", "i = 1, j = 1, k = 1"),
              HasSubstr("wanted modes of what goes in and of what comes out"));
  EXPECT_THAT(mistake("...k,kj->...j", "j = 1, k = 1"),
              HasSubstr("wanted one letter a mode"));
}

TEST(MixTest, TextThatIsNotTomlIsToldWithItsLine) {
  EXPECT_THAT(Mistake("name = 'x'\njob = \n"), HasSubstr("mix.toml:2: "));
}

TEST(MixTest, LettersAreToldWhereTheyCannotBe) {
  for (const char* const letter : {"\u00e9", "\u3042", "\ufefd"}) {
    const std::string key =
        std::string("name = \"a\"\nextents") + letter + " = 1";
    EXPECT_THAT(Mistake(key), HasSubstr("mix.toml:2"));
    EXPECT_THAT(Mistake(std::string("name = ") + letter),
                HasSubstr("mix.toml:1"));
  }
}

TEST(MixTest, FilesThatCannotBeReadAreTold) {
  const auto mix = ReadMix("/nowhere/mix.toml");
  EXPECT_EQ(mix.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(mix.status().message()),
              HasSubstr("'/nowhere/mix.toml'"));
  EXPECT_FALSE(ReadMix("/").ok());
}

}  // namespace
}  // namespace tensord::load
