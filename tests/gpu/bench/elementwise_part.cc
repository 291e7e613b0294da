// Rows, one a kernel and case
//   case, type, bytes read and written; copy_ns of half as many bytes, which
//   moves as many, measured just before; then those of PrintKernelRows().
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "tests/gpu/bench/bench_kernels.h"
#include "tests/gpu/bench/kernel_rows.h"
#include "tests/gpu/bench/numbers.h"
#include "tests/gpu/bench/parts.h"

namespace tensord::test {
namespace {

using core::ElementType;
using core::UnaryOperator;

/// d(i, j) = unary(a) + [b +] c
struct ElementwiseCase {
  std::string name;
  ElementType type = ElementType::kFloat32;
  core::Modes modes_a = {'i', 'j'};  // i is the fastest of d
  int64_t extent_i = 0;              // 0: as that of j
  bool has_b = false;
  UnaryOperator unary = UnaryOperator::kIdentity;
};

std::vector<ElementwiseCase> Cases() {
  std::vector<ElementwiseCase> cases;
  for (const ElementType type :
       {ElementType::kFloat32, ElementType::kFloat64, ElementType::kFloat16}) {
    cases.push_back({.name = "a+c", .type = type});
    cases.push_back({.name = "a+b+c", .type = type, .has_b = true});
    cases.push_back(
        {.name = "transposed a+c", .type = type, .modes_a = {'j', 'i'}});
    cases.push_back({.name = "transposed a+c, short fastest",
                     .type = type,
                     .modes_a = {'j', 'i'},
                     .extent_i = 6});
    cases.push_back({.name = "broadcast a+c", .type = type, .modes_a = {'i'}});
    cases.push_back(
        {.name = "relu(a)+c", .type = type, .unary = UnaryOperator::kRelu});
    cases.push_back(
        {.name = "tanh(a)+c", .type = type, .unary = UnaryOperator::kTanh});
  }
  return cases;
}

/// The operand of `modes`, of which d has i and j: `side` squared elements.
core::OperandDesc Operand(const ElementwiseCase& each, const core::Modes& modes,
                          int64_t side) {
  const int64_t extent_i = each.extent_i == 0 ? side : each.extent_i;
  core::ModeVector extents;
  for (const core::Mode mode : modes) {
    extents.push_back(mode == 'i' ? extent_i : side * side / extent_i);
  }
  return {.element_type = each.type,
          .layout = core::PackedLayout(extents, core::Order::kFirstModeFastest),
          .modes = modes};
}

}  // namespace

absl::Status RunElementwise(BenchDevice& device) {
  const int64_t side = device.effort().tiny ? 72 : 12288;
  const int64_t elements = side * side;
  const int64_t most_bytes = elements * 8;
  core::Buffer a, b, c, d, expected;
  for (core::Buffer* buffer : {&a, &b, &c, &d, &expected}) {
    TENSORD_ASSIGN_OR_RETURN(*buffer, device.Allocate(most_bytes));
  }
  CaseCounter counter("elementwise", device.effort());
  for (const ElementwiseCase& each : Cases()) {
    if (!counter.Next()) continue;
    const core::Modes modes = {'i', 'j'};
    core::ElementwiseDesc desc{.a = Operand(each, each.modes_a, side),
                               .b = std::nullopt,
                               .c = Operand(each, modes, side),
                               .d = Operand(each, modes, side)};
    desc.a.unary = each.unary;
    if (each.has_b) desc.b = desc.c;
    if (each.type == ElementType::kFloat64) {
      desc.compute_type = core::ComputeType::kFloat64;
    }
    TENSORD_RETURN_IF_ERROR(Validate(desc));
    const int64_t each_bytes = elements * core::SizeOf(each.type);
    // Other elements at each place: which operand is which must show.
    ElementPalette palette = SixteenthsOf(each.type);
    for (const core::Buffer* buffer : {&a, &b, &c}) {
      std::rotate(palette.bits.begin(), palette.bits.begin() + 5,
                  palette.bits.end());
      TENSORD_RETURN_IF_ERROR(
          CheckCuda(FillElements(buffer->data(), each_bytes, palette,
                                 device.cuda_stream()),
                    "filling"));
    }
    const int64_t bytes_a =
        core::ElementCount(desc.a.layout) * core::SizeOf(each.type);
    const int64_t bytes = bytes_a + (each.has_b ? 3 : 2) * each_bytes;
    TENSORD_ASSIGN_OR_RETURN(const Timing copy,
                             device.TimeCopy(a, d, each_bytes));
    const BenchProblem problem{
        .row = {{"part", "elementwise"},
                {"case", each.name},
                {"type", core::NameOf(each.type)},
                {"bytes", bytes},
                // As long as a copy would take that moves as much.
                {"copy_ns", copy.median_ns * static_cast<double>(bytes) /
                                (2.0 * static_cast<double>(each_bytes))}},
        .problem = core::Canonicalize(desc),
        .operands =
            core::ElementwiseOperands{.a = a.data(),
                                      .b = each.has_b ? b.data() : nullptr,
                                      .c = c.data(),
                                      .d = d.data()},
        .bytes = bytes,
        .d = &d,
        .expected = &expected,
        .d_bytes = each_bytes};
    TENSORD_RETURN_IF_ERROR(PrintKernelRows(device, problem));
  }
  return absl::OkStatus();
}

}  // namespace tensord::test
