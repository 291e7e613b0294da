// What TensorOperations.jl takes besides, and how it is written here.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/notation/parse_program.h"
#include "core/notation/to_text.h"
#include "gtest/gtest.h"

namespace tensord::core::test {
namespace {

/// Expects each first text to be written as the second.
void ExpectWritten(
    const std::vector<std::pair<std::string, std::string>>& pairs) {
  for (const auto& [text, written] : pairs) {
    const auto program = ParseProgram(text);
    ASSERT_TRUE(program.ok()) << text << "\n" << program.status();
    EXPECT_EQ(ToText(*program), absl::StrCat(written, "\n")) << text;
    const auto again = ParseProgram(ToText(*program));
    ASSERT_TRUE(again.ok()) << written << "\n" << again.status();
    EXPECT_EQ(ToText(*again), ToText(*program));
  }
}

TEST(TensorOperationsTest, LabelsMayBeSeparatedByBlanks) {
  ExpectWritten({{"D[a b] := A[a k]*B[k b]", "D[a,b] := A[a,k]*B[k,b]"},
                 {"D[a'  b] = A[ a' k ]*B[k\tb]", "D[a',b] = A[a',k]*B[k,b]"},
                 {"s = A[1 2\n 1 2]", "s = A[1,2,1,2]"},
                 {"D['f' 'g'] = A['f' 'g']", "D['f','g'] = A['f','g']"},
                 {"D[:] = A[-1 1]*B[1 -2]", "D[-1,-2] = A[-1,1]*B[1,-2]"},
                 {"D[- 1 -2] = A[-1, - 2]", "D[-1,-2] = A[-1,-2]"}});
}

TEST(TensorOperationsTest, LabelsMayComeInTwoGroups) {
  ExpectWritten(
      {{"s = A[1 2; 6]*B[1 2; 6]", "s = A[1,2,6]*B[1,2,6]"},
       {"D[a, b; c] = A[c; a b]", "D[a,b,c] = A[c,a,b]"},
       {"D[a;b] = A[(a);(b)]", "D[a,b] = A[a,b]"},
       {"D[a;b] = A[(a,);(b,)]", "D[a,b] = A[a,b]"},
       {"D[(); a b] = A[(); (a, b)]", "D[a,b] = A[a,b]"},
       {"D[a b; ()] = A[(a,b);()]", "D[a,b] = A[a,b]"},
       {"s = A[();()]", "s = A[]"},
       {"D[a;b] = A[a;b]; E[c] = F[c]", "D[a,b] = A[a,b]\nE[c] = F[c]"}});
}

TEST(TensorOperationsTest, PrimesBehindBracketsConjugate) {
  ExpectWritten({{"D[x,z] = (b[x,z])'", "D[x,z] = conj(b[x,z])"},
                 {"D[x] = A[x]'", "D[x] = conj(A[x])"},
                 {"D[x] = A[x]''", "D[x] = A[x]"},
                 {"D[x] = conj(A[x])'", "D[x] = A[x]"},
                 {"D[x] = (A[x] + 2im*B[x])'", "D[x] = conj(A[x] + 2im*B[x])"},
                 {"D[x] = (A[x]*y)''", "D[x] = (A[x]*y)"},
                 {"D[x] = ((A[x]))'", "D[x] = conj((A[x]))"},
                 {"D[x] = (-A[x])'", "D[x] = conj(-A[x])"},
                 {"D[x'] = adjoint(A[x'])*(y)'", "D[x'] = conj(A[x'])*conj(y)"},
                 {"D = A[x']'*B[x']", "D = conj(A[x'])*B[x']"},
                 {"D['x'] = A['x']'*B['x']", "D['x'] = conj(A['x'])*B['x']"}});
}

TEST(TensorOperationsTest, WhatStandsBeforeABackslashDivides) {
  ExpectWritten(
      {{"D[x] = 2 \\ A[x]", "D[x] = A[x]/2"},
       {"D[x] = a*b \\ A[x,y]*B[y]", "D[x] = A[x,y]*B[y]/a/b"},
       {"D[x] = a/b \\ A[x]", "D[x] = A[x]/a*b"},
       {"D[x] = 2 \\ 3 \\ A[x]", "D[x] = A[x]/3*2"},
       {"D[x] = -2 \\ -A[x] - s[] \\\nB[x]/c", "D[x] = A[x]/2 - B[x]/c/s[]"},
       {"D[x] = conj(a) \\ (b + 1) \\ A[x]", "D[x] = A[x]/(b + 1)*conj(a)"},
       {"s = 2 \\ 1", "s = 1/2"},
       {"D[x] = tensorscalar(A[i]*A[i]) \\ A[x]",
        "D[x] = A[x]/tensorscalar(A[i]*A[i])"}});
}

TEST(TensorOperationsTest, WhatHasNoLabelsDivides) {
  ExpectWritten({{"D[x] = A[x]/(2*a)/s[]", "D[x] = A[x]/(2*a)/s[]"},
                 {"D[a,c] = A[a,b]*B[b,c]/tensorscalar(D[b,b])/(D[a,a])",
                  "D[a,c] = A[a,b]*B[b,c]/tensorscalar(D[b,b])/(D[a,a])"},
                 {"D[a,c] = scalar(D[b,b]) \\ (A[a,b]*B[b,c])",
                  "D[a,c] = (A[a,b]*B[b,c])/tensorscalar(D[b,b])"},
                 {"D[x] = A[x]/(B[i]*B[i])'", "D[x] = A[x]/conj(B[i]*B[i])"}});
}

TEST(TensorOperationsTest, TensorscalarIsAGroupWithoutLabels) {
  ExpectWritten(
      {{"s = tensorscalar(A[a,b]*B[b,a])", "s = tensorscalar(A[a,b]*B[b,a])"},
       {"s = scalar(A[a,a])", "s = tensorscalar(A[a,a])"},
       {"D[a] = 2*conj(tensorscalar(A[b,b] + 1))*C[a]",
        "D[a] = 2*conj(tensorscalar(A[b,b] + 1))*C[a]"},
       {"D[x,y] = B[x,z]*tensorscalar(C[z,z])*D[z,y]",
        "D[x,y] = B[x,z]*tensorscalar(C[z,z])*D[z,y]"},
       {"D[:] = A[-1,1]*tensorscalar(B[1,-1]*B[1,-1])*B[1,-2]",
        "D[-1,-2] = A[-1,1]*tensorscalar(B[1,-1]*B[1,-1])*B[1,-2]"},
       {"s = tensorscalar(A[])'", "s = conj(tensorscalar(A[]))"},
       {"s = (tensorscalar(A))''", "s = tensorscalar(A)"},
       {"s = conj((tensorscalar(A)))", "s = conj((tensorscalar(A)))"}});
}

TEST(TensorOperationsTest, DiagonalIsAMatrix) {
  ExpectWritten({{"D[a,b] := Diagonal(B)[a,b]", "D[a,b] := Diagonal(B)[a,b]"},
                 {"D[a,b] := A[a,k]*Diagonal( b')[k b]'",
                  "D[a,b] := A[a,k]*conj(Diagonal(b')[k,b])"},
                 {"s = Diagonal(B)[a;a]", "s = Diagonal(B)[a,a]"}});
}

TEST(TensorOperationsTest, FunctionsAreNamesWithoutAParenthesis) {
  for (const char* name : {"Diagonal", "tensorscalar", "scalar", "adjoint"}) {
    const std::string text = absl::StrCat(name, "[", name, "] = ", name, "[",
                                          name, "]*", name, "/", name);
    ExpectWritten({{text, text}});
  }
}

TEST(TensorOperationsTest, DefinitionsMayBeOneCharacter) {
  ExpectWritten({{"D[a]≔A[a]", "D[a] := A[a]"}});
}

TEST(TensorOperationsTest, ManyLeftDivisionsAreReadFast) {
  std::string text = "D = 1";
  for (int i = 0; i < 4000; ++i) text += "\\1";
  std::string all;
  for (int i = 0; i < 100; ++i) absl::StrAppend(&all, text, "\n");
  EXPECT_TRUE(ParseProgram(all).ok());
}

}  // namespace
}  // namespace tensord::core::test
