#include "core/notation/parse_program.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/notation/to_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/notation/syntax_dump.h"

namespace tensord::core::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ProgramSyntax Parsed(absl::string_view text) {
  const auto program = ParseProgram(text);
  EXPECT_TRUE(program.ok()) << text << "\n" << program.status();
  return program.value_or(ProgramSyntax{});
}

Statement OnlyStatement(absl::string_view text) {
  const ProgramSyntax program = Parsed(text);
  EXPECT_THAT(program.statements, SizeIs(1));
  return program.statements.empty() ? Statement{} : program.statements[0];
}

std::string Canonical(absl::string_view text) { return ToText(Parsed(text)); }

const TensorReference& TensorIn(const Factor& factor) {
  return std::get<TensorReference>(factor.value);
}

// C1, C4
TEST(ParseProgramTest, ReadmesFirstExampleStoresAndCreates) {
  const ProgramSyntax program = Parsed(
      "D[a,b,c] = A[a,e,f,c,f,g]*B[g,b,e] + α*C[c,a,b]\n"
      "E[a,b,c] := A[a,e,f,c,f,g]*B[g,b,e] + α*C[c,a,b]\n");
  ASSERT_THAT(program.statements, SizeIs(2));
  const Statement& stored = program.statements[0];
  EXPECT_EQ(stored.assignment, Assignment::kStore);
  EXPECT_EQ(stored.output.name, "D");
  EXPECT_EQ(Dump(stored.output.labels), "a,b,c");
  EXPECT_THAT(stored.value.labels, ElementsAre("a", "c", "b"));
  ASSERT_THAT(stored.value.terms, SizeIs(2));
  const Term& product = stored.value.terms[0];
  ASSERT_THAT(product.factors, SizeIs(2));
  EXPECT_EQ(Dump(TensorIn(product.factors[0]).labels), "a,e,f,c,f,g");
  const Term& scaled = stored.value.terms[1];
  ASSERT_THAT(scaled.factors, SizeIs(2));
  EXPECT_EQ(TensorIn(scaled.factors[0]).name, "α");
  EXPECT_FALSE(TensorIn(scaled.factors[0]).has_brackets);

  const Statement& created = program.statements[1];
  EXPECT_EQ(created.assignment, Assignment::kCreate);
  EXPECT_EQ(Dump(created.value), Dump(stored.value));
}

// C7
TEST(ParseProgramTest, LabelsAreNamesPrimesIntegersAndCharacters) {
  const Statement statement =
      OnlyStatement("D[å,ß,c'] = A[å,1,'f',c','f',2]*B[2,ß,1] + α*C[c',å,ß]");
  EXPECT_EQ(Dump(statement.output.labels), "å,ß,c'");
  EXPECT_THAT(statement.value.labels, ElementsAre("å", "c'", "ß"));
  const Labels& labels = TensorIn(statement.value.terms[0].factors[0]).labels;
  EXPECT_EQ(Dump(labels), "å,1,'f',c','f',2");
  EXPECT_EQ(labels[5].position, (TextPosition{1, 30}));
  EXPECT_FALSE(statement.value.terms[0].is_ncon);
}

TEST(ParseProgramTest, EqualIntegersAreOneLabelHoweverTheyAreWritten) {
  EXPECT_EQ(Canonical("D[1, - 2] = A[01,007,7]*B[-02]"),
            "D[1,-2] = A[1,7,7]*B[-2]\n");
}

TEST(ParseProgramTest, NamesCharactersAndPrimesAreDifferentLabels) {
  EXPECT_THAT(OnlyStatement("D[f,'f',f',f''] = A[f'',f',f,'f']").value.labels,
              ElementsAre("f''", "f'", "f", "'f'"));
}

// C11
TEST(ParseProgramTest, ColonStandsForNegativeLabelsDescending) {
  const Statement statement =
      OnlyStatement("D[:] := A[-1,3,1,-2,2]*B[3,2,4,-5]*C[1,4,-4,-3]");
  EXPECT_EQ(Dump(statement.output.labels), "-1,-2,-3,-4,-5");
  EXPECT_TRUE(statement.value.terms[0].is_ncon);
  EXPECT_THAT(statement.value.labels,
              ElementsAre("-1", "-2", "-5", "-4", "-3"));
}

// C12
TEST(ParseProgramTest, NconTakesAnyOrderOfTheOutput) {
  const Statement statement = OnlyStatement("D[-2,-1] := A[-1,1]*B[1,-2]");
  EXPECT_EQ(Dump(statement.output.labels), "-2,-1");
  EXPECT_TRUE(statement.value.terms[0].is_ncon);
}

TEST(ParseProgramTest, NconOfScalarsAndGaps) {
  EXPECT_EQ(Canonical("D[:] = A[1,2]*B[2,1]"), "D[] = A[1,2]*B[2,1]\n");
  EXPECT_EQ(Canonical("D[:] = A[-7,-3]"), "D[-3,-7] = A[-7,-3]\n");
}

TEST(ParseProgramTest, OtherLabelsAreNotNcon) {
  for (const char* text :
       {"D[1] = A[1,2]*B[2]", "D[-1] = A[-1,-2]*B[-2]", "D[] = A[0]*B[0]",
        "D[-1] = A[-1,k]*B[k]", "D = alpha*beta", "D['1'] = A['1']"}) {
    EXPECT_FALSE(OnlyStatement(text).value.terms[0].is_ncon) << text;
  }
}

TEST(ParseProgramTest, NconHoldsInGroups) {
  const Statement statement =
      OnlyStatement("D[:] = A[-1,1]*(2*B[1,2]*C[2,3] - E[1,3])*F[3,-2]");
  const Term& term = statement.value.terms[0];
  EXPECT_TRUE(term.is_ncon);
  const Sum& group = *term.factors[1].group();
  EXPECT_THAT(group.labels, ElementsAre("1", "3"));
  EXPECT_TRUE(group.terms[0].is_ncon);
  EXPECT_TRUE(group.terms[1].is_ncon);
}

// C5, C6
TEST(ParseProgramTest, LinearCombinationAccumulates) {
  const Statement statement =
      OnlyStatement("D[a,b,c] += α*A[a,c,b] + B[a,d,b,d,c] - conj(C[c,b,a])");
  EXPECT_EQ(statement.assignment, Assignment::kAdd);
  const std::vector<Term>& terms = statement.value.terms;
  ASSERT_THAT(terms, SizeIs(3));
  EXPECT_FALSE(terms[1].is_negated);
  EXPECT_TRUE(terms[2].is_negated);
  EXPECT_TRUE(terms[2].factors[0].is_conjugated);
  EXPECT_EQ(TensorIn(terms[2].factors[0]).name, "C");
  EXPECT_EQ(terms[2].factors[0].position, (TextPosition{1, 41}));
  EXPECT_EQ(TensorIn(terms[2].factors[0]).position, (TextPosition{1, 46}));
}

TEST(ParseProgramTest, SignsMoveToTheTerm) {
  EXPECT_EQ(Canonical("D[a] -= -A[a]*-2 - - +B[a]/-x"),
            "D[a] -= A[a]*2 - B[a]/x\n");
}

TEST(ParseProgramTest, ConjugatesOfConjugatesCancel) {
  EXPECT_EQ(Canonical("D[a] = conj(conj(A[a])) + conj((A[a])) "
                      "+ conj(conj(A[a]*B)) + conj(-A[a])*conj(2j)/conj(x)"),
            "D[a] = A[a] + conj((A[a])) + (A[a]*B) "
            "+ conj(-A[a])*conj(2im)/conj(x)\n");
}

// C10
TEST(ParseProgramTest, ParenthesesStay) {
  const Statement statement =
      OnlyStatement("D[i,l] = A[i,j]*(B[j,k]*C[k,l,m]*v[m])*(1 + x)");
  const std::vector<Factor>& factors = statement.value.terms[0].factors;
  ASSERT_THAT(factors, SizeIs(3));
  EXPECT_THAT(factors[1].group()->labels, ElementsAre("j", "l"));
  EXPECT_THAT(factors[2].group()->labels, IsEmpty());
  EXPECT_THAT(statement.value.labels, ElementsAre("i", "l"));
}

TEST(ParseProgramTest, FunctionsHaveTheLabelsOfAllArguments) {
  const Statement statement =
      OnlyStatement("D[i,j,k] = where(A[j] > 0, B[k,i,l]*B[l,i,j], x)*C[k]");
  const Call& call = *statement.value.terms[0].factors[0].call();
  EXPECT_EQ(call.function, ElementFunction(BinaryOperator::kWhere));
  EXPECT_THAT(call.labels, ElementsAre("j", "k", "i"));
  ASSERT_THAT(call.arguments, SizeIs(3));
  EXPECT_THAT(call.arguments[1].labels, ElementsAre("k", "i", "j"));
  EXPECT_THAT(call.arguments[2].labels, IsEmpty());
  const Call& condition = *call.arguments[0].terms[0].factors[0].call();
  EXPECT_EQ(condition.function, ElementFunction(BinaryOperator::kGreater));
  EXPECT_THAT(condition.labels, ElementsAre("j"));
}

TEST(ParseProgramTest, PowersBindMoreThanSignsAndToTheRight) {
  EXPECT_EQ(Canonical("D = -A^2*B"), "D = -(A)^(2)*B\n");
  EXPECT_EQ(Canonical("D = 2**-A**B"), "D = (2)^(-(A)^(B))\n");
  EXPECT_EQ(Canonical("D[i] = (A[i] + 1)^2/B[i]^(1 - x)"),
            "D[i] = (A[i] + 1)^(2)/(B[i])^(1 - x)\n");
  EXPECT_EQ(Canonical("D[i] = A[i]'^2"), "D[i] = (conj(A[i]))^(2)\n");
  EXPECT_EQ(Canonical("D[i] = (A[i]^2)'"), "D[i] = conj((A[i])^(2))\n");
}

TEST(ParseProgramTest, ComparisonsStandInParenthesesOrAlone) {
  EXPECT_EQ(Canonical("D[i] = A[i] + B[i] <= 2*x"),
            "D[i] = (A[i] + B[i] <= 2*x)\n");
  EXPECT_EQ(Canonical("D[i] = ((A[i] == 1))*(B[i] != C[i])'"),
            "D[i] = (A[i] == 1)*conj((B[i] != C[i]))\n");
  EXPECT_EQ(Canonical("D[i] = maximum(A[i] >= 1, minimum(B[i] < C[i], 2))"),
            "D[i] = max((A[i] >= 1),min((B[i] < C[i]),2))\n");
}

TEST(ParseProgramTest, TensorsStandWhereLabelsWould) {
  const Statement statement = OnlyStatement("D[k,i] = A[I[i],k,J[K[k]]]*2");
  const Call& last = *statement.value.terms[0].factors[0].call();
  EXPECT_EQ(last.function, ElementFunction(BinaryOperator::kTake));
  EXPECT_EQ(last.taken, "J[K[k]]#2");
  EXPECT_THAT(last.labels, ElementsAre("k", "i"));
  ASSERT_THAT(last.arguments, SizeIs(2));
  EXPECT_THAT(last.arguments[0].labels, ElementsAre("k", "J[K[k]]#2", "i"));
  const Call& first = *last.arguments[0].terms[0].factors[0].call();
  EXPECT_EQ(first.taken, "I[i]#0");
  EXPECT_THAT(first.arguments[0].labels,
              ElementsAre("I[i]#0", "k", "J[K[k]]#2"));
  const Call& of_indices = *last.arguments[1].terms[0].factors[0].call();
  EXPECT_EQ(of_indices.taken, "K[k]#0");

  EXPECT_EQ(Canonical("D[i] = A[I[i] , I[i]]' + B[ J[] i]"),
            "D[i] = conj(A[I[i],I[i]]) + B[J[],i]\n");
  EXPECT_EQ(Canonical("D[i,j] := A[I[i];j]/B[j,I[i]]"),
            "D[i,j] := A[I[i],j]/B[j,I[i]]\n");
}

TEST(ParseProgramTest, FunctionsAreNamesWhereNoParenthesisFollows) {
  EXPECT_EQ(Canonical("sqrt[i] = max[i]*exp*where [i]/abs"),
            "sqrt[i] = max[i]*exp*where[i]/abs\n");
}

TEST(ParseProgramTest, DivisorsSumTheirLabelsUnlessOneIsOpen) {
  const auto has_own = [](absl::string_view text) {
    return OnlyStatement(text).value.terms[0].factors[1].has_own_labels;
  };
  EXPECT_TRUE(has_own("D[i] = A[i]/B[j,j]"));
  EXPECT_TRUE(has_own("D[i] = A[i]/(B[i]*B[i])"));
  EXPECT_TRUE(has_own("D[i] = A[i]/sqrt(B[j]*B[j])"));
  EXPECT_TRUE(has_own("D[i] = A[i]/tensorscalar(B[i,i])"));
  EXPECT_TRUE(has_own("D[i] = A[i]/(2 + B[j,j])"));
  EXPECT_FALSE(has_own("D[i] = A[i]/B[i]"));
  EXPECT_FALSE(has_own("D[i] = A[i]/B[i,i]"));
  EXPECT_FALSE(has_own("D[i] = A[i]/sqrt(B[i]*B[i])"));
  EXPECT_FALSE(has_own("D[i] = A[i,j]/(B[j] + C[j])"));
  EXPECT_FALSE(has_own("D[i] = A[i]/(B[i]*B[i] + E[i])"));
}

TEST(ParseProgramTest, LabelsOfTheOutputCountOnceInFunctionsAndDivisors) {
  Parsed("D[i] = A[i]*exp(B[i]*C[i])");
  Parsed("D[i] = (A[i]*B[i])*C[i] + (A[i]/B[i])/C[i]");
  Parsed("D[i,j] = A[i,j]/(B[i,j]*C[j])");
  Parsed("D[:] = A[-1,1]*exp(B[1,-2]*C[-2])");
}

TEST(ParseProgramTest, TermsWithoutLabelsGoWithAny) {
  const Statement statement =
      OnlyStatement("D[i] = 1 + (x - A[i] + tensorscalar(B[i,i]))");
  EXPECT_THAT(statement.value.labels, ElementsAre("i"));
  EXPECT_FALSE(statement.value.terms[0].has_labels);
  const Sum& group = *statement.value.terms[1].factors[0].group();
  EXPECT_THAT(group.labels, ElementsAre("i"));
  EXPECT_FALSE(group.terms[2].has_labels);
  EXPECT_EQ(OnlyStatement("D[:] = 2 - A[-2,-1]").output.labels.size(), 2);
  EXPECT_FALSE(OnlyStatement("D[i] += x - 1").value.terms[1].has_labels);
}

TEST(ParseProgramTest, LabelTwiceInATermIsABatchWhenTheOutputHasIt) {
  EXPECT_THAT(OnlyStatement("D[b,i] = A[i,k,b]*B[k,b]").value.labels,
              ElementsAre("i", "b"));
  const Statement grouped =
      OnlyStatement("D[b] = x*(A[b]*B[b] + C[b] + E[b,b])*(1 + y)");
  EXPECT_THAT(grouped.value.terms[0].factors[1].group()->labels,
              ElementsAre("b"));
  EXPECT_THAT(OnlyStatement("D[b] = A[b,b] + C[b]").value.labels,
              ElementsAre("b"));
}

TEST(ParseProgramTest, TermsSumTheirOwnLabels) {
  EXPECT_EQ(Canonical("D[a] = A[a,i,i] + (B[i]*C[i])*E[a] + F[a]"),
            "D[a] = A[a,i,i] + (B[i]*C[i])*E[a] + F[a]\n");
  EXPECT_THAT(OnlyStatement("D[a] = (A[a,j,i,i] + B[j,a])*(C[j] - E[j])")
                  .value.terms[0]
                  .factors[0]
                  .group()
                  ->labels,
              ElementsAre("a", "j"));
}

TEST(ParseProgramTest, NamesWithoutBracketsHaveNoLabels) {
  const Statement statement = OnlyStatement("s = A[]*B*2.5/t");
  EXPECT_FALSE(statement.output.has_brackets);
  const std::vector<Factor>& factors = statement.value.terms[0].factors;
  ASSERT_THAT(factors, SizeIs(4));
  EXPECT_TRUE(TensorIn(factors[0]).has_brackets);
  EXPECT_FALSE(TensorIn(factors[1]).has_brackets);
  EXPECT_EQ(std::get<Scalar>(factors[2].value), (Scalar{2.5, 0}));
  EXPECT_TRUE(factors[3].is_divisor);
}

TEST(ParseProgramTest, NumbersAreDecimalAndMayBeImaginary) {
  const Statement statement =
      OnlyStatement("s = 1*.5*2.*1e3*25E-1*1e+2im*2.5j*0.1");
  std::vector<Scalar> numbers;
  for (const Factor& factor : statement.value.terms[0].factors) {
    numbers.push_back(std::get<Scalar>(factor.value));
  }
  EXPECT_THAT(numbers,
              ElementsAre(Scalar{1, 0}, Scalar{0.5, 0}, Scalar{2, 0},
                          Scalar{1000, 0}, Scalar{2.5, 0}, Scalar{0, 100},
                          Scalar{0, 2.5}, Scalar{0.1, 0}));
}

TEST(ParseProgramTest, NamesMayLookLikeUnits) {
  EXPECT_EQ(Canonical("j = im*j*e1*_x1'"), "j = im*j*e1*_x1'\n");
}

TEST(ParseProgramTest, LinesGoOnBehindOperatorsCommasAndInBrackets) {
  EXPECT_EQ(Canonical("# two statements\r\n"
                      "D[a,\n"
                      "  b] :=  # created\n"
                      "\n"
                      "    A[a,b] +\r"
                      "    (B[b,a]\n"
                      "     - C[a,b]); ;\n"
                      "\t\xc2\xa0"
                      "E[a] = A[a,\r\n"
                      "         # in between\n"
                      "         i,i] # the end"),
            "D[a,b] := A[a,b] + (B[b,a] - C[a,b])\n"
            "E[a] = A[a,i,i]\n");
}

TEST(ParseProgramTest, PositionsCountLinesAndCharacters) {
  const ProgramSyntax program =
      Parsed("å[ß] = 2*ñ[ß];\r\n\r\n  D = å'[\n é,é]");
  ASSERT_THAT(program.statements, SizeIs(2));
  const Factor& first = program.statements[0].value.terms[0].factors[1];
  EXPECT_EQ(first.position, (TextPosition{1, 10}));
  EXPECT_EQ(program.statements[1].output.position, (TextPosition{3, 3}));
  const Factor& second = program.statements[1].value.terms[0].factors[0];
  EXPECT_EQ(second.position, (TextPosition{3, 7}));
  EXPECT_EQ(TensorIn(second).labels[1].position, (TextPosition{4, 4}));
}

TEST(ParseProgramTest, TextWithoutStatementsIsEmpty) {
  for (const char* text : {"", " \n;;\r\n", "# nothing", "\xef\xbb\xbf"}) {
    EXPECT_THAT(Parsed(text).statements, IsEmpty()) << text;
  }
}

TEST(ParseProgramTest, LettersOfAnyAlphabetMakeNames) {
  for (const char* name : {"χ", "ψ'", "Ж1", "字", "ا", "א_2", "क", "ℏ", "x₁",
                           "x²", "e\u0301", "𝒜", "x′", "x″", "한"}) {
    const std::string text =
        absl::StrCat(name, "[", name, "] = A[", name, "]\n");
    EXPECT_EQ(Canonical(text), text);
  }
}

TEST(ParseProgramTest, QuotedCharactersMayBeSymbols) {
  EXPECT_EQ(Canonical("D[']','#'] = A['#',']',';',';', ' ' ,' ']"),
            "D[']','#'] = A['#',']',';',';',' ',' ']\n");
}

TEST(ParseProgramTest, ReadsFunctionsOfMatrices) {
  const Statement statement = OnlyStatement(
      "U[a,k], S[k],\n V[k,b] := svd(2*A[a,x]*B[x,b];\n rank=64, cutoff=eps')");
  EXPECT_EQ(statement.output.name, "U");
  ASSERT_THAT(statement.others, SizeIs(2));
  EXPECT_EQ(statement.others[1].name, "V");
  EXPECT_EQ(Dump(statement.others[1].labels), "k,b");
  EXPECT_THAT(statement.value.terms, SizeIs(0));
  ASSERT_TRUE(statement.call.has_value());
  const StatementCall& call = *statement.call;
  EXPECT_EQ(call.method, FactorizationMethod::kSvd);
  EXPECT_EQ(call.position, (TextPosition{2, 12}));
  ASSERT_THAT(call.arguments, SizeIs(1));
  EXPECT_THAT(call.arguments[0].labels, ElementsAre("a", "b"));
  ASSERT_THAT(call.options, SizeIs(2));
  EXPECT_EQ(std::get<double>(call.options[0].value), 64);
}

TEST(ParseProgramTest, OptionsAreNumbersAndNames) {
  const Statement statement = OnlyStatement(
      "X[j,s] = solve(A[i,j], B[i,s] - C[s,i]'; structure=hermitian, y=-1.5)");
  ASSERT_TRUE(statement.call.has_value());
  EXPECT_FALSE(statement.call->method.has_value());
  EXPECT_THAT(statement.call->arguments[1].labels, ElementsAre("i", "s"));
  ASSERT_THAT(statement.call->options, SizeIs(2));
  EXPECT_EQ(statement.call->options[0].name, "structure");
  EXPECT_EQ(std::get<std::string>(statement.call->options[0].value),
            "hermitian");
  EXPECT_EQ(std::get<double>(statement.call->options[1].value), -1.5);
}

TEST(ParseProgramTest, ReadsFunctionsAlongALabel) {
  const Statement statement =
      OnlyStatement("I[a,b'] := argsort(2*A[a,b']; along=b', descending=true)");
  ASSERT_TRUE(statement.call.has_value());
  EXPECT_EQ(statement.call->along, AlongFunction::kArgsort);
  EXPECT_FALSE(statement.call->method.has_value());
  EXPECT_FALSE(statement.call->solves());
  ASSERT_THAT(statement.call->options, SizeIs(2));
  EXPECT_EQ(std::get<std::string>(statement.call->options[0].value), "b'");
  EXPECT_EQ(Canonical("D[1,-2] = cumsum(A[1,-2]; along=-2)"),
            "D[1,-2] = cumsum(A[1,-2]; along=-2)\n");
  EXPECT_EQ(Canonical("D['f'] := cummin(A['f']*B['f']; along='f')"),
            "D['f'] := cummin(A['f']*B['f']; along='f')\n");
  EXPECT_FALSE(OnlyStatement("D[i] := cumsum[i]*argsort[i]").call);
}

TEST(ParseProgramTest, FactorsOfFunctionsOfMatricesCountOneByOne) {
  const NotationLimits limits{.max_factors = 3};
  const std::string text =
      "L[i,k] := cholesky(A[i,l]*B[l,j]); L[i,k] := cholesky(A[i,l]*B[l,j])\n"
      "X[j,s] := solve(A[i,l]*B[l,j], A[i,l]*B[l,s])";
  EXPECT_EQ(ParseProgram(text, limits).status(), absl::OkStatus());
  EXPECT_EQ(ReasonOf(ParseProgram(text, {.max_factors = 1}).status()),
            "PROGRAM_TOO_LONG");
}

TEST(ParseProgramTest, NamesOfStatementFunctionsAreNamesWithoutParentheses) {
  EXPECT_FALSE(OnlyStatement("D[i,j] := svd[i,j]*qr + inv[i,j]").call);
  EXPECT_FALSE(OnlyStatement("svd[i] += solve").call);
}

}  // namespace
}  // namespace tensord::core::test
