// What is known of programs from one request to the next, and what searching
// for it leaves to others.
#include "tests/conformance/rpc_program.h"

namespace tensord {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RpcProgramCacheTest : public RpcProgramTest {};

TEST_F(RpcProgramCacheTest, OtherScalarsNeedNoOtherSearch) {
  const std::string a = Filled({2, 2});
  const auto run = [&](double x, double y,
                       v1::ExecuteProgramResponse& response) {
    ASSERT_THAT(Execute(Statements("D[] := (x*A[a,c]*A[c,d]*A[d,b])*A[b,a] + "
                                   "(y*A[a,c]*A[c,d]*A[d,b])*A[a,b]",
                                   {{"A", a}, {"x", x}, {"y", y}}),
                        &response),
                IsOk());
  };
  // A = [[0, 2], [1, 3]]: tr A^4 = 161, and sum of A^3 by elements with A 172.
  for (const auto& [x, y] :
       std::vector<std::pair<double, double>>{{2, 2}, {1, 2}, {3, 3}, {1, 2}}) {
    v1::ExecuteProgramResponse response;
    run(x, y, response);
    EXPECT_THAT(Values(response.results(0).tensor().name()),
                ElementsAre(x * 161 + y * 172));
    EXPECT_EQ(response.report().program_cache_hit(), !(x == 2 && y == 2));
  }
}

TEST_F(RpcProgramCacheTest, PreparedProgramsMakeWhatTheySay) {
  const std::string a = Filled({2, 2});
  v1::Program program;
  ASSERT_THAT(CreateProgram(Statements("D[i,j] := x*A[j,i]; E[i] := A[i,i]",
                                       {{"A", a}, {"x", 2.0}}),
                            "p", &program),
              IsOk());
  v1::ExecuteProgramRequest request;
  request.set_name(program.name());
  AddOperands({{"A", a}}, request.mutable_operands());
  v1::ExecuteProgramRequest wrong = request;
  wrong.add_outputs()->set_name("F");
  EXPECT_THAT(Execute(wrong),
              FailsWith(grpc::INVALID_ARGUMENT, "OUTPUT_UNKNOWN"));
  wrong = request;
  wrong.add_outputs()->set_name("D");
  wrong.mutable_outputs(0)->set_element_type(v1::ELEMENT_TYPE_FLOAT64);
  EXPECT_THAT(Execute(wrong),
              FailsWith(grpc::INVALID_ARGUMENT, "OUTPUT_DIFFERS"));
  wrong.mutable_outputs(0)->clear_element_type();
  wrong.mutable_outputs(0)->set_order(v1::ORDER_LAST_MODE_FASTEST);
  EXPECT_THAT(Execute(wrong),
              FailsWith(grpc::INVALID_ARGUMENT, "OUTPUT_DIFFERS"));
  wrong = request;
  v1::ProgramOperand& complex = *wrong.add_operands();
  complex.set_name("x");
  complex.mutable_scalar()->set_imaginary(1);
  EXPECT_THAT(Execute(wrong),
              FailsWith(grpc::INVALID_ARGUMENT, "PROGRAM_OPERAND_DIFFERS"));
  EXPECT_EQ(TensorCount(), 1);

  // In the order that is asked for.
  request.add_outputs()->set_name("E");
  request.add_outputs()->set_name("D");
  v1::ExecuteProgramResponse response;
  ASSERT_THAT(Execute(request, &response), IsOk());
  ASSERT_EQ(response.results_size(), 2);
  EXPECT_EQ(response.results(0).name(), "E");
  EXPECT_THAT(Values(response.results(0).tensor().name()), ElementsAre(0, 3));
  EXPECT_THAT(Values(response.results(1).tensor().name()),
              ElementsAre(0, 4, 2, 6));
}

TEST_F(RpcProgramCacheTest, MessagesSayWhereExtentsDiffer) {
  const std::string a = Filled({2, 3}), b = Filled({4, 2});
  const Outcome refused = Execute(Einsum("ij,jk->ik", {a, b}));
  EXPECT_THAT(refused,
              FailsWith(grpc::INVALID_ARGUMENT, "MODE_EXTENT_MISMATCH"));
  EXPECT_THAT(
      refused.status.error_message(),
      HasSubstr("column 4: mode 0 of operand 1: label 'j' has extent 4, "
                "but 3 in mode 1 of operand 0"));
}

/// A ring of tensors, each linked to the one across, too: long to search.
std::string Ring(int count) {
  std::string text = "D[] := 1";
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&text, "*A[x", i, ",x", (i + 1) % count, ",y",
                    i % (count / 2), "]");
  }
  return text;
}

TEST_F(RpcProgramCacheTest, SearchesEndWithTheirCalls) {
  const std::string cube = Filled({2, 2, 2});
  v1::ExplainProgramRequest request;
  request.set_session(session_);
  *request.mutable_spec() = Statements(Ring(400), {{"A", cube}});
  request.mutable_spec()->mutable_path()->mutable_time_budget()->set_seconds(
      60);
  for (int i = 0; i < 3; ++i) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::milliseconds(300));
    v1::ExplainProgramResponse response;
    EXPECT_EQ(
        programs_->ExplainProgram(&context, request, &response).error_code(),
        grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  // Of the same session: it waits for them, and would not come in time.
  *request.mutable_spec() = Statements(Ring(20), {{"A", cube}});
  v1::ExplainProgramResponse response;
  EXPECT_THAT(Unary(&v1::ProgramService::Stub::ExplainProgram, *programs_,
                    request, &response),
              IsOk());
}

TEST_F(RpcProgramCacheTest, DeepTreesAreExplained) {
  const std::string matrix = Filled({1, 1});
  v1::ProgramSpec spec;
  v1::Ncon& ncon = *spec.mutable_source()->mutable_ncon();
  constexpr int kCount = 1500;
  for (int i = 0; i < kCount; ++i) {
    spec.add_operands()->set_tensor(matrix);
    v1::NconLabels& labels = *ncon.add_operands();
    labels.add_labels(i == 0 ? -1 : i);
    labels.add_labels(i + 1 == kCount ? -2 : i + 1);
  }
  v1::Program program;
  ASSERT_THAT(CreateProgram(spec, "chain", &program), IsOk());
  EXPECT_LT(program.ByteSizeLong(), size_t{4} << 20);
  EXPECT_THAT(program.explanation().text(), HasSubstr("operations"));
}

}  // namespace
}  // namespace tensord
