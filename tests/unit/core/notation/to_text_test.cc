#include "core/notation/to_text.h"

#include <random>
#include <string>

#include "core/notation/parse_program.h"
#include "gtest/gtest.h"
#include "tests/unit/core/notation/random_program.h"
#include "tests/unit/core/notation/syntax_dump.h"

namespace tensord::core::test {
namespace {

TEST(ToTextTest, WritesCanonicalForm) {
  const auto program = ParseProgram(
      "D [ a,b ]:=2.50*A[ a , k]* conj( B[k,b] )-(x+ -1e2j)/ alpha*E[ b,a ];"
      "F=+conj( - D[01,1] )");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(ToText(*program),
            "D[a,b] := 2.5*A[a,k]*conj(B[k,b]) - (x - 100im)/alpha*E[b,a]\n"
            "F = conj(-D[1,1])\n");
}

TEST(ToTextTest, EveryFormReadsBackAsItself) {
  for (const char* text :
       {"D = A\n", "D[] -= -A[]\n", "D[a] += (((A[a])))\n",
        "D[a] = conj((A[a]))\n", "D[a] = conj((conj((conj(A[a])))))\n",
        "D[a] = conj(A[a] + B[a])*(conj(x) - 1im)/conj(2im)\n",
        "D[a] = conj(-A[a])\n", "D[a] = conj(-(A[a]))\n",
        "D[a] = conj(2*A[a])\n", "D = 1e-300*5e-324*0.1*1e+22\n",
        "D[-1,'a',a',2] := A[2,a','a',-1]\n",
        "U[i,k], V[k,j] = svd(A[i,j] - 2*B[j,i]; rank=3, absorb=left)\n",
        "X[j,s] := solve(A[i,j],B[i,s]; unit_diagonal=true, cutoff=-1e-10)\n",
        "X[j,r] := inv(A[i,j])\n",
        "E[i,j] := expm(A[i,j]/2; structure=hermitian)\n",
        "U[i,k], V[k,j] := svd(A[i,j]; rank=3, randomized=true, seed=7)\n"}) {
    const auto program = ParseProgram(text);
    ASSERT_TRUE(program.ok()) << text << program.status();
    EXPECT_EQ(ToText(*program), text);
  }
}

TEST(ToTextTest, RandomProgramsAreReadAndReadBack) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const RandomProgram random = MakeRandomProgram(rng);
    SCOPED_TRACE(random.text);
    const auto program = ParseProgram(random.text);
    ASSERT_TRUE(program.ok()) << program.status();
    ASSERT_EQ(Dump(*program), Dump(random.syntax));
    const auto again = ParseProgram(ToText(*program));
    ASSERT_TRUE(again.ok()) << ToText(*program) << again.status();
    ASSERT_EQ(Dump(*again), Dump(random.syntax));
    ASSERT_EQ(ToText(*again), ToText(*program));
  }
}

}  // namespace
}  // namespace tensord::core::test
