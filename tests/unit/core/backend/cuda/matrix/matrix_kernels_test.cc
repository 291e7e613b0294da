// What becomes of matrices on a GPU when something is not as it should be.
// What is computed is looked at in tests/conformance.
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/cuda/cuda_backend.h"
#include "core/backend/cuda/matrix/cublas.h"
#include "core/backend/cuda/matrix/cusolver.h"
#include "core/backend/cuda/matrix/matrix_run.h"
#include "core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/matrix/decomposition_runner.h"
#include "tests/conformance/simulated_cusolver.h"
#include "tests/simt/cusolver/routines.h"
#include "tests/simt/fake_runtime.h"

namespace tensord::core {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(CusolverTest, LibraryThatIsNotThereIsNamed) {
  const auto library = cuda::LoadCusolver("libcusolver.so.0");
  EXPECT_EQ(ReasonOf(library.status()), "CUSOLVER_UNAVAILABLE");
  EXPECT_THAT(library.status().message(), HasSubstr("libcusolver.so.0"));
}

TEST(CusolverTest, LibrariesWithoutTheFunctionsAreRefused) {
  const auto cusolver = cuda::LoadCusolver("libm.so.6");
  EXPECT_EQ(ReasonOf(cusolver.status()), "CUSOLVER_UNAVAILABLE");
  EXPECT_THAT(std::string(cusolver.status().message()),
              HasSubstr("libm.so.6 has no function cusolver"));
  const auto cublas = cuda::LoadCublas("libm.so.6");
  EXPECT_EQ(ReasonOf(cublas.status()), "CUBLAS_UNAVAILABLE");
  EXPECT_THAT(std::string(cublas.status().message()),
              HasSubstr("libm.so.6 has no function cublas"));
}

TEST(CusolverTest, WithoutItEveryKernelForMatricesSaysWhy) {
  simt::ResetNode({});
  test::HideCusolver(true);
  const auto backend = CreateCudaBackend(0).value();
  test::HideCusolver(false);
  EXPECT_THAT(backend->info().properties,
              Contains(Pair("cusolver", HasSubstr("cannot be loaded"))));
  const auto matrix = [](Mode row, Mode column) {
    return OperandDesc{ElementType::kFloat64, {{2, 2}, {1, 2}}, {row, column}};
  };
  int refusals = 0;
  const auto expect_refusal = [&](const auto& kernel, const auto& problem) {
    const absl::Status status = kernel.Solve(problem).status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    if (ReasonOf(status) == "CUSOLVER_UNAVAILABLE") ++refusals;
  };
  for (const auto& kernel : backend->kernels().factorization) {
    expect_refusal(*kernel,
                   Canonicalize(FactorizationDesc{.method = Method::kCholesky,
                                                  .a = matrix(0, 1),
                                                  .left = matrix(0, 2)}));
  }
  EXPECT_EQ(refusals, 1);  // the others are of other methods
  for (const auto& kernel : backend->kernels().linear_solve) {
    expect_refusal(*kernel, Canonicalize(LinearSolveDesc{.a = matrix(0, 1),
                                                         .d = matrix(1, 2)}));
  }
  EXPECT_EQ(refusals, 3);
}

class MatrixKernelsTest : public ::testing::Test {
 protected:
  MatrixKernelsTest() {
    simt::ResetNode({});
    backend_ = CreateCudaBackend(0).value();
  }
  ~MatrixKernelsTest() override { simt::RefuseToConverge(0); }

  const FactorizationKernel& Kernel(absl::string_view name) {
    for (const auto& kernel : backend_->kernels().factorization) {
      if (kernel->name() == name) return *kernel;
    }
    ADD_FAILURE() << "no kernel " << name;
    return *backend_->kernels().factorization.front();
  }
  Made Run(absl::string_view kernel, Method method, const Shape& shape,
           const std::vector<Matrix>& matrices) {
    const Asked asked{method, ElementType::kFloat64, shape, shape.inner(),
                      true};
    return Runner<double>(asked, rng_).Run(*backend_, Kernel(kernel), matrices);
  }
  Matrix Random(int64_t m, int64_t n) {
    return RandomMatrix(m, n, false, rng_);
  }

  std::mt19937 rng_{17};
  std::unique_ptr<Backend> backend_;
};

TEST_F(MatrixKernelsTest, JacobiThatDoesNotConvergeIsFollowedByAnotherWay) {
  // Short sides in a batch, and long ones of a single matrix.
  for (const Shape& shape :
       {Shape{{3}, {4}, {6}}, Shape{{}, {40}, {7}}, Shape{{2}, {5}, {40}}}) {
    std::vector<Matrix> matrices;
    for (int64_t b = 0; b < Shape::Product(shape.batch); ++b) {
      matrices.push_back(Random(shape.row_count(), shape.column_count()));
    }
    simt::RefuseToConverge(1);
    const Made made =
        Run("cuda.factorize.svd_jacobi", Method::kSvd, shape, matrices);
    ASSERT_EQ(made.status, absl::OkStatus());
    EXPECT_EQ(made.kept, shape.inner());
    for (size_t b = 0; b < matrices.size(); ++b) {
      const Matrix product = Product(
          Product(made.left[b], Diagonal(made.values[b])), made.right[b]);
      EXPECT_LE(Difference(made.a[b], product).norm(), 1e-13);
    }
  }
}

TEST_F(MatrixKernelsTest, ManyMatricesAreTakenInParts) {
  const Shape shape{{cuda::kMostTogether + 5}, {2}, {2}};
  std::vector<Matrix> matrices;
  for (int64_t b = 0; b < shape.batch[0]; ++b) {
    Matrix matrix(2, 2);
    matrix(0, 0) = matrix(1, 1) = static_cast<long double>(b % 1000 + 2);
    matrix(0, 1) = matrix(1, 0) = 1;
    matrices.push_back(matrix);
  }
  const auto expect_values = [&](const Made& made, bool ascends) {
    ASSERT_EQ(made.status, absl::OkStatus());
    for (int64_t b = 0; b < shape.batch[0]; ++b) {
      const auto middle = static_cast<long double>(b % 1000 + 2);
      const std::vector<long double>& values =
          made.values[static_cast<size_t>(b)];
      ASSERT_NEAR(values[ascends ? 0 : 1], middle - 1, 1e-12);
      ASSERT_NEAR(values[ascends ? 1 : 0], middle + 1, 1e-12);
    }
  };
  expect_values(Run("cuda.factorize.svd_jacobi", Method::kSvd, shape, matrices),
                false);
  expect_values(
      Run("cuda.factorize.eigh_jacobi", Method::kEigh, shape, matrices), true);
  const Asked asked{Method::kCholesky, ElementType::kFloat64, shape, 2, false};
  const Made made =
      Runner<double>(asked, rng_)
          .Run(*backend_, Kernel("cuda.factorize.cholesky"), matrices);
  ASSERT_EQ(made.status, absl::OkStatus());
  for (size_t b = 0; b < matrices.size(); ++b) {
    const Matrix product = Product(made.left[b], Adjoint(made.left[b]));
    ASSERT_LE(Difference(made.a[b], product).norm(), 1e-12 * 2000);
  }
}

/// Of a matrix of m x n, in float64.
FactorizationProblem SvdOf(int64_t m, int64_t n) {
  const auto matrix = [](Mode row, Mode column, int64_t rows, int64_t columns) {
    return OperandDesc{
        ElementType::kFloat64, {{rows, columns}, {1, rows}}, {row, column}};
  };
  const int64_t k = std::min(m, n);
  return Canonicalize(FactorizationDesc{
      .method = Method::kSvd,
      .a = matrix(0, 1, m, n),
      .left = matrix(0, 2, m, k),
      .right = matrix(2, 1, k, n),
      .values = OperandDesc{ElementType::kFloat64, {{k}, {1}}, {2}}});
}

TEST_F(MatrixKernelsTest, ThinMatricesAreDecomposedByOneWayAlone) {
  for (const auto& [m, n] : {std::pair(100'000, 10), std::pair(10, 100'000)}) {
    EXPECT_EQ(
        ReasonOf(Kernel("cuda.factorize.svd").Solve(SvdOf(m, n)).status()),
        "MATRIX_TOO_LARGE");
    const auto solution =
        Kernel("cuda.factorize.svd_jacobi").Solve(SvdOf(m, n));
    ASSERT_EQ(solution.status(), absl::OkStatus());
    EXPECT_LE((*solution)->workspace_bytes(), 4 * 100'000 * 10 * 8);
  }
  EXPECT_EQ(ReasonOf(Kernel("cuda.factorize.svd_jacobi")
                         .Solve(SvdOf(1 << 20, 1 << 20))
                         .status()),
            "MATRIX_TOO_LARGE");
}

TEST_F(MatrixKernelsTest, EigenvaluesThatDoNotConvergeAreToldOf) {
  Matrix symmetric = Random(4, 4);
  symmetric = Product(symmetric, Adjoint(symmetric));
  for (const char* const kernel :
       {"cuda.factorize.eigh", "cuda.factorize.eigh_jacobi"}) {
    simt::RefuseToConverge(1);
    const absl::Status status =
        Run(kernel, Method::kEigh, {{}, {4}, {4}}, {symmetric}).status;
    EXPECT_EQ(ReasonOf(status), "DID_NOT_CONVERGE");
    EXPECT_EQ(status.message(),
              "eigh of a, a matrix of 4 x 4, did not converge");
  }
}

TEST_F(MatrixKernelsTest, ACallThatFailsIsToldOfAndTheNextOneWorks) {
  const Shape shape{{2}, {6}, {3}};
  const std::vector<Matrix> matrices = {Random(6, 3), Random(6, 3)};
  for (const auto kind : {simt::CallKind::kLaunch, simt::CallKind::kCopy}) {
    int failures = 0;
    for (int n = 1; n <= 20; ++n) {
      simt::FailCall(kind, n, cudaErrorInvalidValue);
      const absl::Status status =
          Run("cuda.factorize.svd", Method::kSvd, shape, matrices).status;
      simt::ForgetFailures();
      if (status.ok()) continue;
      ++failures;
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    }
    // Loading, looking, two calls of the library, cutting and three stores; or
    // clearing and, twice, copies of what is known.
    EXPECT_GE(failures, kind == simt::CallKind::kLaunch ? 7 : 3);
    EXPECT_LT(failures, 20);
    EXPECT_EQ(Run("cuda.factorize.svd", Method::kSvd, shape, matrices).status,
              absl::OkStatus());
  }
}

TEST_F(MatrixKernelsTest, ADeviceThatIsLostIsToldOf) {
  simt::FailCall(simt::CallKind::kLaunch, 3, cudaErrorIllegalAddress);
  EXPECT_EQ(ReasonOf(Run("cuda.factorize.svd", Method::kSvd, {{}, {6}, {3}},
                         {Random(6, 3)})
                         .status),
            "DEVICE_LOST");
  EXPECT_EQ(ReasonOf(backend_->health()), "DEVICE_LOST");
}

}  // namespace
}  // namespace tensord::core
