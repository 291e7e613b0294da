// Programs that keep what depends on constant operands alone.
#include "tests/conformance/rpc_program.h"

namespace tensord {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RpcConstantsTest : public RpcProgramTest {
 protected:
  /// `(A*B)*X` of matrices, of which those that `constants` names are constant.
  v1::ProgramSpec Chain(const std::string& a, const std::string& b,
                        const std::string& x,
                        const std::string& constants = "AB") {
    v1::ProgramSpec spec =
        Statements("T[i,k] := A[i,j]*B[j,k]; D[i,l] := T[i,k]*X[k,l]",
                   {{"A", a}, {"B", b}, {"X", x}});
    for (v1::ProgramOperand& operand : *spec.mutable_operands()) {
      operand.set_constant(constants.find(operand.name()) != std::string::npos);
    }
    return spec;
  }
  v1::Program Created(const v1::ProgramSpec& spec) {
    v1::Program program;
    EXPECT_THAT(CreateProgram(spec, "", &program), IsOk());
    return program;
  }
  /// Runs a program, and deletes its result after looking at it.
  std::vector<float> Run(const v1::Program& program, const Operands& operands,
                         v1::ProgramReport* report = nullptr) {
    v1::ExecuteProgramRequest request;
    request.set_name(program.name());
    AddOperands(operands, request.mutable_operands());
    v1::ExecuteProgramResponse response;
    const Outcome outcome = Execute(request, &response);
    EXPECT_THAT(outcome, IsOk());
    if (report != nullptr) *report = response.report();
    if (!outcome.status.ok()) return {};
    const std::string& result = response.results(0).tensor().name();
    const std::vector<float> values = Values(result);
    EXPECT_THAT(Delete(result), IsOk());
    return values;
  }
  std::string Matrix(std::vector<float> values) {
    v1::Tensor tensor;
    EXPECT_THAT(Create(CreateRequest({2, 2}), &tensor), IsOk());
    EXPECT_THAT(Upload({Chunk(tensor.name(), 0, values)}), IsOk());
    return tensor.name();
  }
  int64_t SessionBytes() {
    v1::DescribeSessionRequest request;
    request.set_session(session_);
    v1::DescribeSessionResponse response;
    EXPECT_THAT(Unary(&v1::SessionService::Stub::DescribeSession, *sessions_,
                      request, &response),
                IsOk());
    return response.session().memory_used_bytes();
  }

  // First mode fastest: [[1, 3], [2, 4]], the identity, and its double.
  const std::vector<float> counting_ = {1, 2, 3, 4};
  const std::vector<float> one_ = {1, 0, 0, 1};
  const std::vector<float> two_ = {2, 0, 0, 2};
};

TEST_F(RpcConstantsTest, WhatDependsOnThemAloneIsComputedOnce) {
  const std::string a = Matrix(counting_), b = Matrix(two_), x = Matrix(one_);
  const v1::Program program = Created(Chain(a, b, x));
  EXPECT_TRUE(program.operands(0).is_constant());
  EXPECT_FALSE(program.operands(2).is_constant());
  const v1::ProgramExplanation& explanation = program.explanation();
  EXPECT_EQ(explanation.kept_bytes(), 256);
  EXPECT_EQ(explanation.peak_bytes(), 0);
  ASSERT_EQ(explanation.operations_size(), 2);
  EXPECT_TRUE(explanation.operations(0).is_folded());
  EXPECT_FALSE(explanation.operations(1).is_folded());
  EXPECT_THAT(explanation.text(), HasSubstr(", once\n"));

  v1::ProgramReport report;
  EXPECT_THAT(Run(program, {{"X", x}}, &report), ElementsAre(2, 4, 6, 8));
  EXPECT_EQ(report.operation_count(), 2);
  EXPECT_EQ(report.folded_operation_count(), 0);
  EXPECT_EQ(report.flops(), 32);
  EXPECT_EQ(report.kept_bytes(), 256);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Run(program, {{"X", b}}, &report), ElementsAre(4, 8, 12, 16));
    EXPECT_EQ(report.operation_count(), 1);
    EXPECT_EQ(report.folded_operation_count(), 1);
    EXPECT_EQ(report.flops(), 16);
  }
}

TEST_F(RpcConstantsTest, ResultsAreNeverStale) {
  const std::string a = Matrix(counting_), b = Matrix(one_), x = Matrix(one_);
  const v1::Program program = Created(Chain(a, b, x));
  EXPECT_THAT(Run(program, {{"X", x}}), ElementsAre(1, 2, 3, 4));
  // By an upload, by an operation, and by a program.
  ASSERT_THAT(Upload({Chunk(b, 0, two_)}), IsOk());
  v1::ProgramReport report;
  EXPECT_THAT(Run(program, {{"X", x}}, &report), ElementsAre(2, 4, 6, 8));
  EXPECT_EQ(report.operation_count(), 2);
  v1::PermuteRequest permute = Permutation(x);
  permute.mutable_d()->Clear();
  permute.mutable_d()->mutable_modes()->Add(2);
  permute.mutable_d()->mutable_modes()->Add(1);
  permute.mutable_d()->set_tensor(b);
  ASSERT_THAT(Permute(permute), IsOk());
  EXPECT_THAT(Run(program, {{"X", x}}), ElementsAre(1, 2, 3, 4));
  ASSERT_THAT(Execute(Statements("A[i,j] += 10*A[i,j]", {{"A", a}})), IsOk());
  EXPECT_THAT(Run(program, {{"X", x}}, &report), ElementsAre(11, 22, 33, 44));
  EXPECT_EQ(report.operation_count(), 2);
  EXPECT_THAT(Run(program, {{"X", x}}, &report), ElementsAre(11, 22, 33, 44));
  EXPECT_EQ(report.operation_count(), 1);
}

TEST_F(RpcConstantsTest, TheProgramWritesWhatItsConstantIsAViewOf) {
  const std::string a = Matrix(counting_), x = Matrix(one_);
  v1::CreateViewRequest request;
  request.set_tensor(a);
  v1::IndexItem& rows = *request.add_stages()->mutable_index()->add_items();
  rows.mutable_slice()->set_start(1);
  rows.mutable_slice()->set_step(-1);
  v1::CreateViewResponse view;
  ASSERT_THAT(
      Unary(&v1::ViewService::Stub::CreateView, *views_, request, &view),
      IsOk());
  v1::ProgramSpec spec =
      Statements("T[i,k] := V[i,j]*V[j,k]; A[i,k] += T[i,j]*X[j,k]",
                 {{"V", view.tensor().name()}, {"A", a}, {"X", x}});
  spec.mutable_operands(0)->set_constant(true);
  const v1::Program program = Created(spec);
  v1::ExecuteProgramRequest run;
  run.set_name(program.name());
  AddOperands({{"A", a}, {"X", x}}, run.mutable_operands());
  // V = [[2, 4], [1, 3]] and V*V = [[8, 20], [5, 13]]; then V follows A.
  v1::ExecuteProgramResponse response;
  ASSERT_THAT(Execute(run, &response), IsOk());
  EXPECT_EQ(response.report().gathered_bytes(), 16);
  EXPECT_THAT(Values(a), ElementsAre(9, 7, 23, 17));
  ASSERT_THAT(Execute(run, &response), IsOk());
  EXPECT_EQ(response.report().operation_count(), 2);
  // V = [[7, 17], [9, 23]].
  EXPECT_THAT(Values(a), ElementsAre(9 + 49 + 153, 7 + 63 + 207, 23 + 119 + 391,
                                     17 + 153 + 529));
}

TEST_F(RpcConstantsTest, ViewsAreGatheredForWhatIsComputedOnly) {
  const std::string a = Matrix(counting_), x = Matrix(one_);
  v1::CreateViewRequest request;
  request.set_tensor(a);
  v1::IndexItem& rows = *request.add_stages()->mutable_index()->add_items();
  rows.mutable_slice()->set_start(1);
  rows.mutable_slice()->set_step(-1);
  v1::CreateViewResponse view;
  ASSERT_THAT(
      Unary(&v1::ViewService::Stub::CreateView, *views_, request, &view),
      IsOk());
  const v1::Program program =
      Created(Chain(view.tensor().name(), view.tensor().name(), x));
  v1::ProgramReport report;
  EXPECT_THAT(Run(program, {{"X", x}}, &report), ElementsAre(8, 5, 20, 13));
  EXPECT_EQ(report.gathered_bytes(), 32);
  EXPECT_THAT(Run(program, {{"X", x}}, &report), ElementsAre(8, 5, 20, 13));
  EXPECT_EQ(report.gathered_bytes(), 0);
}

TEST_F(RpcConstantsTest, AnotherTensorMayBeGiven) {
  const std::string a = Matrix(counting_), b = Matrix(one_), x = Matrix(one_);
  const std::string other = Matrix(two_);
  const v1::Program program = Created(Chain(a, b, x));
  v1::ProgramReport report;
  EXPECT_THAT(Run(program, {{"X", x}}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Run(program, {{"X", x}, {"B", other}}, &report),
              ElementsAre(2, 4, 6, 8));
  EXPECT_EQ(report.operation_count(), 2);
  EXPECT_THAT(Run(program, {{"X", x}, {"B", other}}, &report),
              ElementsAre(2, 4, 6, 8));
  EXPECT_EQ(report.operation_count(), 1);
  EXPECT_THAT(Run(program, {{"X", x}}, &report), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(report.operation_count(), 2);
  // The one that it was made with, by its name.
  EXPECT_THAT(Run(program, {{"X", x}, {"B", b}}, &report),
              ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(report.operation_count(), 1);
  v1::ExecuteProgramRequest differs;
  differs.set_name(program.name());
  AddOperands({{"X", x}, {"B", Filled({2, 3})}}, differs.mutable_operands());
  EXPECT_THAT(Execute(differs),
              FailsWith(grpc::INVALID_ARGUMENT, "PROGRAM_OPERAND_DIFFERS"));
}

TEST_F(RpcConstantsTest, OutliveTheirNames) {
  const std::string a = Matrix(counting_), b = Matrix(two_), x = Matrix(one_);
  const v1::Program program = Created(Chain(a, b, x));
  ASSERT_THAT(Delete(a), IsOk());
  ASSERT_THAT(Delete(b), IsOk());
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Run(program, {{"X", x}}), ElementsAre(2, 4, 6, 8));
  }
}

TEST_F(RpcConstantsTest, MemoryReturnsWithTheProgram) {
  const std::string x = Filled({64, 64});
  const int64_t before = SessionBytes();
  const std::string a = Filled({64, 64}), b = Filled({64, 64});
  constexpr int64_t kMatrixBytes = 64 * 64 * 4;
  ASSERT_EQ(SessionBytes(), before + 2 * kMatrixBytes);
  const v1::Program program = Created(Chain(a, b, x));
  EXPECT_EQ(SessionBytes(), before + 2 * kMatrixBytes);
  Run(program, {{"X", x}});
  EXPECT_EQ(SessionBytes(), before + 3 * kMatrixBytes);
  Run(program, {{"X", x}});
  EXPECT_EQ(SessionBytes(), before + 3 * kMatrixBytes);
  ASSERT_THAT(Delete(a), IsOk());
  ASSERT_THAT(Delete(b), IsOk());
  EXPECT_EQ(SessionBytes(), before + 3 * kMatrixBytes);
  ASSERT_THAT(DeleteProgram(program.name()), IsOk());
  EXPECT_EQ(SessionBytes(), before);
}

TEST_F(RpcConstantsTest, MemoryReturnsWithTheSession) {
  const int64_t before = server_.used_bytes();
  const std::string a = Filled({64, 64});
  const v1::Program program = Created(Chain(a, a, a));
  Run(program, {{"X", a}});
  EXPECT_GT(server_.used_bytes(), before);
  ASSERT_THAT(Close(session_), IsOk());
  EXPECT_EQ(server_.used_bytes(), before);
}

TEST_F(RpcConstantsTest, AreCountedInTheQuota) {
  v1::OpenSessionRequest open;
  open.set_memory_quota_bytes(4 * 64 * 64 * 4);
  v1::OpenSessionResponse opened;
  ASSERT_THAT(Open(open, &opened), IsOk());
  session_ = opened.session().name();
  const std::string a = Filled({64, 64}), x = Filled({64, 1});
  const std::string big = Filled({64, 128});
  const v1::Program program = Created(Chain(a, a, x));
  v1::ExecuteProgramRequest request;
  request.set_name(program.name());
  AddOperands({{"X", x}}, request.mutable_operands());
  const Outcome outcome = Execute(request);
  EXPECT_THAT(outcome, FailsWith(grpc::RESOURCE_EXHAUSTED, "MEMORY_LIMIT"));
  ASSERT_THAT(Delete(big), IsOk());
  EXPECT_THAT(Execute(request), IsOk());
}

TEST_F(RpcConstantsTest, NumbersThatMatterComputeAgain) {
  const std::string a = Matrix(counting_), b = Matrix(one_), x = Matrix(one_);
  v1::ProgramSpec spec =
      Statements("T[i,k] := f*A[i,j]*B[j,k]; D[i,l] := g*T[i,k]*X[k,l]",
                 {{"A", a}, {"B", b}, {"X", x}, {"f", 1.0}, {"g", 1.0}});
  spec.mutable_operands(0)->set_constant(true);
  spec.mutable_operands(1)->set_constant(true);
  const v1::Program program = Created(spec);
  v1::ProgramReport report;
  EXPECT_THAT(Run(program, {{"X", x}}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Run(program, {{"X", x}, {"g", 3.0}}, &report),
              ElementsAre(3, 6, 9, 12));
  EXPECT_EQ(report.operation_count(), 1);
  EXPECT_THAT(Run(program, {{"X", x}, {"f", 2.0}}, &report),
              ElementsAre(2, 4, 6, 8));
  EXPECT_EQ(report.operation_count(), 2);
  EXPECT_THAT(Run(program, {{"X", x}}, &report), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(report.operation_count(), 1);
}

TEST_F(RpcConstantsTest, EmptyOnesAreRefusedWhenTheyAreRead) {
  v1::Tensor empty;
  ASSERT_THAT(Create(CreateRequest({2, 2}), &empty), IsOk());
  const std::string x = Matrix(one_);
  const v1::Program program = Created(Chain(empty.name(), x, x));
  v1::ExecuteProgramRequest request;
  request.set_name(program.name());
  AddOperands({{"X", x}}, request.mutable_operands());
  EXPECT_THAT(Execute(request),
              FailsWith(grpc::FAILED_PRECONDITION, "TENSOR_NOT_READY"));
  ASSERT_THAT(Upload({Chunk(empty.name(), 0, two_)}), IsOk());
  EXPECT_THAT(Run(program, {{"X", x}}), ElementsAre(2, 0, 0, 2));
}

TEST_F(RpcConstantsTest, AreForProgramsThatArePrepared) {
  const std::string a = Matrix(one_);
  EXPECT_THAT(Execute(Chain(a, a, a)),
              FailsWith(grpc::INVALID_ARGUMENT, "CONSTANT_NOT_PREPARED"));
  v1::ProgramExplanation explanation;
  EXPECT_THAT(Explain(Chain(a, a, a), &explanation), IsOk());
  EXPECT_EQ(explanation.kept_bytes(), 256);
  const v1::Program program = Created(Chain(a, a, a));
  v1::ExecuteProgramRequest request;
  request.set_name(program.name());
  AddOperands({{"X", a}}, request.mutable_operands());
  request.mutable_operands(0)->set_constant(true);
  EXPECT_THAT(Execute(request),
              FailsWith(grpc::INVALID_ARGUMENT, "CONSTANT_NOT_PREPARED"));
}

TEST_F(RpcConstantsTest, AreResidentTensorsThatAreNotWritten) {
  const std::string a = Matrix(one_);
  v1::Program unused;
  v1::ProgramSpec is_inline = Chain(a, a, a);
  v1::InlineTensor& sent = *is_inline.mutable_operands(1)->mutable_inline_();
  sent.set_element_type(v1::ELEMENT_TYPE_FLOAT32);
  sent.mutable_layout()->add_extents(2);
  sent.mutable_layout()->add_extents(2);
  EXPECT_THAT(CreateProgram(is_inline, "", &unused),
              FailsWith(grpc::INVALID_ARGUMENT, "CONSTANT_NOT_RESIDENT"));
  v1::ProgramSpec scalar = Chain(a, a, a);
  scalar.mutable_operands(0)->mutable_scalar()->set_real(1);
  EXPECT_THAT(CreateProgram(scalar, "", &unused),
              FailsWith(grpc::INVALID_ARGUMENT, "CONSTANT_NOT_RESIDENT"));
  v1::ProgramSpec written =
      Statements("\nA[i,j] += X[i,j]", {{"A", a}, {"X", a}});
  written.mutable_operands(0)->set_constant(true);
  const Outcome refused = CreateProgram(written, "", &unused);
  EXPECT_THAT(refused, FailsWith(grpc::INVALID_ARGUMENT, "CONSTANT_WRITTEN"));
  EXPECT_THAT(refused.status.error_message(), HasSubstr("line 2, column 1"));
  // Nor may one be sent to a run.
  const v1::Program program = Created(Chain(a, a, a));
  v1::ExecuteProgramRequest request;
  request.set_name(program.name());
  AddOperands({{"X", a}, {"A", a}}, request.mutable_operands());
  const float data[4] = {};
  *request.mutable_operands(1)->mutable_inline_() = sent;
  request.mutable_operands(1)->mutable_inline_()->set_data(data, sizeof(data));
  EXPECT_THAT(Execute(request),
              FailsWith(grpc::INVALID_ARGUMENT, "CONSTANT_NOT_RESIDENT"));
}

TEST_F(RpcConstantsTest, ProgramsMayGoWhileTheyRun) {
  const std::string a = Matrix(counting_), b = Matrix(two_), x = Matrix(one_);
  const v1::Program program = Created(Chain(a, b, x));
  auto blocker = std::make_unique<Blocker>(server_.device().worker());
  std::vector<std::thread> runs;
  std::vector<std::vector<float>> results(3);
  for (std::vector<float>& result : results) {
    runs.emplace_back([&] { result = Run(program, {{"X", x}}); });
  }
  // In the queue, not yet launched.
  AwaitQueued(3);
  ASSERT_THAT(DeleteProgram(program.name()), IsOk());
  blocker->Release();
  for (std::thread& run : runs) run.join();
  for (const std::vector<float>& result : results) {
    EXPECT_THAT(result, ElementsAre(2, 4, 6, 8));
  }
}

}  // namespace
}  // namespace tensord
