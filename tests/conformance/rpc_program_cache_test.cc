// What is known of programs from one request to the next, and what searching
// for it leaves to others.
#include <atomic>
#include <thread>

#include "absl/time/clock.h"
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

/// A session has one thread for what no loop does: what goes on beside a search
/// of its own is done by one.
class RpcSearchingTest : public RpcProgramTest {
 protected:
  /// A call that searches until search_ is cancelled, and has begun.
  std::thread Search() {
    v1::ExplainProgramRequest request;
    request.set_session(session_);
    *request.mutable_spec() = Statements(Ring(400), {{"A", Filled({2, 2, 2})}});
    request.mutable_spec()->mutable_path()->mutable_time_budget()->set_seconds(
        60);
    std::thread searching([this, request] {
      v1::ExplainProgramResponse response;
      EXPECT_EQ(
          programs_->ExplainProgram(&search_, request, &response).error_code(),
          grpc::StatusCode::CANCELLED);
    });
    v1::ListOperationsResponse running;
    EXPECT_TRUE(Soon([&] {
      EXPECT_THAT(Unary(&v1::AdminService::Stub::ListOperations, *admin_,
                        v1::ListOperationsRequest(), &running),
                  IsOk());
      return running.operations_size() > 0;
    }));
    return searching;
  }

  grpc::ClientContext search_;
};

TEST_F(RpcSearchingTest, MemoryForLargeUploadsIsTakenByNoLoop) {
  const auto session = server_.sessions()
                           .Find(session_, std::string(server::kDefaultTenant))
                           .value();
  // As one is while its creation clears its memory.
  const auto bare =
      session
          ->Add("bare",
                {core::ElementType::kFloat32,
                 core::PackedLayout({1 << 19}, core::Order::kFirstModeFastest)})
          .value();
  std::thread searching = Search();
  const std::vector<float> ones(2, 1.0f);
  std::atomic<bool> has_ended = false;
  std::thread upload([&] {
    EXPECT_THAT(Upload({Chunk(bare->name(), 0, ones)}), IsOk());
    has_ended = true;
  });
  EXPECT_EQ(Values(Filled({2})), (std::vector<float>{0, 1}));
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_FALSE(has_ended);
  EXPECT_FALSE(bare->has_memory());
  search_.TryCancel();
  searching.join();
  upload.join();
  EXPECT_EQ(bare->committed_bytes(), 8);
}

TEST_F(RpcSearchingTest, PlansOfManyOperationsAreTakenByNoLoop) {
  std::string text;
  Operands operands;
  for (int i = 0; i < 80; ++i) {
    const std::string name = absl::StrCat("A", i);
    operands.emplace_back(name, Filled({i + 1, 2}));
    absl::StrAppend(&text, "s", i, "[j] := ", name, "[i,j]*", name, "[i,j]\n");
  }
  const v1::ProgramSpec many = Statements(text, operands);
  const v1::ProgramSpec few =
      Statements("s[j] := A[i,j]*A[i,j]", {{"A", operands[0].second}});
  ASSERT_THAT(Execute(many), IsOk());
  ASSERT_THAT(Execute(few), IsOk());

  std::thread searching = Search();
  std::atomic<bool> has_ended = false;
  std::thread executing([&] {
    EXPECT_THAT(Execute(many), IsOk());
    has_ended = true;
  });
  EXPECT_THAT(Execute(few), IsOk());
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_FALSE(has_ended);
  search_.TryCancel();
  searching.join();
  executing.join();
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
