// That the check of the benchmark's contractions finds what is wrong with a
// result, and only that.
#include "tests/gpu/bench/contraction_check.h"

#include <bit>
#include <complex>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/gpu/bench/contraction_cases.h"
#include "tests/gpu/bench/node.h"

namespace tensord::test {
namespace {

using core::ElementType;
using Numbers = std::vector<std::complex<double>>;
using Indices = std::map<core::Mode, int64_t>;

constexpr int64_t kExtentA = 5, kExtentB = 6, kExtentC = 7, kExtentK = 40;

/// d(a, c, b) = sum over k of x(k, a, c) * y(b, k), or with x and y exchanged.
ContractionCase CaseOf(bool is_tall) {
  const LabelExtents extents = {
      {'a', kExtentA}, {'b', kExtentB}, {'c', kExtentC}, {'k', kExtentK}};
  return {.suite = "none",
          .group = "none",
          .d = "acb",
          .a = is_tall ? "kac" : "bk",
          .b = is_tall ? "bk" : "kac",
          .of_float32 = extents,
          .of_eight_bytes = extents};
}

size_t OffsetOf(const core::OperandDesc& operand, const Indices& indices) {
  int64_t offset = 0;
  for (size_t i = 0; i < operand.modes.size(); ++i) {
    offset += operand.layout.strides[i] * indices.at(operand.modes[i]);
  }
  return static_cast<size_t>(offset);
}

Numbers Contract(const core::ContractionDesc& desc, const Numbers& a,
                 const Numbers& b) {
  Numbers d(static_cast<size_t>(core::ElementCount(desc.d.layout)));
  Indices at;
  for (at['a'] = 0; at['a'] < kExtentA; ++at['a']) {
    for (at['b'] = 0; at['b'] < kExtentB; ++at['b']) {
      for (at['c'] = 0; at['c'] < kExtentC; ++at['c']) {
        for (at['k'] = 0; at['k'] < kExtentK; ++at['k']) {
          d[OffsetOf(desc.d, at)] +=
              a[OffsetOf(desc.a, at)] * b[OffsetOf(desc.b, at)];
        }
      }
    }
  }
  return d;
}

/// As elements of `type` lie in memory.
template <typename Stored>
std::vector<std::byte> BytesOf(const Numbers& numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(Stored));
  for (size_t i = 0; i < numbers.size(); ++i) {
    Stored stored{};
    if constexpr (core::kIsComplex<Stored>) {
      stored = Stored(numbers[i]);
    } else {
      stored = static_cast<Stored>(numbers[i].real());
    }
    std::memcpy(bytes.data() + i * sizeof(Stored), &stored, sizeof(Stored));
  }
  return bytes;
}

std::vector<std::byte> BytesOf(ElementType type, const Numbers& numbers) {
  switch (type) {
    case ElementType::kFloat32: return BytesOf<float>(numbers);
    case ElementType::kFloat64: return BytesOf<double>(numbers);
    default: return BytesOf<std::complex<float>>(numbers);
  }
}

/// What TF32 keeps of a number.
double ElevenBits(double x) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(x)) &
                              ~0x1fffu);
}

class ContractionCheckTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { PrepareNode(); }

  ContractionCheckTest() {
    Effort effort;
    effort.tiny = true;
    device_ = BenchDevice::Create(effort).value();
  }

  /// Random operands; the numbers are those of the type.
  void Draw(ElementType type, bool is_tall) {
    type_ = type;
    desc_ = CaseOf(is_tall).Desc(type);
    std::mt19937 rng(7);
    std::uniform_real_distribution<float> part(-1, 1);
    for (auto [operand, numbers] :
         {std::pair(&desc_.a, &a_), std::pair(&desc_.b, &b_)}) {
      numbers->resize(static_cast<size_t>(core::ElementCount(operand->layout)));
      for (auto& number : *numbers) {
        const double real = part(rng);
        number = {real, core::IsComplex(type) ? part(rng) : 0};
      }
    }
  }

  core::Buffer Upload(const Numbers& numbers) {
    const std::vector<std::byte> bytes = BytesOf(type_, numbers);
    core::Buffer buffer =
        device_->Allocate(static_cast<int64_t>(bytes.size())).value();
    EXPECT_TRUE(device_->stream()
                    .CopyToDevice(buffer.data(), bytes.data(),
                                  static_cast<int64_t>(bytes.size()))
                    .ok());
    EXPECT_TRUE(device_->stream().Synchronize().ok());
    return buffer;
  }

  CheckedSums Check(const Numbers& d) {
    const core::Buffer a = Upload(a_), b = Upload(b_), result = Upload(d);
    return CheckContraction(*device_, desc_,
                            {.a = a.data(), .b = b.data(), .d = result.data()})
        .value();
  }

  Numbers Right() const { return Contract(desc_, a_, b_); }

  std::unique_ptr<BenchDevice> device_;
  ElementType type_ = ElementType::kFloat32;
  core::ContractionDesc desc_;
  Numbers a_, b_;
};

TEST_F(ContractionCheckTest, AcceptsWhatIsRoundedOnce) {
  for (const auto type : {ElementType::kFloat32, ElementType::kFloat64,
                          ElementType::kComplex64}) {
    for (const bool is_tall : {false, true}) {
      SCOPED_TRACE(testing::Message()
                   << core::NameOf(type) << " tall: " << is_tall);
      Draw(type, is_tall);
      const CheckedSums sums = Check(Right());
      EXPECT_EQ(sums.count, kExtentA * kExtentC);
      EXPECT_EQ(sums.wrong, 0);
      EXPECT_LT(sums.worst_error, 0.5);
    }
  }
}

TEST_F(ContractionCheckTest, FindsOneWrongElementInItsRow) {
  for (const auto type : {ElementType::kFloat32, ElementType::kFloat64,
                          ElementType::kComplex64}) {
    SCOPED_TRACE(core::NameOf(type));
    Draw(type, true);
    Numbers d = Right();
    d[17] += 1e-3;
    const CheckedSums sums = Check(d);
    EXPECT_EQ(sums.wrong, 1);
    EXPECT_GT(sums.worst_error, 1);
  }
}

TEST_F(ContractionCheckTest, FindsAnElementThatNobodyWrote) {
  Draw(ElementType::kFloat32, true);
  Numbers d = Right();
  d.back() = std::numeric_limits<double>::quiet_NaN();
  const CheckedSums sums = Check(d);
  EXPECT_EQ(sums.wrong, 1);
  EXPECT_EQ(sums.worst_error, std::numeric_limits<double>::infinity());
}

TEST_F(ContractionCheckTest, FindsElementsInEachOthersPlaces) {
  Draw(ElementType::kFloat32, true);
  Numbers d = Right();
  constexpr size_t kRows = kExtentA * kExtentC;
  std::swap(d[3], d[3 + kRows]);  // of one row
  EXPECT_EQ(Check(d).wrong, 1);
}

TEST_F(ContractionCheckTest, FindsAMissingTerm) {
  Draw(ElementType::kFloat32, true);
  Numbers a = a_;
  for (size_t i = 0; i < a.size(); i += kExtentK) a[i] = 0;  // k = 0
  EXPECT_EQ(Check(Contract(desc_, a, b_)).wrong, kExtentA * kExtentC);
}

TEST_F(ContractionCheckTest, FindsOperandsThatWereRoundedToTf32) {
  Draw(ElementType::kFloat32, true);
  Numbers a = a_, b = b_;
  for (Numbers* numbers : {&a, &b}) {
    for (auto& number : *numbers) number = ElevenBits(number.real());
  }
  EXPECT_GT(Check(Contract(desc_, a, b)).wrong, 0);
  desc_.compute_type = core::ComputeType::kThreeTf32;
  EXPECT_GT(Check(Contract(desc_, a, b)).wrong, 0);
}

}  // namespace
}  // namespace tensord::test
