// Rows, one a kernel and case
//   case, type, bytes read and written; read_ns, how long reading them takes
//   with nothing else to do, measured just before; then those of
//   PrintKernelRows().
#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/half.h"
#include "core/base/status.h"
#include "tests/gpu/bench/bench_kernels.h"
#include "tests/gpu/bench/kernel_rows.h"
#include "tests/gpu/bench/numbers.h"
#include "tests/gpu/bench/parts.h"

namespace tensord::test {
namespace {

using core::BinaryOperator;
using core::ElementType;

/// Reduces a(i, j, k), i the fastest, over the modes that `kept` lacks.
struct ReductionCase {
  std::string name;
  core::Modes kept;
  BinaryOperator op = BinaryOperator::kAdd;
  core::ModeVector extents = {512, 1024, 512};
};

std::vector<ReductionCase> Cases() {
  return {{.name = "sum of all", .kept = {}},
          {.name = "sum over the fastest", .kept = {'j', 'k'}},
          {.name = "sum over the middle", .kept = {'i', 'k'}},
          {.name = "sum over the slowest", .kept = {'i', 'j'}},
          {.name = "sum over fastest and slowest", .kept = {'j'}},
          {.name = "sum over the middle, few left",
           .kept = {'i', 'k'},
           .extents = {16, 1 << 22, 4}},
          {.name = "sum over a short fastest",
           .kept = {'j', 'k'},
           .extents = {6, 4096, 10923}},
          {.name = "max over the fastest",
           .kept = {'j', 'k'},
           .op = BinaryOperator::kMax},
          {.name = "max over the slowest",
           .kept = {'i', 'j'},
           .op = BinaryOperator::kMax}};
}

core::OperandDesc Operand(ElementType type, const core::Modes& modes,
                          const core::ModeVector& extents) {
  core::OperandDesc operand{.element_type = type, .layout = {}, .modes = modes};
  core::ModeVector own;
  for (const core::Mode mode : modes) own.push_back(extents[mode - 'i']);
  operand.layout = core::PackedLayout(own, core::Order::kFirstModeFastest);
  return operand;
}

/// Puts the sum of `count` elements of a, which are exact in sixteenths, into
/// `expected`.
template <typename Stored>
absl::Status SumOnHost(BenchDevice& device, const core::Buffer& a,
                       int64_t count, const core::Buffer& expected) {
  std::vector<Stored> elements(static_cast<size_t>(count));
  TENSORD_RETURN_IF_ERROR(device.stream().CopyToHost(
      elements.data(), a.data(), count * int64_t{sizeof(Stored)}));
  TENSORD_RETURN_IF_ERROR(device.stream().Synchronize());
  double sum = 0;
  for (const Stored& element : elements) {
    if constexpr (std::is_same_v<Stored, core::Half>) {
      sum += element.ToFloat();
    } else {
      sum += element;
    }
  }
  Stored stored;
  if constexpr (std::is_same_v<Stored, core::Half>) {
    stored = core::Half::From(static_cast<float>(sum));
  } else {
    stored = static_cast<Stored>(sum);
  }
  TENSORD_RETURN_IF_ERROR(device.stream().CopyToDevice(
      expected.data(), &stored, int64_t{sizeof(stored)}));
  return device.stream().Synchronize();
}

absl::Status SumOnHost(BenchDevice& device, ElementType type,
                       const core::Buffer& a, int64_t count,
                       const core::Buffer& expected) {
  switch (type) {
    case ElementType::kFloat64:
      return SumOnHost<double>(device, a, count, expected);
    case ElementType::kFloat16:
      return SumOnHost<core::Half>(device, a, count, expected);
    case ElementType::kFloat32:
      return SumOnHost<float>(device, a, count, expected);
    default:
      return core::Internal("NO_SUCH_TYPE", "there is no sum of ",
                            core::NameOf(type), " on the host");
  }
}

}  // namespace

absl::Status RunReduction(BenchDevice& device) {
  constexpr int64_t kMostElements = 280 << 20;
  const int64_t most_elements = device.effort().tiny ? 1 << 14 : kMostElements;
  TENSORD_ASSIGN_OR_RETURN(const core::Buffer a,
                           device.Allocate(most_elements * 8));
  TENSORD_ASSIGN_OR_RETURN(const core::Buffer d,
                           device.Allocate(most_elements * 8 / 4));
  TENSORD_ASSIGN_OR_RETURN(const core::Buffer expected,
                           device.Allocate(d.bytes()));
  TENSORD_ASSIGN_OR_RETURN(const core::Buffer sink, device.Allocate(16));
  CaseCounter counter("reduction", device.effort());
  for (const ElementType type :
       {ElementType::kFloat32, ElementType::kFloat64, ElementType::kFloat16}) {
    TENSORD_RETURN_IF_ERROR(
        CheckCuda(FillElements(a.data(), a.bytes(), SixteenthsOf(type),
                               device.cuda_stream()),
                  "filling"));
    for (ReductionCase each : Cases()) {
      if (!counter.Next()) continue;
      if (device.effort().tiny) {
        for (int64_t& extent : each.extents) {
          extent = std::min<int64_t>(extent, 24);
        }
      }
      core::ReductionDesc desc{
          .a = Operand(type, {'i', 'j', 'k'}, each.extents),
          .c = std::nullopt,
          .d = Operand(type, each.kept, each.extents),
          .op = each.op};
      if (type == ElementType::kFloat64) {
        desc.compute_type = core::ComputeType::kFloat64;
      }
      TENSORD_RETURN_IF_ERROR(Validate(desc));
      const int64_t bytes_a =
          core::ElementCount(desc.a.layout) * core::SizeOf(type);
      const int64_t bytes_d =
          core::ElementCount(desc.d.layout) * core::SizeOf(type);
      TENSORD_ASSIGN_OR_RETURN(const Timing read, device.Time(bytes_a, [&] {
        return CheckCuda(ReadAll(a.data(), bytes_a / 16 * 16, sink.data(),
                                 device.cuda_stream()),
                         "reading");
      }));
      // The reference kernel has one thread for each result.
      const bool is_one_result = each.kept.empty();
      if (is_one_result) {
        TENSORD_RETURN_IF_ERROR(SumOnHost(
            device, type, a, core::ElementCount(desc.a.layout), expected));
      }
      const double bytes = static_cast<double>(bytes_a + bytes_d);
      const BenchProblem problem{
          .row = {{"part", "reduction"},
                  {"case", each.name},
                  {"type", core::NameOf(type)},
                  {"bytes", bytes_a + bytes_d},
                  {"read_ns",
                   read.median_ns * bytes / static_cast<double>(bytes_a)}},
          .problem = core::Canonicalize(desc),
          .operands = core::ReductionOperands{.a = a.data(), .d = d.data()},
          .bytes = bytes_a + bytes_d,
          .d = &d,
          .expected = &expected,
          .d_bytes = bytes_d,
          .is_expected = is_one_result};
      TENSORD_RETURN_IF_ERROR(PrintKernelRows(device, problem));
    }
  }
  return absl::OkStatus();
}

}  // namespace tensord::test
