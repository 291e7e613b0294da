// Programs: notation in, resident tensors out.
#include "tests/conformance/rpc_program.h"

namespace tensord {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(RpcProgramTest, RunsStatementsOverResidentTensors) {
  // A = [[0, 2, 4], [1, 3, 5]], first mode fastest.
  const std::string a = Filled({2, 3}), d = Filled({2, 2});
  v1::ExecuteProgramResponse response;
  ASSERT_THAT(Execute(Statements("T[i,j] := A[i,k]*A[j,k]\n"
                                 "D[i,j] += x*T[i,j]\n"
                                 "s := T[i,i]",
                                 {{"A", a}, {"D", d}, {"x", 2.0}}),
                      &response),
              IsOk());
  // A A^T = [[20, 26], [26, 35]].
  EXPECT_THAT(Values(d), ElementsAre(40, 53, 54, 73));
  ASSERT_EQ(response.results_size(), 1);
  EXPECT_EQ(response.results(0).name(), "s");
  EXPECT_THAT(Values(response.results(0).tensor().name()), ElementsAre(55));
  EXPECT_EQ(response.report().operation_count(), 3);
  EXPECT_EQ(response.report().peak_bytes(), 256);
  EXPECT_FALSE(response.report().program_cache_hit());
  // a, d and s; T is gone.
  EXPECT_EQ(TensorCount(), 3);
}

TEST_F(RpcProgramTest, ContractsManyOperandsInAGoodOrder) {
  const std::string a = Filled({2, 3}), b = Filled({3, 4}), c = Filled({4, 2});
  v1::ExecuteProgramResponse response;
  v1::ProgramSpec spec = Einsum("ab,bc,cd->ad", {a, b, c});
  spec.add_outputs()->set_inline_(true);
  ASSERT_THAT(Execute(spec, &response), IsOk());
  ASSERT_EQ(response.results(0).data().size(), 16u);
  std::vector<float> got(4);
  std::memcpy(got.data(), response.results(0).data().data(), 16);
  std::vector<float> wanted(4, 0);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) {
        for (int l = 0; l < 2; ++l) {
          wanted[i + 2 * l] +=
              static_cast<float>((i + 2 * j) * (j + 3 * k) * (k + 4 * l));
        }
      }
    }
  }
  EXPECT_EQ(got, wanted);
  EXPECT_EQ(TensorCount(), 3);
  ASSERT_THAT(Execute(spec, &response), IsOk());
  EXPECT_TRUE(response.report().program_cache_hit());
}

TEST_F(RpcProgramTest, SlicesToKeepToTheMemoryLimit) {
  const std::string a = Filled({8, 8, 8});
  v1::ProgramSpec spec =
      Einsum("abc,cde,efg,gha,bdi,fhj->ij", {a, a, a, a, a, a});
  v1::ExecuteProgramResponse response;
  ASSERT_THAT(Execute(spec, &response), IsOk());
  const std::vector<float> wanted = Values(response.results(0).tensor().name());
  const int64_t peak = response.report().peak_bytes();
  ASSERT_GT(peak, 4096);
  spec.mutable_path()->set_memory_limit_bytes(peak / 2);
  ASSERT_THAT(Execute(spec, &response), IsOk());
  EXPECT_LE(response.report().peak_bytes(), peak / 2);
  EXPECT_GT(response.report().operation_count(), 5);
  const std::vector<float> got = Values(response.results(0).tensor().name());
  ASSERT_EQ(got.size(), wanted.size());
  // All terms are positive: the error is relative to the sum. Each of the five
  // contractions sums at most 64 products, and slices are at most 8^8.
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], wanted[i], 2 * (5 * 66 + 8) * 6e-8 * wanted[i]);
  }
  spec.mutable_path()->set_memory_limit_bytes(300);
  EXPECT_THAT(Execute(spec),
              FailsWith(grpc::RESOURCE_EXHAUSTED, "PATH_MEMORY_LIMIT"));
}

TEST_F(RpcProgramTest, PreparesProgramsThatRunOftenWithOtherOperands) {
  const std::string a = Filled({2, 2}), b = Filled({2, 2});
  v1::Program program;
  ASSERT_THAT(CreateProgram(Statements("R[i,k] := x*A[i,j]*B[j,k]",
                                       {{"A", a}, {"B", b}, {"x", 1.0}}),
                            "product", &program),
              IsOk());
  EXPECT_EQ(program.name(), session_ + "/programs/product");
  EXPECT_THAT(program.explanation().text(), HasSubstr("A[i,j]*B[j,k]"));
  v1::ExecuteProgramRequest request;
  request.set_name(program.name());
  AddOperands({{"B", a}, {"A", b}}, request.mutable_operands());
  v1::ExecuteProgramResponse response;
  ASSERT_THAT(Execute(request, &response), IsOk());
  // [[0, 2], [1, 3]] squared.
  EXPECT_THAT(Values(response.results(0).tensor().name()),
              ElementsAre(2, 3, 6, 11));
  AddOperands({{"x", -2.0}}, request.mutable_operands());
  ASSERT_THAT(Execute(request, &response), IsOk());
  EXPECT_THAT(Values(response.results(0).tensor().name()),
              ElementsAre(-4, -6, -12, -22));

  v1::DescribeProgramRequest describe;
  describe.set_program(program.name());
  v1::DescribeProgramResponse described;
  ASSERT_THAT(Unary(&v1::ProgramService::Stub::DescribeProgram, *programs_,
                    describe, &described),
              IsOk());
  EXPECT_EQ(described.program().operands_size(), 3);
  EXPECT_EQ(described.program().source().statements(),
            "R[i,k] := x*A[i,j]*B[j,k]");

  request.clear_operands();
  AddOperands({{"A", a}, {"B", Filled({2, 3})}}, request.mutable_operands());
  EXPECT_THAT(Execute(request),
              FailsWith(grpc::INVALID_ARGUMENT, "PROGRAM_OPERAND_DIFFERS"));
  request.clear_operands();
  AddOperands({{"A", a}}, request.mutable_operands());
  EXPECT_THAT(Execute(request),
              FailsWith(grpc::INVALID_ARGUMENT, "INPUT_MISSING"));
  AddOperands({{"Z", a}}, request.mutable_operands());
  EXPECT_THAT(Execute(request),
              FailsWith(grpc::INVALID_ARGUMENT, "NAME_UNKNOWN"));

  v1::ListProgramsRequest list;
  list.set_session(session_);
  v1::ListProgramsResponse listed;
  ASSERT_THAT(
      Unary(&v1::ProgramService::Stub::ListPrograms, *programs_, list, &listed),
      IsOk());
  EXPECT_EQ(listed.programs_size(), 1);
  v1::DeleteProgramRequest remove;
  remove.set_program(program.name());
  v1::DeleteProgramResponse removed;
  ASSERT_THAT(Unary(&v1::ProgramService::Stub::DeleteProgram, *programs_,
                    remove, &removed),
              IsOk());
  EXPECT_THAT(Execute(request),
              FailsWith(grpc::NOT_FOUND, "PROGRAM_NOT_FOUND"));
}

TEST_F(RpcProgramTest, ExplainsWithoutRunning) {
  const std::string a = Filled({4, 5}), b = Filled({5, 6}), c = Filled({6, 3});
  v1::ExplainProgramRequest request;
  request.set_session(session_);
  *request.mutable_spec() = Einsum("ab,bc,cd->ad", {a, b, c});
  v1::ExplainProgramResponse response;
  ASSERT_THAT(Unary(&v1::ProgramService::Stub::ExplainProgram, *programs_,
                    request, &response),
              IsOk());
  const v1::ProgramExplanation& explanation = response.explanation();
  ASSERT_EQ(explanation.products_size(), 1);
  const v1::ProgramProduct& product = explanation.products(0);
  EXPECT_EQ(product.method(), "optimal");
  EXPECT_EQ(product.nodes_size(), 5);
  // (b, c) with d first: 5*6*3, then 4*5*3, both summed.
  EXPECT_EQ(product.flops(), 2 * (90 + 60));
  EXPECT_EQ(explanation.flops(), product.flops());
  double of_nodes = 0;
  for (const v1::TreeNode& node : product.nodes()) of_nodes += node.flops();
  EXPECT_EQ(of_nodes, product.flops());
  ASSERT_EQ(explanation.operations_size(), 2);
  for (const v1::ProgramOperation& operation : explanation.operations()) {
    EXPECT_EQ(operation.operation(), "contract");
    EXPECT_THAT(operation.kernel(), HasSubstr(KernelPrefix()));
  }
  v1::ExecuteProgramResponse executed;
  ASSERT_THAT(Execute(request.spec(), &executed), IsOk());
  EXPECT_EQ(executed.report().flops(), explanation.flops());
  EXPECT_EQ(executed.report().peak_bytes(), explanation.peak_bytes());
}

TEST_F(RpcProgramTest, ReadsAndWritesViews) {
  const std::string base = Filled({4, 4});
  const auto view = [&](const std::string& tensor, int begin, int step) {
    v1::CreateViewRequest request;
    request.set_tensor(tensor);
    v1::IndexItem& rows = *request.add_stages()->mutable_index()->add_items();
    rows.mutable_slice()->set_start(begin);
    rows.mutable_slice()->set_step(step);
    v1::CreateViewResponse response;
    EXPECT_THAT(
        Unary(&v1::ViewService::Stub::CreateView, *views_, request, &response),
        IsOk());
    return response.tensor().name();
  };
  // Rows 0 and 2; rows 3, 2, 1, 0.
  const std::string even = view(base, 0, 2), back = view(base, 3, -1);
  v1::ExecuteProgramResponse response;
  ASSERT_THAT(
      Execute(Statements("R[i,j] := E[i,k]*B[k,j]", {{"E", even}, {"B", back}}),
              &response),
      IsOk());
  EXPECT_GT(response.report().gathered_bytes(), 0);
  std::vector<float> wanted;
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < 2; ++i) {
      float sum = 0;
      for (int k = 0; k < 4; ++k) {
        sum += static_cast<float>((2 * i + 4 * k) * (3 - k + 4 * j));
      }
      wanted.push_back(sum);
    }
  }
  EXPECT_EQ(Values(response.results(0).tensor().name()), wanted);
  // Written in part, backwards: the others keep what they have.
  const std::string d = Filled({4, 1});
  ASSERT_THAT(Execute(Statements("B[i,j] += 10*B[i,j]",
                                 {{"B", view(view(d, 0, 2), 1, -1)}})),
              IsOk());
  EXPECT_THAT(Values(d), ElementsAre(0, 1, 22, 3));
  // What is gathered first does not change meanwhile.
  EXPECT_THAT(
      Execute(Statements("E[k,j] = B[i,k]*B[i,j]", {{"E", base}, {"B", back}})),
      IsOk());
  EXPECT_THAT(
      Execute(Statements("E[k,j] = B[i,k]*B[i,j]", {{"E", base}, {"B", even}})),
      FailsWith(grpc::INVALID_ARGUMENT, "OUTPUT_OVERLAPS_INPUT"));
}

TEST_F(RpcProgramTest, SymbolicCostsDecideTheTree) {
  // a, b, c: 2; d, e, f, g: 3.
  const std::string a = Filled({2, 3, 3, 2}), b = Filled({3, 3, 3}),
                    c = Filled({3, 3, 2, 3});
  v1::ProgramSpec spec =
      Statements("D[a,b,c] := A[a,e,f,c]*B[g,d,e]*C[g,f,b,d]",
                 {{"A", a}, {"B", b}, {"C", c}});
  v1::ExecuteProgramResponse by_extents;
  ASSERT_THAT(Execute(spec, &by_extents), IsOk());
  const std::vector<float> wanted =
      Values(by_extents.results(0).tensor().name());
  const auto first_pair = [&](const std::string& costs) {
    spec.mutable_path()->set_costs(costs);
    v1::ProgramExplanation explanation;
    EXPECT_THAT(Explain(spec, &explanation), IsOk());
    const v1::ProgramProduct& product = explanation.products(0);
    EXPECT_THAT(explanation.text(),
                HasSubstr(product.symbolic_cost() + " multiplications"));
    v1::ExecuteProgramResponse response;
    EXPECT_THAT(Execute(spec, &response), IsOk());
    EXPECT_EQ(response.report().flops(), explanation.flops());
    // Sums of integers below 2^24 are exact.
    EXPECT_EQ(Values(response.results(0).tensor().name()), wanted);
    v1::Program program;
    EXPECT_THAT(CreateProgram(spec, "", &program), IsOk());
    EXPECT_EQ(program.explanation().products(0).symbolic_cost(),
              product.symbolic_cost());
    return absl::StrCat(product.nodes(3).children(0),
                        product.nodes(3).children(1), ": ",
                        product.symbolic_cost());
  };
  EXPECT_EQ(first_pair(""), "12: 2*χ^5");
  EXPECT_EQ(first_pair("(a,b,c,e)"), "01: 2*χ^3");
  EXPECT_EQ(first_pair("!(a,b,c,e)"), "12: χ^3 + χ");
  EXPECT_EQ(first_pair("a=>χ, b=>χ^2, c=>2*χ, e=>5"), "01: 2*χ^4 + 10*χ^2");
}

TEST_F(RpcProgramTest, SymbolicCostsThatDoNotFitAreRefused) {
  const std::string a = Filled({2, 2});
  v1::ProgramSpec spec = Einsum("ij,jk,kl->il", {a, a, a});
  v1::PathOptions& path = *spec.mutable_path();
  path.set_costs("i=>χ, j=>2*");
  const Outcome malformed = Execute(spec);
  EXPECT_THAT(malformed, FailsWith(grpc::INVALID_ARGUMENT, "COST_MALFORMED"));
  EXPECT_THAT(malformed.status.error_message(),
              HasSubstr("costs, column 12: got the end"));
  path.set_costs("i, z");
  const Outcome unknown = Explain(spec);
  EXPECT_THAT(unknown, FailsWith(grpc::INVALID_ARGUMENT, "COST_LABEL_UNKNOWN"));
  EXPECT_THAT(unknown.status.error_message(),
              HasSubstr("costs, column 4: the program has no label 'z'"));
  path.set_costs("i");
  path.set_method(v1::PATH_METHOD_PARTITION);
  EXPECT_THAT(Execute(spec),
              FailsWith(grpc::INVALID_ARGUMENT, "COST_CONFLICT"));
  path.set_method(v1::PATH_METHOD_OPTIMAL);
  EXPECT_THAT(Execute(spec), IsOk());
}

TEST_F(RpcProgramTest, WhatNobodyReadsIsNotComputed) {
  const std::string a = Filled({2, 2});
  v1::ProgramSpec spec = Statements(
      "T[i,l] := A[i,j]*A[k,j]*A[k,l]; U[i,k] := A[i,j]*A[j,k]", {{"A", a}});
  spec.add_outputs()->set_name("U");
  v1::ExecuteProgramResponse response;
  ASSERT_THAT(Execute(spec, &response), IsOk());
  EXPECT_EQ(response.report().operation_count(), 1);
  EXPECT_EQ(response.report().peak_bytes(), 0);
  EXPECT_THAT(Values(response.results(0).tensor().name()),
              ElementsAre(2, 3, 6, 11));
  v1::ProgramExplanation explanation;
  ASSERT_THAT(Explain(spec, &explanation), IsOk());
  EXPECT_EQ(explanation.products_size(), 0);
}

TEST_F(RpcProgramTest, RefusalsLeaveEverythingAsItWas) {
  const std::string a = Filled({2, 3}), d = Filled({2, 2});
  v1::Tensor empty;
  ASSERT_THAT(Create(CreateRequest({2, 3}), &empty), IsOk());
  struct Case {
    v1::ProgramSpec spec;
    grpc::StatusCode code;
    std::string reason;
  };
  v1::ProgramSpec twice = Statements("D[i,j] = A[i,k]*A[j,k]", {{"A", a}});
  AddOperands({{"D", d}, {"A", a}}, twice.mutable_operands());
  v1::ProgramSpec none;
  AddOperands({{"A", a}}, none.mutable_operands());
  for (const Case& wanted : std::vector<Case>{
           {Statements("D[i,j] = A[i,k]*A[j,k", {{"A", a}, {"D", d}}),
            grpc::INVALID_ARGUMENT, "SYNTAX_ERROR"},
           {Statements("D[i,j] = A[i,k]*A[j,l]", {{"A", a}, {"D", d}}),
            grpc::INVALID_ARGUMENT, "LABEL_UNMATCHED"},
           {Statements("D[i,j] = A[i,j]", {{"A", a}, {"D", d}}),
            grpc::INVALID_ARGUMENT, "MODE_EXTENT_MISMATCH"},
           {Statements("D[i,j] = A[i,k]*B[j,k]", {{"A", a}, {"D", d}}),
            grpc::INVALID_ARGUMENT, "NAME_UNKNOWN"},
           {twice, grpc::INVALID_ARGUMENT, "OPERAND_REPEATED"},
           {none, grpc::INVALID_ARGUMENT, "NOTATION_MISSING"},
           {Einsum("ij,jk->ik", {a}), grpc::INVALID_ARGUMENT,
            "OPERAND_COUNT_MISMATCH"},
           {Einsum("ij->ijk", {a}), grpc::INVALID_ARGUMENT,
            "MODE_NOT_IN_INPUT"},
           {Einsum("ij->i", {session_ + "/tensors/none"}), grpc::NOT_FOUND,
            "TENSOR_NOT_FOUND"},
           {Statements("D[i,j] = A[i,k]*E[j,k]",
                       {{"A", a}, {"E", empty.name()}, {"D", d}}),
            grpc::FAILED_PRECONDITION, "TENSOR_NOT_READY"},
           {Statements("B[i,j] := A[i,k]*A[j,k]; D[i,j] = B[i,j]",
                       {{"A", a}, {"D", d}, {"B", d}}),
            grpc::INVALID_ARGUMENT, ""},
       }) {
    if (wanted.reason.empty()) {
      // A name that the program makes anew hides the operand.
      EXPECT_THAT(Execute(wanted.spec), IsOk());
      continue;
    }
    EXPECT_THAT(Execute(wanted.spec), FailsWith(wanted.code, wanted.reason));
    EXPECT_THAT(Values(d), ElementsAre(0, 1, 2, 3));
  }
  EXPECT_EQ(TensorCount(), 3);
}

TEST_F(RpcProgramTest, ReturnsAllMemory) {
  const std::string a = Filled({16, 16});
  const int64_t used = server_.used_bytes();
  v1::ProgramSpec spec = Einsum("ab,bc,cd,de->ae", {a, a, a, a});
  spec.add_outputs()->set_inline_(true);
  for (int i = 0; i < 3; ++i) ASSERT_THAT(Execute(spec), IsOk());
  EXPECT_EQ(server_.used_bytes(), used);
  // More than there is: the outputs that were to be made are not there.
  const std::string large = Filled({2048, 1});
  const int64_t tensors = TensorCount();
  EXPECT_THAT(
      Execute(Statements("T[i,j] := A[i,k]*A[j,k]; U[i,j] := T[i,j] + T[j,i]; "
                         "V[i,j,l,k] := T[i,j]*A[l,k]",
                         {{"A", large}})),
      FailsWith(grpc::RESOURCE_EXHAUSTED, "MEMORY_LIMIT"));
  EXPECT_EQ(TensorCount(), tensors);
  EXPECT_EQ(server_.used_bytes() - used, 2048 * 4);
}

}  // namespace
}  // namespace tensord
