#include "core/backend/cpu/gemm/contraction_gemm.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "core/backend/cpu/contraction_reference.h"
#include "core/backend/cpu/cpu_features.h"
#include "core/base/status.h"
#include "core/device/host_stream.h"
#include "core/memory/host_resource.h"
#include "gtest/gtest.h"

namespace tensord::core {
namespace {

/// An operand whose modes are `labels` in random order, packed.
OperandDesc RandomOperand(std::vector<Mode> labels,
                          const std::vector<int64_t>& extents,
                          std::mt19937& rng) {
  std::shuffle(labels.begin(), labels.end(), rng);
  OperandDesc operand{.element_type = ElementType::kInt32};
  ModeVector sizes;
  for (const Mode label : labels) {
    operand.modes.push_back(label);
    sizes.push_back(extents[label]);
  }
  operand.layout = PackedLayout(sizes, Order::kFirstModeFastest);
  return operand;
}

/// Up to seven modes, each in a random set of operands.
ContractionDesc RandomContraction(std::mt19937& rng) {
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(rng);
  };
  std::vector<int64_t> extents;
  std::vector<Mode> a, b, d;
  const int count = draw(0, 7);
  for (Mode mode = 0; mode < count; ++mode) {
    extents.push_back(draw(1, 6));
    const int role = draw(0, 9);
    const bool is_batch = role == 9;
    const bool is_m = role < 3, is_n = role >= 3 && role < 6;
    if (!is_n) a.push_back(mode);
    if (!is_m) b.push_back(mode);
    if (is_m || is_n || is_batch) d.push_back(mode);
  }
  return {.a = RandomOperand(a, extents, rng),
          .b = RandomOperand(b, extents, rng),
          .c = std::nullopt,
          .d = RandomOperand(d, extents, rng),
          .compute_type = ComputeType::kInteger};
}

std::vector<int32_t> RandomElements(const OperandDesc& operand,
                                    std::mt19937& rng) {
  std::vector<int32_t> elements(ElementCount(operand.layout));
  for (int32_t& element : elements) element = static_cast<int32_t>(rng());
  return elements;
}

void Launch(const ContractionKernel& kernel, const ContractionProblem& problem,
            const ContractionOperands& operands) {
  HostResource memory;
  HostStream stream;
  const auto solution = kernel.Solve(problem);
  ASSERT_TRUE(solution.ok()) << solution.status();
  const Buffer buffer =
      Buffer::Allocate(memory, (*solution)->workspace_bytes()).value();
  Workspace workspace({buffer.data(), static_cast<size_t>(buffer.bytes())});
  ASSERT_TRUE((*solution)->Launch(operands, workspace, stream).ok());
}

TEST(GemmContractionTest, EveryMixOfCopiesAndLoopsGivesTheSameIntegers) {
  ThreadPool threads(2);
  const auto reference = CreateReferenceContraction();
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const ContractionDesc desc = RandomContraction(rng);
    ASSERT_TRUE(Validate(desc).ok());
    const ContractionProblem problem = Canonicalize(desc);
    // Free copies make products large, dear ones make them many.
    const GemmRates rates{.bytes_per_ns = seed % 2 == 0 ? 1e9 : 1e-9,
                          .has_small_kernels = seed % 3 == 0};
    const auto kernel = CreateGemmContraction(
        threads, absl::UnavailableError("integers need none"), rates);
    const std::vector<int32_t> a = RandomElements(desc.a, rng);
    const std::vector<int32_t> b = RandomElements(desc.b, rng);
    std::vector<int32_t> expected = RandomElements(desc.d, rng);
    std::vector<int32_t> actual = expected;
    ContractionOperands operands{
        .a = a.data(), .b = b.data(), .alpha = {3, 0}, .beta = {-2, 0}};
    operands.c = operands.d = expected.data();
    Launch(*reference, problem, operands);
    operands.c = operands.d = actual.data();
    Launch(*kernel, problem, operands);
    ASSERT_EQ(actual, expected);
  }
}

TEST(GemmContractionTest, WithoutBlasRefusesWithTheReason) {
  ThreadPool threads(1);
  const auto kernel = CreateGemmContraction(
      threads, absl::UnavailableError("no libopenblas.so.0"), {});
  const absl::Status status = kernel->Solve(ContractionProblem{}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ReasonOf(status), "NO_BLAS");
  EXPECT_NE(status.message().find("no libopenblas.so.0"),
            absl::string_view::npos);
}

TEST(GemmContractionTest, FullContractionsDoNotDependOnTheThreads) {
  absl::StatusOr<std::shared_ptr<const Blas>> blas =
      Blas::Load(DetectCpuFeatures());
  ASSERT_TRUE(blas.ok()) << blas.status();
  constexpr int64_t kCount = 300'000;
  std::mt19937 rng(1);
  std::vector<float> a(kCount), b(kCount);
  for (auto* x : {&a, &b}) {
    for (float& element : *x) {
      element = std::uniform_real_distribution<float>(-1, 1)(rng);
    }
  }
  ContractionProblem problem;
  problem.k = {{kCount, {1, 1}}};
  std::vector<float> results;
  for (const int thread_count : {1, 2, 5}) {
    ThreadPool threads(thread_count);
    const auto kernel =
        CreateGemmContraction(threads, blas, {.thread_count = thread_count});
    float d = 0;
    Launch(*kernel, problem, {.a = a.data(), .b = b.data(), .d = &d});
    results.push_back(d);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(GemmContractionTest, BlocksOfThinProductsCoverAllOfIt) {
  absl::StatusOr<std::shared_ptr<const Blas>> blas =
      Blas::Load(DetectCpuFeatures());
  ASSERT_TRUE(blas.ok()) << blas.status();
  ThreadPool threads(2);
  const auto kernel = CreateGemmContraction(
      threads, blas, {.thread_count = 2, .has_small_kernels = true});
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{5003, 24, 96}, {24, 5003, 96}, {97, 801, 331}}) {
    SCOPED_TRACE(m);
    for (const bool by_columns : {false, true}) {
      ContractionProblem problem;
      problem.m = {{m, {1, by_columns ? 1 : n, by_columns ? 1 : n}}};
      problem.n = {{n, {k, by_columns ? m : 1, by_columns ? m : 1}}};
      problem.k = {{k, {m, 1}}};
      const std::vector<float> a(m * k, 2.0f), b(k * n, 3.0f);
      std::vector<float> d(m * n, 1.0f);
      Launch(*kernel, problem,
             {.a = a.data(),
              .b = b.data(),
              .c = d.data(),
              .d = d.data(),
              .beta = kOne});
      const float expected = 6.0f * static_cast<float>(k) + 1.0f;
      ASSERT_EQ(std::count(d.begin(), d.end(), expected), m * n);
    }
  }
}

}  // namespace
}  // namespace tensord::core
