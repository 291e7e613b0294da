#include "core/backend/cpu/direct/direct_execution.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "core/backend/cpu/contraction_reference.h"
#include "core/backend/cpu/direct/direct_way.h"
#include "core/base/status.h"
#include "core/device/host_stream.h"
#include "core/memory/host_resource.h"
#include "gtest/gtest.h"
#include "hwy/targets.h"
#include "tests/testing/case_share.h"

namespace tensord::core {
namespace {

constexpr int kThreads = 2;
constexpr GemmRates kRates{.thread_count = kThreads};

/// An operand with the modes `labels`, which lie in memory in random order,
/// packed or with gaps.
OperandDesc RandomOperand(const std::vector<Mode>& labels,
                          const std::vector<int64_t>& extents, ElementType type,
                          std::mt19937& rng) {
  std::vector<size_t> order(labels.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), rng);
  OperandDesc operand{.element_type = type};
  ModeVector sizes, strides(labels.size());
  for (const Mode label : labels) {
    operand.modes.push_back(label);
    sizes.push_back(extents[static_cast<size_t>(label)]);
  }
  const bool has_gaps = rng() % 4 == 0;
  int64_t stride = has_gaps ? 1 + static_cast<int64_t>(rng() % 2) : 1;
  for (const size_t m : order) {
    strides[m] = stride;
    stride *= sizes[m] + (has_gaps ? 1 : 0);
  }
  operand.layout = {.extents = sizes, .strides = strides};
  return operand;
}

/// Up to eight modes whose extents are mostly short.
ContractionDesc RandomContraction(ElementType type, std::mt19937& rng) {
  std::vector<int64_t> extents;
  std::vector<Mode> a, b, d;
  const int count = static_cast<int>(rng() % 9);
  int64_t product = 1;
  for (Mode mode = 0; mode < count; ++mode) {
    const int64_t longest = rng() % 4 == 0 ? 70 : 9;
    int64_t extent = 1 + static_cast<int64_t>(rng()) % longest;
    if (product * extent > 200'000) extent = 1;
    product *= extent;
    extents.push_back(extent);
    const auto role = rng() % 10;
    if (role < 3 || role >= 6) a.push_back(mode);
    if (role >= 3) b.push_back(mode);
    if (role < 7) d.push_back(mode);  // 6: a batch
  }
  return {.a = RandomOperand(a, extents, type, rng),
          .b = RandomOperand(b, extents, type, rng),
          .c = RandomOperand(d, extents, type, rng),
          .d = RandomOperand(d, extents, type, rng),
          .compute_type = DefaultComputeType(type)};
}

/// Small integers: their sums are exact in any order.
template <typename T>
std::vector<T> RandomElements(const OperandDesc& operand, std::mt19937& rng) {
  int64_t span = 1;
  for (size_t m = 0; m < operand.modes.size(); ++m) {
    span += (operand.layout.extents[m] - 1) * operand.layout.strides[m];
  }
  std::vector<T> elements(static_cast<size_t>(span));
  for (T& element : elements) {
    element = static_cast<T>(static_cast<int>(rng() % 9) - 4);
  }
  return elements;
}

template <size_t count>
void Shrink(BlockModes<count>& group, std::mt19937& rng) {
  for (int64_t& part : group.parts) {
    part = 1 + static_cast<int64_t>(rng()) % part;
  }
}

/// Whether all elements have the same bits, or are zeros.
template <typename T>
bool AreSame(const std::vector<T>& x, const std::vector<T>& y) {
  return std::equal(
      x.begin(), x.end(), y.begin(), y.end(), [](const T& one, const T& other) {
        return one == other || std::memcmp(&one, &other, sizeof(T)) == 0;
      });
}

/// Every third problem has beta 0, c and d before are NaN then; of the others,
/// every second one has d as c.
template <typename T>
void ExpectAllWaysAgree(ElementType type, uint32_t seed) {
  std::mt19937 rng(seed);
  const bool is_added = seed % 3 != 0, is_in_place = is_added && seed % 2 == 0;
  ContractionDesc desc = RandomContraction(type, rng);
  if (is_in_place) desc.c = desc.d;
  ASSERT_TRUE(Validate(desc).ok()) << Validate(desc);
  const ContractionProblem problem = Canonicalize(desc);
  const std::vector<T> a = RandomElements<T>(desc.a, rng);
  const std::vector<T> b = RandomElements<T>(desc.b, rng);
  std::vector<T> c = RandomElements<T>(*desc.c, rng);
  std::vector<T> before = RandomElements<T>(desc.d, rng);
  if (!is_added) {
    constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
    std::fill(c.begin(), c.end(), kNan);
    std::fill(before.begin(), before.end(), kNan);
  }
  std::vector<T> expected = before;
  ContractionOperands operands{.a = a.data(),
                               .b = b.data(),
                               .c = is_in_place ? expected.data() : c.data(),
                               .d = expected.data(),
                               .alpha = {3, 0},
                               .beta = {is_added ? -2.0 : 0.0, 0}};
  HostResource memory;
  HostStream stream;
  Workspace none({});
  ASSERT_TRUE(CreateReferenceContraction()
                  ->Solve(problem)
                  .value()
                  ->Launch(operands, none, stream)
                  .ok());

  ThreadPool threads(kThreads);
  auto ways = DirectWays(problem, kRates);
  if (TileShapes(type).empty()) {  // vectors are of no known length
    EXPECT_EQ(ways.status().code(), absl::StatusCode::kUnimplemented);
    return;
  }
  ASSERT_TRUE(ways.ok()) << ways.status();
  for (DirectWay& way : *ways) {
    SCOPED_TRACE(testing::Message()
                 << "tile " << way.tile.rows << "x" << way.tile.columns
                 << (way.swaps ? ", swapped" : ""));
    if (rng() % 2 == 0) {  // so that there are many blocks, and edges
      Shrink(way.rows, rng);
      Shrink(way.columns, rng);
      Shrink(way.terms, rng);
      way.row_blocks_per_task = 1 + static_cast<int64_t>(rng() % 3);
      way.streams = rng() % 2 == 0;
    }
    const int64_t bytes = DirectWorkspaceBytes(way, kThreads);
    const Buffer buffer = Buffer::Allocate(memory, bytes).value();
    // NaN: what is not written there must not be used.
    std::fill_n(reinterpret_cast<uint8_t*>(buffer.data()), bytes, 0xff);
    Workspace workspace({buffer.data(), static_cast<size_t>(bytes)});
    std::vector<T> actual = before;
    operands.d = actual.data();
    if (is_in_place) operands.c = actual.data();
    ExecuteDirectWay(way, operands, threads, workspace);
    EXPECT_EQ(workspace.left_bytes(), 0);
    ASSERT_TRUE(AreSame(actual, expected));
  }
}

/// Makes the vector code that has a choice run as for `target`, one of
/// hwy::SupportedAndGeneratedTargets(); for 0 as it would without this.
void UseTarget(int64_t target) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().DeInit();
}

/// The seeds of 150 problems, or a part of them, for every length of vectors
/// that this CPU has.
void ForEachTarget(void (*check)(uint32_t seed)) {
  uint32_t seed = 0;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    UseTarget(target);
    const uint32_t end = seed + tensord::test::CaseShare(150);
    for (; seed < end; ++seed) {
      SCOPED_TRACE(seed);
      check(seed);
      if (testing::Test::HasFatalFailure()) break;
    }
    UseTarget(0);
    if (testing::Test::HasFatalFailure()) break;
  }
}

TEST(DirectExecutionTest, AllWaysGiveTheSameFloat32) {
  ForEachTarget([](uint32_t seed) {
    ExpectAllWaysAgree<float>(ElementType::kFloat32, seed);
  });
}

TEST(DirectExecutionTest, AllWaysGiveTheSameFloat64) {
  ForEachTarget([](uint32_t seed) {
    ExpectAllWaysAgree<double>(ElementType::kFloat64, seed);
  });
}

}  // namespace
}  // namespace tensord::core
