// Functions of whole matrices in programs.
#include <cmath>

#include "tests/conformance/rpc_program.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;

class RpcMatrixProgramTest : public RpcProgramTest {
 protected:
  /// [[0, 2], [1, 3]].
  std::string Matrix() { return Filled({2, 2}); }
};

TEST_F(RpcMatrixProgramTest, ResultsAndTheirExtentsComeInOneReply) {
  v1::ProgramSpec spec = Statements(
      "U[i,k], S[k], V[k,j] := svd(A[i,j] + A[i,j]; relative_cutoff=x)\n"
      "D[i,j] := U[i,k]*Diagonal(S)[k,l]*V[l,j]",
      {{"A", Matrix()}, {"x", 0.5}});
  for (const char* name : {"D", "S"}) spec.add_outputs()->set_name(name);
  v1::ExecuteProgramResponse response;
  for (const auto selection :
       {v1::SELECTION_HEURISTIC, v1::SELECTION_MEASURE}) {
    spec.set_selection(selection);
    ASSERT_THAT(Execute(spec, &response), IsOk());
    ASSERT_EQ(response.results_size(), 2);
    const std::vector<float> s = Values(response.results(1).tensor().name());
    // Of A: the roots of 7 +- sqrt(45).
    EXPECT_NEAR(s[0], 2 * std::sqrt(7 + std::sqrt(45)), 1e-5);
    EXPECT_EQ(s[1], 0);
    ASSERT_EQ(response.report().kept_extents_size(), 1);
    const v1::KeptExtent& kept = response.report().kept_extents(0);
    EXPECT_EQ(kept.statement(), 0);
    EXPECT_EQ(kept.label(), "k");
    EXPECT_EQ(kept.extent(), 1);
    const std::vector<float> d = Values(response.results(0).tensor().name());
    float squares = 0;
    for (const float each : d) squares += each * each;
    EXPECT_NEAR(squares, s[0] * s[0], 1e-4);
  }
  // The same program, with another limit.
  spec.mutable_operands(1)->mutable_scalar()->set_real(0.01);
  ASSERT_THAT(Execute(spec, &response), IsOk());
  EXPECT_TRUE(response.report().program_cache_hit());
  EXPECT_EQ(response.report().kept_extents(0).extent(), 2);
}

TEST_F(RpcMatrixProgramTest, ConstantsAreDecomposedOnce) {
  const std::string a = Matrix();
  v1::ProgramSpec spec = Statements(
      "U[i,k], S[k], V[k,j] := svd(A[i,j]; relative_cutoff=0.5)\n"
      "D[k,j] := U[i,k]*X[i,j]",
      {{"A", a}, {"X", a}});
  spec.add_outputs()->set_name("D");
  spec.mutable_operands(0)->set_constant(true);
  v1::Program program;
  ASSERT_THAT(CreateProgram(spec, "", &program), IsOk());
  EXPECT_THAT(program.explanation().text(),
              HasSubstr("U[i,k], S[k], V[k,j] = svd(A[i,j]; "
                        "relative_cutoff=0.5)  # " +
                        KernelPrefix() + ".factorize"));
  v1::ExecuteProgramRequest request;
  request.set_name(program.name());
  AddOperands({{"X", a}}, request.mutable_operands());
  for (int i = 0; i < 3; ++i) {
    v1::ExecuteProgramResponse response;
    ASSERT_THAT(Execute(request, &response), IsOk());
    EXPECT_EQ(response.report().folded_operation_count(), i == 0 ? 0 : 1);
    ASSERT_EQ(response.report().kept_extents_size(), 1);
    EXPECT_EQ(response.report().kept_extents(0).extent(), 1);
    EXPECT_EQ(Values(response.results(0).tensor().name())[1], 0);
  }
}

// Also where programs without such steps are recorded, to be queued at once.
TEST_F(RpcMatrixProgramTest, EquationsAreSolvedEachTime) {
  const std::string a = Matrix();
  v1::ProgramSpec spec = Statements(
      "X[j,k] := inv(A[i,j]); D[i,k] := A[i,j]*X[j,k]; E[i,k] := D[i,k] + "
      "D[i,k]",
      {{"A", a}});
  spec.add_outputs()->set_name("E");
  v1::Program program;
  ASSERT_THAT(CreateProgram(spec, "", &program), IsOk());
  v1::ExecuteProgramRequest request;
  request.set_name(program.name());
  AddOperands({{"A", a}}, request.mutable_operands());
  for (int i = 0; i < 4; ++i) {
    v1::ExecuteProgramResponse response;
    ASSERT_THAT(Execute(request, &response), IsOk());
    const std::string e = response.results(0).tensor().name();
    EXPECT_EQ(Values(e), (std::vector<float>{2, 0, 0, 2}));
    ASSERT_THAT(Delete(e), IsOk());  // the next one lies where it did
  }
}

// They wait for numbers of the device, each time.
TEST_F(RpcMatrixProgramTest, ExponentialsAreComputedEachTime) {
  const std::string a = Filled({2, 2});
  ASSERT_THAT(Upload({Chunk(a, 0, std::vector<float>{0, 3, 0, 0})}), IsOk());
  v1::ProgramSpec spec = Statements(
      "B[i,j] := 2*A[i,j]; E[i,j] := expm(B[i,j]); F[i,k] := E[i,j]*E[j,k]; "
      "n = norm(A[i,j])",
      {{"A", a}});
  spec.add_outputs()->set_name("F");
  spec.add_outputs()->set_name("n");
  v1::Program program;
  ASSERT_THAT(CreateProgram(spec, "", &program), IsOk());
  EXPECT_THAT(
      program.explanation().text(),
      HasSubstr("E[i,j] = expm(B[i,j])  # " + KernelPrefix() + ".solve"));
  v1::ExecuteProgramRequest request;
  request.set_name(program.name());
  AddOperands({{"A", a}}, request.mutable_operands());
  for (int i = 0; i < 4; ++i) {
    v1::ExecuteProgramResponse response;
    ASSERT_THAT(Execute(request, &response), IsOk());
    const std::string f = response.results(0).tensor().name();
    EXPECT_EQ(Values(f), (std::vector<float>{1, 12, 0, 1}));
    EXPECT_EQ(Values(response.results(1).tensor().name()),
              (std::vector<float>{3}));
    ASSERT_THAT(Delete(f), IsOk());  // the next one lies where it did
  }
}

TEST_F(RpcMatrixProgramTest, RefusedMatricesLeaveWhatTheyWriteInvalid) {
  v1::Tensor zeros;
  ASSERT_THAT(Create(CreateRequest({2, 2}), &zeros), IsOk());
  ASSERT_THAT(Upload({Chunk(zeros.name(), 0, std::vector<float>(4))}), IsOk());
  const std::string d = Matrix();
  const v1::ProgramSpec spec =
      Statements("B[i,j] := 2*A[i,j]; D[j,r] = inv(B[i,j])",
                 {{"A", zeros.name()}, {"D", d}});
  const Outcome outcome = Execute(spec);
  EXPECT_THAT(outcome, FailsWith(grpc::INVALID_ARGUMENT, "MATRIX_SINGULAR"));
  EXPECT_THAT(outcome.status.error_message(),
              HasSubstr("line 1, column 30: inv() of a = 'B[i,j]': a, "));
  EXPECT_THAT(Execute(Statements("E[i,j] := A[i,j]", {{"A", d}})),
              FailsWith(grpc::FAILED_PRECONDITION, "TENSOR_NOT_READY"));
  EXPECT_THAT(Execute(Statements("E[i,j] := A[i,j]", {{"A", zeros.name()}})),
              IsOk());
}

}  // namespace
}  // namespace tensord
