// Programs through the client, against the server in a process of its own.
// Numbers are small integers: exact in any order of summation.
#include "tensord/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "tensord/plan_cache.h"
#include "tensord/session.h"
#include "tests/testing/places.h"
#include "tests/testing/server_process.h"

namespace tensord {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ServerProcess;
using ::testing::SizeIs;
using Doubles = std::vector<double>;

class ProgramTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_.emplace(testing::Built("tensord")); }
  static void TearDownTestSuite() { server_.reset(); }

  RemoteTensor Upload(const Doubles& values, std::vector<int64_t> extents) {
    return session_.Upload(HostView<double>{values.data(), std::move(extents)})
        .value();
  }
  RemoteTensor Square(const Doubles& values) { return Upload(values, {2, 2}); }

  static Doubles ValuesOf(const absl::StatusOr<RemoteTensor>& tensor) {
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    return tensor.ok() ? tensor->Download<double>().value() : Doubles();
  }

  static std::optional<ServerProcess> server_;
  Session session_ =
      Session::Connect(server_->address(), {.job = "programs"}).value();
};

std::optional<ServerProcess> ProgramTest::server_;

/// A random row-major matrix.
struct Matrix {
  int64_t rows, columns;
  Doubles values;
};

Matrix RandomMatrix(std::mt19937& rng, int64_t rows, int64_t columns) {
  Matrix matrix{rows, columns, {}};
  for (int64_t i = 0; i < rows * columns; ++i) {
    matrix.values.push_back(static_cast<double>(rng() % 7) - 3);
  }
  return matrix;
}

Matrix Product(const Matrix& a, const Matrix& b) {
  Matrix d{a.rows, b.columns, Doubles(a.rows * b.columns)};
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) {
      for (int64_t k = 0; k < b.columns; ++k) {
        d.values[i * b.columns + k] +=
            a.values[i * a.columns + j] * b.values[j * b.columns + k];
      }
    }
  }
  return d;
}

TEST_F(ProgramTest, EinsumTakesAnyNumberOfTensors) {
  const auto a = Square({1, 2, 3, 4}), b = Square({0, 1, 1, 0});
  const auto c = Square({1, 0, 0, 2});
  EXPECT_EQ(ValuesOf(session_.Einsum("ij,jk,kl->il", {a, b, c})),
            (Doubles{2, 2, 4, 6}));
  EXPECT_EQ(ValuesOf(session_.Einsum("ij,jk,kl,lm", {a, b, c, b})),
            (Doubles{2, 2, 6, 4}));
  EXPECT_EQ(ValuesOf(session_.Einsum("ij->ji", {a})), (Doubles{1, 3, 2, 4}));
}

TEST_F(ProgramTest, EinsumOfAChainIsTheProductOfItsMatrices) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const size_t count = 2 + rng() % 5;
    std::vector<Matrix> chain;
    std::vector<RemoteTensor> tensors;
    std::string subscripts;
    int64_t rows = 1 + rng() % 5;
    for (size_t i = 0; i < count; ++i) {
      const int64_t columns = 1 + rng() % 5;
      chain.push_back(RandomMatrix(rng, rows, columns));
      tensors.push_back(Upload(chain.back().values, {rows, columns}));
      if (i > 0) subscripts += ',';
      subscripts += static_cast<char>('a' + i);
      subscripts += static_cast<char>('b' + i);
      rows = columns;
    }
    Matrix wanted = chain[0];
    for (size_t i = 1; i < count; ++i) wanted = Product(wanted, chain[i]);
    const std::vector<ProgramOperand> operands(tensors.begin(), tensors.end());
    EXPECT_EQ(ValuesOf(session_.Einsum(subscripts, operands)), wanted.values);
  }
}

TEST_F(ProgramTest, EinsumTakesEllipsesDiagonalsAndLabelsOfMany) {
  const auto a = Square({1, 2, 3, 4});
  const auto stack = Upload({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2});
  EXPECT_EQ(ValuesOf(session_.Einsum("...ii", {stack})), (Doubles{5, 13}));
  EXPECT_EQ(ValuesOf(session_.Einsum("ii->i", {a})), (Doubles{1, 4}));
  EXPECT_EQ(ValuesOf(session_.Einsum("...ij,...jk->...ik", {stack, a})),
            (Doubles{7, 10, 15, 22, 23, 34, 31, 46}));
  EXPECT_EQ(ValuesOf(session_.Einsum("ai,aj,ak->a", {a, a, a})),
            (Doubles{27, 343}));
}

TEST_F(ProgramTest, OperandsMayBeInTheCallersMemory) {
  const auto a = Square({1, 2, 3, 4});
  const Doubles values = {1, 10};
  const HostView<double> v{values.data(), {2}};
  EXPECT_EQ(ValuesOf(session_.Einsum("ij,j->i", {a, v})), (Doubles{21, 43}));
  const auto nothing =
      session_.Einsum("ij,j->i", {a, HostView<double>{nullptr, {2}}});
  EXPECT_EQ(ReasonOf(nothing.status()), "DATA_MISSING");
  EXPECT_THAT(std::string(nothing.status().message()), HasSubstr("operand 1"));
}

TEST_F(ProgramTest, ProductsGoWhereTheyAreToldTo) {
  const auto a = Square({1, 2, 3, 4});
  const auto named = session_.Einsum(
      "ij,jk,kl->il", {a, a, a},
      {.output_name = "cube", .output_element_type = ElementType::kFloat32});
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_THAT(named->name(), HasSubstr("/tensors/cube"));
  EXPECT_EQ(named->Download<float>().value(),
            (std::vector<float>{37, 54, 81, 118}));

  const auto d = Square({0, 0, 0, 0});
  const auto written =
      session_.Einsum("ij,jk,kl->li", {a, a, a}, {.output = &d});
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_FALSE(written->owns());
  EXPECT_EQ(written->name(), d.name());
  EXPECT_EQ(ValuesOf(session_.Borrow(d.name())), (Doubles{37, 81, 54, 118}));
  EXPECT_THAT(session_.List().value(), SizeIs(3));

  const auto first =
      session_.Einsum("ij->ij", {a}, {.output_order = Order::kFirstModeFastest})
          .value();
  EXPECT_THAT(first.info().layout.strides, ElementsAre(1, 2));
}

TEST_F(ProgramTest, NconSumsPositiveLabels) {
  const auto a = Square({1, 2, 3, 4}), b = Square({0, 1, 1, 0});
  EXPECT_EQ(ValuesOf(session_.Ncon({.labels = {{-1, 1}, {1, 2}, {2, -2}}},
                                   {a, b, a})),
            (Doubles{5, 8, 13, 20}));
  EXPECT_EQ(
      ValuesOf(session_.Ncon(
          {.labels = {{-1, 1}, {1, -2}}, .order = {1}, .output = {-2, -1}},
          {a, b})),
      (Doubles{2, 4, 1, 3}));
  EXPECT_EQ(
      ReasonOf(session_.Ncon({.labels = {{-1, 1}, {2, -2}}}, {a, b}).status()),
      "NCON_MALFORMED");
}

TEST_F(ProgramTest, RunGivesResultsByName) {
  const auto a = Square({1, 2, 3, 4}), d = Square({1, 1, 1, 1});
  auto ran = session_.Run(
      "T[i,j] := A[i,k]*A[k,j]\n"
      "D[i,j] += alpha*T[i,j]   # D is an operand\n"
      "U[i] := T[i,i]; trace := T[i,i]",
      {{"A", a}, {"D", d}, {"alpha", 10}});
  ASSERT_TRUE(ran.ok()) << ran.status();
  ASSERT_THAT(ran->results, SizeIs(2));
  EXPECT_EQ(ran->results[0].name, "U");
  EXPECT_EQ(ran->Find("trace")->Download<double>().value(), Doubles{29});
  EXPECT_EQ(ran->Find("T"), nullptr);
  EXPECT_EQ(ValuesOf(session_.Borrow(d.name())), (Doubles{71, 101, 151, 221}));
  EXPECT_GE(ran->report.operation_count, 4);
  EXPECT_GT(ran->report.peak_bytes, 0);

  const auto u = ran->Take("U");
  EXPECT_EQ(ValuesOf(u), (Doubles{7, 22}));
  EXPECT_EQ(u->report().kernel, "");
  EXPECT_EQ(ReasonOf(ran->Take("U").status()), "RESULT_NOT_FOUND");
  const auto none = ran->Take("T");
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("wanted one of U, trace"));
}

TEST_F(ProgramTest, NumbersMayBeComplex) {
  using Number = std::complex<double>;
  const std::vector<Number> values = {{1, 1}, {2, 0}};
  const auto a = session_.Upload(HostView<Number>{values.data(), {2}}).value();
  const auto ran =
      session_.Run("D[i] := z*conj(A[i])", {{"A", a}, {"z", Number(0, 2)}});
  ASSERT_TRUE(ran.ok()) << ran.status();
  EXPECT_EQ(ran->Find("D")->Download<Number>().value(),
            (std::vector<Number>{{2, 2}, {0, 4}}));
}

TEST_F(ProgramTest, OutputsAreChosenNamedAndSentInline) {
  const auto a = Square({1, 2, 3, 4});
  const auto ran = session_.Run(
      "T[i,j] := A[i,k]*A[k,j]; U[i,j] := T[i,j] + A[j,i]", {{"A", a}},
      {.outputs = {{.name = "U",
                    .element_type = ElementType::kFloat32,
                    .order = Order::kFirstModeFastest,
                    .is_inline = true},
                   {.name = "T", .tensor_name = "square"}}});
  ASSERT_TRUE(ran.ok()) << ran.status();
  const ProgramResult& u = *ran->Find("U");
  EXPECT_FALSE(u.tensor.has_value());
  EXPECT_THAT(u.layout.strides, ElementsAre(1, 2));
  EXPECT_EQ(u.Download<float>().value(), (std::vector<float>{8, 17, 13, 26}));
  EXPECT_EQ(ReasonOf(u.Download<double>().status()), "ELEMENT_TYPE_MISMATCH");
  const ProgramResult& t = *ran->Find("T");
  EXPECT_THAT(t.tensor->name(), HasSubstr("/tensors/square"));
  EXPECT_EQ(t.Download<double>().value(), (Doubles{7, 10, 15, 22}));
  EXPECT_THAT(session_.List().value(), SizeIs(2));
}

TEST_F(ProgramTest, PathsAreFoundAsTheOptionsSay) {
  const auto a = Square({1, 2, 3, 4});
  const auto wide = Upload(Doubles(2 * 64, 1), {2, 64});
  const auto method = [&](const PathOptions& path) {
    const auto explained =
        session_.ExplainEinsum("ij,jk,kl->il", {a, a, wide}, {.path = path});
    EXPECT_TRUE(explained.ok()) << explained.status();
    return explained->products.at(0).method;
  };
  EXPECT_EQ(method({}), "optimal");
  EXPECT_EQ(method({.method = PathMethod::kGreedy}), "greedy");
  EXPECT_EQ(method({.steps = {{1, 2}, {0, 1}}}), "given");
  const auto given = session_.ExplainEinsum(
      "ij,jk,kl->il", {a, a, wide}, {.path = {.steps = {{1, 2}, {0, 1}}}});
  // Both products have 2 x 2 x 64 terms, and each term two flops.
  EXPECT_EQ(given->flops, 2 * 2.0 * 2 * 2 * 64);
  EXPECT_THAT(given->products[0].nodes[3].children, ElementsAre(1, 2));
  EXPECT_EQ(ReasonOf(session_
                         .Einsum("ij,jk,kl->il", {a, a, wide},
                                 {.path = {.steps = {{1, 7}, {0, 1}}}})
                         .status()),
            "PATH_MALFORMED");
  EXPECT_EQ(ReasonOf(session_
                         .Einsum("ij,jk,kl->il", {a, a, wide},
                                 {.path = {.method = PathMethod::kRandomGreedy,
                                           .time_budget = absl::Hours(1),
                                           .seed = 3}})
                         .status()),
            "TIME_BUDGET_OUT_OF_RANGE");
}

TEST_F(ProgramTest, SymbolicCostsDecideTheOrder) {
  const auto a = Square({1, 2, 3, 4});
  const auto product = [&](const std::string& costs) {
    PathOptions path;
    path.costs = costs;
    const auto explained =
        session_.ExplainEinsum("ij,jk,kl->il", {a, a, a}, {.path = path});
    EXPECT_TRUE(explained.ok()) << explained.status();
    EXPECT_EQ(
        ValuesOf(session_.Einsum("ij,jk,kl->il", {a, a, a}, {.path = path})),
        (Doubles{37, 54, 81, 118}));
    return explained->products.at(0);
  };
  const ProgramProduct first = product("i=>χ, j=>χ, l=>χ^3");
  EXPECT_EQ(first.symbolic_cost, "χ^4 + χ^2");
  EXPECT_THAT(first.nodes[3].children, ElementsAre(0, 1));
  const ProgramProduct last = product("i=>χ^3, k=>χ, l=>χ");
  EXPECT_EQ(last.symbolic_cost, "χ^4 + χ^2");
  EXPECT_THAT(last.nodes[3].children, ElementsAre(1, 2));
  EXPECT_EQ(product("").symbolic_cost, "2*χ^3");
  EXPECT_EQ(ReasonOf(session_
                         .Einsum("ij,jk,kl->il", {a, a, a},
                                 {.path = {.costs = "z=>χ"}})
                         .status()),
            "COST_LABEL_UNKNOWN");
}

TEST_F(ProgramTest, DecompositionsSayHowManyValuesTheyKeep) {
  const auto a = Square({3, 0, 0, 2});
  auto ran = session_.Run(
      "B[i,j] := 2*A[i,j]; U[i,k], S[k], V[k,j] := svd(B[i,j]; cutoff=x)",
      {{"A", a}, {"x", 5}});
  ASSERT_TRUE(ran.ok()) << ran.status();
  ASSERT_EQ(ran->results.size(), 3);
  EXPECT_EQ(ran->Find("S")->Download<double>().value(), (Doubles{6, 0}));
  ASSERT_EQ(ran->report.kept_extents.size(), 1);
  EXPECT_EQ(ran->report.kept_extents[0].statement, 1);
  EXPECT_EQ(ran->report.kept_extents[0].label, "k");
  EXPECT_EQ(ran->report.kept_extents[0].extent, 1);
}

TEST_F(ProgramTest, WhatDependsOnConstantsAloneIsKept) {
  const auto a = Square({1, 2, 3, 4});
  const Doubles two = {2, 0, 0, 2};
  const HostView<double> b{two.data(), {2, 2}};
  const int64_t before = session_.DescribeSession().value().memory_used_bytes;
  {
    const auto program = session_.PrepareProgram(
        "D[i,l] := (A[i,j]*B[j,k])*X[k,l]",
        {Constant({"A", a}), Constant({"B", b}), {"X", a}});
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_TRUE(program->info().operands[1].is_constant);
    EXPECT_FALSE(program->info().operands[2].is_constant);
    EXPECT_TRUE(program->info().explanation.operations[0].is_folded);
    EXPECT_EQ(program->info().explanation.kept_bytes, 256);
    for (const int64_t count : {2, 1, 1}) {
      auto ran = program->Run({{"X", a}});
      ASSERT_TRUE(ran.ok()) << ran.status();
      EXPECT_EQ(ran->report.operation_count, count);
      EXPECT_EQ(ran->report.folded_operation_count, 2 - count);
      EXPECT_EQ(ran->report.kept_bytes, 256);
      EXPECT_EQ(ran->results[0].Download<double>().value(),
                (Doubles{14, 20, 30, 44}));
    }
  }
  // What was uploaded, and what was kept, went with the program.
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (session_.DescribeSession().value().memory_used_bytes != before &&
         absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(session_.DescribeSession().value().memory_used_bytes, before);
  EXPECT_EQ(
      ReasonOf(session_.Run("D[i,j] := A[i,j]", {Constant({"A", a})}).status()),
      "CONSTANT_NOT_PREPARED");
}

TEST_F(ProgramTest, MemoryLimitsAreKept) {
  std::mt19937 rng(7);
  const Matrix matrix = RandomMatrix(rng, 64, 64);
  const auto a = Upload(matrix.values, {8, 8, 8, 8});
  const ProgramSource source = EinsumText{"abcd,cdef,efgh,ghij->abij"};
  const std::vector<ProgramOperand> operands = {a, a, a, a};
  const auto free = session_.Run(source, operands);
  ASSERT_TRUE(free.ok()) << free.status();
  const int64_t limit = free->report.peak_bytes / 2;
  const auto limited =
      session_.Run(source, operands, {.path = {.memory_limit_bytes = limit}});
  ASSERT_TRUE(limited.ok()) << limited.status();
  EXPECT_LE(limited->report.peak_bytes, limit);
  EXPECT_GT(limited->report.operation_count, free->report.operation_count);
  EXPECT_EQ(limited->results[0].Download<double>().value(),
            free->results[0].Download<double>().value());
  EXPECT_EQ(
      ReasonOf(
          session_.Run(source, operands, {.path = {.memory_limit_bytes = 0}})
              .status()),
      "PATH_MEMORY_LIMIT");
}

TEST_F(ProgramTest, KernelsAreChosenByTimeWhereOptionsSaySo) {
  const auto a = Square({1, 2, 3, 4});
  const Doubles wanted = {37, 54, 81, 118};  // a * a * a
  const PlanCache cache(server_->address());
  const auto measures = [&](const absl::StatusOr<RemoteTensor>& result) {
    EXPECT_EQ(ValuesOf(result), wanted);
    const auto entries = cache.Entries(/*by_hits=*/false).value();
    EXPECT_TRUE(cache.Clear(/*pinned_too=*/true).ok());
    return std::ranges::any_of(entries, [](const PlanCacheEntry& entry) {
      return entry.selection == Selection::kMeasure;
    });
  };
  const auto run = [&](const ProgramOptions& options) {
    return session_.Run("D[i,l] := A[i,j]*A[j,k]*A[k,l]", {{"A", a}}, options)
        .value()
        .Take("D");
  };
  EXPECT_FALSE(measures(session_.Einsum("ij,jk,kl->il", {a, a, a})));
  EXPECT_TRUE(measures(session_.Einsum("ij,jk,kl->il", {a, a, a},
                                       {.selection = Selection::kMeasure})));
  EXPECT_FALSE(measures(run({})));
  EXPECT_TRUE(measures(run({.selection = Selection::kMeasure})));
  EXPECT_EQ(ReasonOf(session_
                         .Einsum("ij,jk,kl->il", {a, a, a},
                                 {.deterministic = true,
                                  .selection = Selection::kIncremental})
                         .status()),
            "SELECTION_CONFLICTS");
}

TEST_F(ProgramTest, ExplainRunsNothing) {
  const auto a = session_.Create(ElementType::kFloat64, {{30, 40}}).value();
  const HostView<double> b{nullptr, {40, 50}};
  const auto explained = session_.ExplainProgram(
      "D[i,k] := x*A[i,j]*B[j,k]", {{"A", a}, {"B", b}, {"x", 2.0}});
  ASSERT_TRUE(explained.ok()) << explained.status();
  EXPECT_EQ(explained->flops, 2.0 * 30 * 40 * 50);
  ASSERT_THAT(explained->operations, SizeIs(1));
  EXPECT_EQ(explained->operations[0].operation, "contract");
  EXPECT_FALSE(explained->operations[0].kernel.empty());
  EXPECT_THAT(explained->text, HasSubstr("A[i,j]*B[j,k]"));
  EXPECT_EQ(session_.Describe(a).value().state, TensorState::kEmpty);
  EXPECT_THAT(session_.List().value(), SizeIs(1));
}

TEST_F(ProgramTest, PreparedProgramsRunOftenOnOperandsThatAreAlike) {
  const HostView<double> spec{nullptr, {2, 2}};
  const auto program = session_.PrepareProgram(
      "D[i,k] := x*A[i,j]*B[j,k]", {{"A", spec}, {"B", spec}, {"x", 2.0}});
  ASSERT_TRUE(program.ok()) << program.status();
  const auto a = Square({1, 2, 3, 4}), b = Square({0, 1, 1, 0});
  const auto run = [&](ProgramOperands operands) {
    const auto ran = program->Run(operands);
    EXPECT_TRUE(ran.ok()) << ran.status();
    return ran->Find("D")->Download<double>().value();
  };
  EXPECT_EQ(run({{"A", a}, {"B", b}}), (Doubles{4, 2, 8, 6}));
  EXPECT_EQ(run({{"B", a}, {"A", b}}), (Doubles{6, 8, 2, 4}));
  EXPECT_EQ(run({{"A", a}, {"B", b}, {"x", -1}}), (Doubles{-2, -1, -4, -3}));
  EXPECT_EQ(run({a, b}), (Doubles{4, 2, 8, 6}));

  const ProgramInfo info = program->Describe().value();
  EXPECT_EQ(info.execution_count, 4);
  EXPECT_EQ(std::get<std::string>(info.source.notation),
            "D[i,k] := x*A[i,j]*B[j,k]");
  ASSERT_THAT(info.operands, SizeIs(3));
  EXPECT_EQ(info.operands[0].name, "A");
  EXPECT_THAT(info.operands[0].layout.extents, ElementsAre(2, 2));
  EXPECT_EQ(info.operands[2].scalar->real, 2);
  EXPECT_EQ(info.outputs.at(0).element_type, ElementType::kFloat64);

  const RemoteTensor row = a.Index({0}).value();
  EXPECT_EQ(ReasonOf(program->Run({{"A", row}, {"B", b}}).status()),
            "PROGRAM_OPERAND_DIFFERS");
  EXPECT_EQ(ReasonOf(program->Run({{"A", a}}).status()), "INPUT_MISSING");
  const auto inlined =
      program->Run({a, b}, {.outputs = {{.name = "D", .is_inline = true}}});
  ASSERT_TRUE(inlined.ok()) << inlined.status();
  EXPECT_THAT(inlined->Find("D")->bytes, SizeIs(4 * sizeof(double)));
}

TEST_F(ProgramTest, PreparedProgramsLeaveTheServerWithTheirHandle) {
  const auto a = Square({1, 2, 3, 4});
  const auto prepare = [&] {
    return session_.PrepareProgram(EinsumText{"ij,jk,kl->il"}, {a, a, a}, {},
                                   {.name = "cube"});
  };
  {
    const auto program = prepare();
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_THAT(program->name(), HasSubstr("/programs/cube"));
    EXPECT_EQ(prepare().status().code(), absl::StatusCode::kAlreadyExists);
  }
  auto program = prepare();
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->Run({a, a, a})->results[0].Download<double>().value(),
            (Doubles{37, 54, 81, 118}));
  EXPECT_TRUE(program->Delete().ok());
  EXPECT_EQ(ReasonOf(program->Run({a, a, a}).status()), "PROGRAM_NOT_FOUND");
  EXPECT_EQ(program->Delete().code(), absl::StatusCode::kNotFound);
  auto kept = prepare();
  kept->Release();
  kept = absl::CancelledError();
  EXPECT_EQ(prepare().status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(ProgramTest, ErrorsSayWhereTheNotationIsWrong) {
  const auto a = Upload({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto status =
      session_.Run("T[i,j] := A[i,j]\nD[i,j] := A[i,k]*A[k,j", {{"A", a}})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(status), "SYNTAX_ERROR");
  EXPECT_THAT(std::string(status.message()), HasSubstr("line 2, column "));
  EXPECT_EQ(ReasonOf(session_.Einsum("ij,jk->ik", {a, a}).status()),
            "MODE_EXTENT_MISMATCH");
  EXPECT_EQ(ReasonOf(session_.Einsum("ij->j->i", {a}).status()),
            "SUBSCRIPTS_MALFORMED");
  EXPECT_EQ(ReasonOf(session_.Run("D[i] := B[i]", {{"A", a}}).status()),
            "NAME_UNKNOWN");
  EXPECT_THAT(session_.List().value(), SizeIs(1));
}

}  // namespace
}  // namespace tensord
