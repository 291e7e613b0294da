#include "tests/gpu/bench/contraction_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/status.h"
#include "tests/gpu/bench/bench_kernels.h"
#include "tests/gpu/bench/projection.h"

namespace tensord::test {
namespace {

using core::ElementType;
using core::OperandDesc;

constexpr double kAllowed = 8;
// Products of reals whose errors need not cancel.
constexpr double kFewProducts = 8;
// Other numbers than those of the operands.
constexpr uint64_t kSeed = 1977;
// Fewer terms are not worth another thread.
constexpr uint32_t kTermsOfThread = 16;
constexpr uint32_t kMostThreads = 256;

/// The modes of `operand` that `other` has, or has not.
core::Modes ModesIn(const OperandDesc& operand, const OperandDesc& other,
                    bool wanted) {
  core::Modes modes;
  for (const core::Mode mode : operand.modes) {
    if ((core::PositionOf(mode, other.modes) >= 0) == wanted) {
      modes.push_back(mode);
    }
  }
  return modes;
}

LoopNest NestOf(const OperandDesc& operand, const core::Modes& modes) {
  LoopNest nest;
  for (const core::Mode mode : modes) {
    const auto at = static_cast<size_t>(core::PositionOf(mode, operand.modes));
    const auto extent = static_cast<uint32_t>(operand.layout.extents[at]);
    nest.extents[nest.mode_count] = extent;
    nest.strides[nest.mode_count] = operand.layout.strides[at];
    nest.count *= extent;
    ++nest.mode_count;
  }
  return nest;
}

/// A vector on the device.
absl::StatusOr<core::Buffer> AllocateVector(BenchDevice& device,
                                            int64_t count) {
  return device.Allocate(count * int64_t{sizeof(ComplexDouble)});
}

ComplexDouble* NumbersOf(const core::Buffer& vector) {
  return reinterpret_cast<ComplexDouble*>(vector.data());
}

/// `tensor` times `vector`, summed over `summed`.
absl::StatusOr<core::Buffer> Times(BenchDevice& device,
                                   const OperandDesc& operand,
                                   const void* tensor, const core::Modes& kept,
                                   const core::Modes& summed,
                                   const core::Buffer& vector) {
  ProjectionTask task{.tensor = tensor,
                      .type = operand.element_type,
                      .kept = NestOf(operand, kept),
                      .summed = NestOf(operand, summed),
                      .vector = NumbersOf(vector)};
  while (task.team < kMostThreads &&
         task.team * kTermsOfThread < task.summed.count) {
    task.team *= 2;
  }
  TENSORD_ASSIGN_OR_RETURN(core::Buffer result,
                           AllocateVector(device, task.kept.count));
  task.to = NumbersOf(result);
  TENSORD_RETURN_IF_ERROR(
      CheckCuda(Project(task, device.cuda_stream()), "projecting"));
  return result;
}

absl::StatusOr<std::vector<ComplexDouble>> ToHost(BenchDevice& device,
                                                  const core::Buffer& vector,
                                                  int64_t count) {
  std::vector<ComplexDouble> numbers(static_cast<size_t>(count));
  TENSORD_RETURN_IF_ERROR(device.stream().CopyToHost(
      numbers.data(), vector.data(), count * int64_t{sizeof(ComplexDouble)}));
  TENSORD_RETURN_IF_ERROR(device.stream().Synchronize());
  return numbers;
}

double UnitRoundoff(ElementType type) {
  return core::RealPartOf(type) == ElementType::kFloat64 ? 0x1p-53 : 0x1p-24;
}

/// How far an element of d may be off, over the square root of its row's
/// length, in units of roundoff.
double AllowedRoundoffs(const core::ContractionDesc& desc, uint32_t terms) {
  // Of numbers from [-1, 1] the mean square is 1/3; complex ones have two.
  const double parts = core::IsComplex(desc.d.element_type) ? 2 : 1;
  const double k = terms;
  const double products = k * parts;
  double allowed = kAllowed * products / 3;
  if (products <= kFewProducts) {
    allowed = std::max(allowed, products * (products + 1) / 2);
  }
  if (desc.compute_type == core::ComputeType::kThreeTf32) {
    constexpr double kTogether = 8;     // terms that are added at once
    constexpr double kCut = 0.72;       // the mean of what is cut off
    constexpr double kMagnitude = 0.8;  // of a normal number, in the mean
    constexpr double kDeviations = 6;
    allowed += kDeviations * kCut * kMagnitude * (parts / 3) * (2.0 / 3) * k *
               std::sqrt(k) / kTogether;
  }
  return allowed;
}

}  // namespace

absl::StatusOr<CheckedSums> CheckContraction(
    BenchDevice& device, const core::ContractionDesc& desc,
    const core::ContractionOperands& operands) {
  // The vector goes with the shorter side of d, in `inner`: more sums, and
  // shorter ones.
  const int64_t m = NestOf(desc.d, ModesIn(desc.d, desc.a, true)).count;
  const int64_t n = NestOf(desc.d, ModesIn(desc.d, desc.b, true)).count;
  const bool is_tall = m >= n;
  const OperandDesc& outer = is_tall ? desc.a : desc.b;
  const OperandDesc& inner = is_tall ? desc.b : desc.a;
  const void* const outer_data = is_tall ? operands.a : operands.b;
  const void* const inner_data = is_tall ? operands.b : operands.a;
  const core::Modes rows = ModesIn(outer, desc.d, true);
  const core::Modes columns = ModesIn(inner, desc.d, true);
  const core::Modes terms = ModesIn(outer, inner, true);
  const int64_t row_count = std::max(m, n);
  const int64_t column_count = std::min(m, n);

  TENSORD_ASSIGN_OR_RETURN(const core::Buffer x,
                           AllocateVector(device, column_count));
  TENSORD_RETURN_IF_ERROR(
      CheckCuda(FillNumbers(reinterpret_cast<double*>(x.data()),
                            2 * column_count, kSeed, device.cuda_stream()),
                "filling"));
  TENSORD_ASSIGN_OR_RETURN(const core::Buffer inner_x,
                           Times(device, inner, inner_data, terms, columns, x));
  TENSORD_ASSIGN_OR_RETURN(
      const core::Buffer expected,
      Times(device, outer, outer_data, rows, terms, inner_x));
  TENSORD_ASSIGN_OR_RETURN(const core::Buffer actual,
                           Times(device, desc.d, operands.d, rows, columns, x));
  TENSORD_ASSIGN_OR_RETURN(const auto wanted,
                           ToHost(device, expected, row_count));
  TENSORD_ASSIGN_OR_RETURN(const auto found, ToHost(device, actual, row_count));

  TENSORD_ASSIGN_OR_RETURN(const auto numbers, ToHost(device, x, column_count));
  double squares = 0;
  for (const ComplexDouble& number : numbers) {
    squares += number.real * number.real + number.imaginary * number.imaginary;
  }
  const double allowed = AllowedRoundoffs(desc, NestOf(outer, terms).count) *
                         UnitRoundoff(desc.d.element_type) * std::sqrt(squares);
  CheckedSums sums{.count = row_count};
  for (size_t i = 0; i < wanted.size(); ++i) {
    double error = std::hypot(found[i].real - wanted[i].real,
                              found[i].imaginary - wanted[i].imaginary) /
                   allowed;
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    if (error > 1) ++sums.wrong;
    sums.worst_error = std::max(sums.worst_error, error);
  }
  return sums;
}

}  // namespace tensord::test
