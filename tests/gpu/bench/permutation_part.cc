// Rows, one a kernel and case
//   suite, id, rank, type, elements, extents, perm; copy_ns of as many bytes,
//   measured just before; then those of PrintKernelRows().
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "tests/gpu/bench/bench_kernels.h"
#include "tests/gpu/bench/kernel_rows.h"
#include "tests/gpu/bench/parts.h"
#include "tests/gpu/bench/permutation_cases.h"

namespace tensord::test {
namespace {

using core::ElementType;

constexpr ElementType kTypes[] = {ElementType::kFloat32, ElementType::kFloat64,
                                  ElementType::kFloat16};

}  // namespace

absl::Status RunPermutation(BenchDevice& device,
                            const std::string& data_folder) {
  TENSORD_ASSIGN_OR_RETURN(auto cases, ReadPermutationCases(data_folder));
  if (device.effort().tiny) cases = TinySample(cases);
  int64_t most_elements = 0;
  for (const PermutationCase& c : cases) {
    most_elements = std::max(most_elements, c.element_count());
  }
  const int64_t bytes = most_elements * core::SizeOf(ElementType::kFloat64);
  TENSORD_ASSIGN_OR_RETURN(const core::Buffer a, device.Allocate(bytes));
  TENSORD_ASSIGN_OR_RETURN(const core::Buffer d, device.Allocate(bytes));
  TENSORD_ASSIGN_OR_RETURN(const core::Buffer expected, device.Allocate(bytes));
  TENSORD_RETURN_IF_ERROR(CheckCuda(
      FillBits(a.data(), a.bytes(), device.cuda_stream()), "filling"));

  CaseCounter counter("permutation", device.effort());
  for (const PermutationCase& c : cases) {
    for (const ElementType type : kTypes) {
      const absl::string_view name = core::NameOf(type);
      if (!device.effort().IsAsked(c.suite, c.id, name)) continue;
      if (!counter.Next()) continue;
      const core::PermutationDesc desc = c.Desc(type);
      TENSORD_RETURN_IF_ERROR(Validate(desc));
      const int64_t case_bytes = c.element_count() * core::SizeOf(type);
      TENSORD_ASSIGN_OR_RETURN(const Timing copy,
                               device.TimeCopy(a, d, case_bytes));
      const BenchProblem problem{
          .row = {{"part", "permutation"},
                  {"suite", c.suite},
                  {"id", c.id},
                  {"rank", static_cast<int64_t>(c.extents.size())},
                  {"type", name},
                  {"elements", c.element_count()},
                  {"bytes", 2 * case_bytes},
                  {"extents", absl::StrJoin(c.extents, " ")},
                  {"perm", absl::StrJoin(c.perm, " ")},
                  {"copy_ns", copy.median_ns}},
          .problem = core::Canonicalize(desc),
          .operands = core::PermutationOperands{.a = a.data(), .d = d.data()},
          .bytes = 2 * case_bytes,
          .d = &d,
          .expected = &expected,
          .d_bytes = case_bytes};
      TENSORD_RETURN_IF_ERROR(PrintKernelRows(device, problem));
    }
  }
  return absl::OkStatus();
}

}  // namespace tensord::test
