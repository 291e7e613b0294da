#include "server/execution/program/given_operands.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "server/execution/inline_contents.h"

namespace tensord::server {
namespace {

/// What messages call operand number `i`.
std::string Called(const ProgramOperandRequest& operand, size_t i) {
  return operand.name.empty() ? absl::StrCat("operand ", i)
                              : absl::StrCat("operand '", operand.name, "'");
}

absl::Status CheckResident(const ProgramOperandRequest& operand, size_t i) {
  if (std::holds_alternative<std::string>(operand.source)) {
    return absl::OkStatus();
  }
  return core::InvalidArgument(
      "CONSTANT_NOT_RESIDENT", Called(operand, i), " is constant, but ",
      std::holds_alternative<core::Scalar>(operand.source)
          ? "a scalar, which is kept anyway"
          : "sent with the request",
      "; wanted a resident tensor");
}

/// A view that repeats is written nowhere and read by way of a copy.
core::TensorDesc AsUsed(const StoredTensor& tensor) {
  return tensor.is_in_place() ? tensor.desc() : tensor.view()->gathered_desc();
}

}  // namespace

absl::StatusOr<FoundOperands> FindOperands(
    const Session& session, absl::Span<const ProgramOperandRequest> operands,
    bool has_data) {
  FoundOperands found;
  for (size_t i = 0; i < operands.size(); ++i) {
    const ProgramOperandRequest& operand = operands[i];
    core::NamedOperand described;
    described.name =
        operand.name.empty() ? absl::StrCat("operand ", i) : operand.name;
    described.is_constant = operand.is_constant;
    std::shared_ptr<StoredTensor> tensor;
    core::TensorDesc desc;
    if (const auto* scalar = std::get_if<core::Scalar>(&operand.source)) {
      described.scalar = *scalar;
    } else if (const auto* sent = std::get_if<InlineTensor>(&operand.source)) {
      TENSORD_ASSIGN_OR_RETURN(desc, DescOf(*sent, described.name, has_data));
    } else {
      if (const auto* name = std::get_if<std::string>(&operand.source)) {
        TENSORD_ASSIGN_OR_RETURN(
            tensor, session.Find(*name, operand.view, Called(operand, i)));
      } else {
        tensor = std::get<std::shared_ptr<StoredTensor>>(operand.source);
      }
      desc = AsUsed(*tensor);
    }
    described.element_type = desc.element_type;
    described.layout = desc.layout;
    described.alignment_bytes = core::AlignmentOf(desc);
    found.tensors.push_back(std::move(tensor));
    found.descs.push_back(std::move(desc));
    found.described.push_back(std::move(described));
  }
  return found;
}

absl::Status CheckNoConstants(
    absl::Span<const ProgramOperandRequest> operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].is_constant) continue;
    return core::InvalidArgument(
        "CONSTANT_NOT_PREPARED", Called(operands[i], i),
        " is constant, which only CreateProgram and ExplainProgram take; "
        "executions read it as it is");
  }
  return absl::OkStatus();
}

absl::Status CheckConstants(absl::Span<const ProgramOperandRequest> operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].is_constant) continue;
    TENSORD_RETURN_IF_ERROR(CheckResident(operands[i], i));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ProgramOperandRequest>> InOrder(
    std::vector<ProgramOperandRequest> given, const PreparedProgram& program) {
  const std::vector<core::NamedOperand>& wanted = program.operands();
  std::vector<ProgramOperandRequest> result(wanted.size());
  std::vector<bool> is_given(wanted.size(), false);
  for (size_t i = 0; i < given.size(); ++i) {
    size_t at = i;
    if (!given[i].name.empty()) {
      at = static_cast<size_t>(
          std::ranges::find(wanted, given[i].name, &core::NamedOperand::name) -
          wanted.begin());
    }
    if (at >= wanted.size()) {
      return core::InvalidArgument(
          "NAME_UNKNOWN", "the program has no operand ",
          given[i].name.empty() ? absl::StrCat(i)
                                : absl::StrCat("'", given[i].name, "'"));
    }
    if (is_given[at]) {
      return core::InvalidArgument("OPERAND_REPEATED", "operand '",
                                   wanted[at].name, "' is given twice");
    }
    is_given[at] = true;
    result[at] = std::move(given[i]);
    result[at].name = wanted[at].name;
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (is_given[i]) {
      if (wanted[i].is_constant) {
        TENSORD_RETURN_IF_ERROR(CheckResident(result[i], i));
      }
      continue;
    }
    if (auto constant = program.constant(i); constant != nullptr) {
      result[i] = {wanted[i].name, std::move(constant)};
      continue;
    }
    if (!wanted[i].scalar) {
      return core::InvalidArgument("INPUT_MISSING", "operand '", wanted[i].name,
                                   "' is left out");
    }
    result[i] = {wanted[i].name, *wanted[i].scalar};
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    result[i].is_constant = wanted[i].is_constant;
  }
  return result;
}

absl::Status CheckAreLike(const std::vector<core::NamedOperand>& given,
                          const std::vector<core::NamedOperand>& wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto differs = [&](absl::string_view what, const std::string& got,
                             const std::string& expected) {
      return core::InvalidArgument("PROGRAM_OPERAND_DIFFERS", "operand '",
                                   wanted[i].name, "' has ", what, " ", got,
                                   ", the program was made for ", expected);
    };
    const auto kind = [](const core::NamedOperand& operand) {
      return operand.scalar ? std::string("scalar")
                            : std::string(NameOf(operand.element_type));
    };
    if (kind(given[i]) != kind(wanted[i])) {
      return differs("the type", kind(given[i]), kind(wanted[i]));
    }
    if (wanted[i].scalar) continue;
    const core::Layout& got = given[i].layout;
    const core::Layout& expected = wanted[i].layout;
    if (got.extents != expected.extents) {
      return differs("extents", core::ToString(got.extents),
                     core::ToString(expected.extents));
    }
    if (!core::AreAlike(got, expected)) {
      return differs("strides", core::ToString(got.strides),
                     core::ToString(expected.strides));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOutputs(absl::Span<const ProgramOutputRequest> outputs,
                          const core::Program& program) {
  std::vector<std::string> made;
  for (const int32_t output : program.outputs) {
    made.push_back(program.tensors[output].name);
  }
  for (const ProgramOutputRequest& output : outputs) {
    const auto at = std::ranges::find(made, output.name);
    if (at == made.end() && !(output.name.empty() && outputs.size() == 1)) {
      return core::InvalidArgument(
          "OUTPUT_UNKNOWN", "the program makes no output '", output.name,
          "', but ", made.empty() ? "none" : absl::StrJoin(made, ", "));
    }
    if (at == made.end()) continue;
    const core::ProgramTensor& tensor =
        program.tensors[program.outputs[at - made.begin()]];
    if (output.order &&
        !core::AreAlike(
            core::PackedLayout(tensor.layout.extents, *output.order),
            tensor.layout)) {
      return core::InvalidArgument(
          "OUTPUT_DIFFERS", "output '", output.name,
          "' is asked for in another order of its modes than the one that the "
          "program makes it in");
    }
    if (output.element_type.value_or(tensor.element_type) !=
        tensor.element_type) {
      return core::InvalidArgument(
          "OUTPUT_DIFFERS", "output '", output.name, "' is asked for in ",
          NameOf(*output.element_type), ", the program makes it in ",
          NameOf(tensor.element_type));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMakesLike(const core::Program& made,
                            const core::Program& wanted) {
  for (size_t i = 0; i < wanted.outputs.size(); ++i) {
    const core::ProgramTensor& got = made.tensors[made.outputs[i]];
    const core::ProgramTensor& expected = wanted.tensors[wanted.outputs[i]];
    if (got.element_type == expected.element_type) continue;
    return core::InvalidArgument(
        "PROGRAM_OPERAND_DIFFERS", "with these scalars output '", got.name,
        "' is of ", NameOf(got.element_type), ", the program was made for ",
        NameOf(expected.element_type),
        "; prepare it with a scalar of that kind");
  }
  return absl::OkStatus();
}

}  // namespace tensord::server
