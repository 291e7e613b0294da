#include "server/rpc/explain_program.h"

#include <algorithm>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/notation/functions.h"
#include "server/execution/operation_table.h"

namespace tensord::rpc {
namespace {

/// The name of an operation's kind, and its operands' modes.
struct Shown {
  absl::string_view operation;
  const core::OperandDesc* a = nullptr;
  const core::OperandDesc* b = nullptr;
  const core::OperandDesc* c = nullptr;
  const core::OperandDesc* d = nullptr;
};

template <typename T>
const T* AddressOf(const std::optional<T>& value) {
  return value ? &*value : nullptr;
}

Shown Show(const core::AnyDesc& any) {
  using server::OperationKind;
  if (const auto* p = std::get_if<core::PermutationDesc>(&any)) {
    return {server::NameOf(OperationKind::kPermute), &p->a, nullptr, nullptr,
            &p->d};
  }
  if (const auto* e = std::get_if<core::ElementwiseDesc>(&any)) {
    return {server::NameOf(OperationKind::kElementwise), &e->a, AddressOf(e->b),
            &e->c, &e->d};
  }
  if (const auto* r = std::get_if<core::ReductionDesc>(&any)) {
    return {server::NameOf(OperationKind::kReduce), &r->a, nullptr,
            AddressOf(r->c), &r->d};
  }
  if (const auto* f = std::get_if<core::FactorizationDesc>(&any)) {
    return {server::NameOf(OperationKind::kFactorize), &f->a, nullptr, nullptr,
            f->results()[0]};
  }
  if (const auto* s = std::get_if<core::LinearSolveDesc>(&any)) {
    return {server::NameOf(OperationKind::kSolve), &s->a, AddressOf(s->b),
            nullptr, &s->d};
  }
  const auto& c = std::get<core::ContractionDesc>(any);
  return {server::NameOf(OperationKind::kContract), &c.a, &c.b, AddressOf(c.c),
          &c.d};
}

std::string TextOf(const core::Scalar& scalar) {
  if (scalar.imaginary == 0) return absl::StrFormat("%g", scalar.real);
  return absl::StrFormat("(%g%+gim)", scalar.real, scalar.imaginary);
}

/// `exp(A[i,j])`, with its factor.
std::string TextOf(const core::Program& program,
                   const core::StepOperand& operand,
                   const core::OperandDesc& desc, const core::Scalar& factor) {
  const core::ProgramTensor& tensor = program.tensors[operand.tensor];
  if (tensor.place == core::ProgramTensor::Place::kConstant) {
    const std::string number = TextOf(tensor.scalar);
    return factor.IsOne() ? number : absl::StrCat(TextOf(factor), "*", number);
  }
  std::string text = absl::StrCat(
      tensor.name, "[",
      absl::StrJoin(desc.modes, ",",
                    [&](std::string* to, core::Mode mode) {
                      absl::StrAppend(to, program.index_names[mode]);
                    }),
      "]");
  if (desc.unary == core::UnaryOperator::kRcp) {
    text = absl::StrCat("1/", text);
  } else if (desc.unary != core::UnaryOperator::kIdentity) {
    text = absl::StrCat(core::NotationOf(desc.unary), "(", text, ")");
  }
  return factor.IsOne() ? text : absl::StrCat(TextOf(factor), "*", text);
}

/// `A[I[i],j]`, with its factor.
std::string TakenText(const core::Program& program,
                      const core::ProgramStep& step,
                      const core::ElementwiseDesc& desc) {
  const int taken = desc.taken();
  std::vector<std::string> labels;
  for (const core::Mode mode : desc.a.modes) {
    labels.push_back(program.index_names[mode]);
  }
  labels[taken] = TextOf(program, step.b, *desc.b, core::kOne);
  const std::string a = absl::StrCat(program.tensors[step.a.tensor].name, "[",
                                     absl::StrJoin(labels, ","), "]");
  return step.alpha.IsOne() ? a : absl::StrCat(TextOf(step.alpha), "*", a);
}

/// `max(x,y)` or `x < y`.
std::string TextOf(core::BinaryOperator op, absl::string_view x,
                   absl::string_view y) {
  const absl::string_view notation = core::NotationOf(op);
  return core::IsInfix(op) ? absl::StrCat(x, " ", notation, " ", y)
                           : absl::StrCat(notation, "(", x, ",", y, ")");
}

/// What an SVD is cut off by, and what becomes of its values: "; rank=64".
std::string OptionsOf(const core::FactorizationDesc& desc,
                      const core::Truncation& truncation) {
  using Absorb = core::Truncation::Absorb;
  std::vector<std::string> options;
  const auto modes =
      core::GroupModes(desc.method, desc.a, desc.left.modes,
                       desc.right ? &desc.right->modes : nullptr,
                       desc.values ? &desc.values->modes : nullptr);
  if (modes.ok()) {
    const int64_t extent =
        desc.left.layout
            .extents[core::PositionOf(modes->inner, desc.left.modes)];
    if (extent < modes->inner_extent) {
      options.push_back(absl::StrCat("rank=", extent));
    }
  }
  const auto add = [&](absl::string_view name, double limit) {
    if (limit > 0) options.push_back(absl::StrFormat("%s=%g", name, limit));
  };
  add("cutoff", truncation.cutoff);
  add("relative_cutoff", truncation.relative_cutoff);
  add("discarded_squares", truncation.discarded_squares);
  add("relative_discarded_squares", truncation.relative_discarded_squares);
  if (truncation.absorb == Absorb::kLeft) options.push_back("absorb=left");
  if (truncation.absorb == Absorb::kRight) options.push_back("absorb=right");
  if (truncation.absorb == Absorb::kBoth) options.push_back("absorb=both");
  if (truncation.renormalizes) options.push_back("renormalize=true");
  if (const auto& sampling = desc.sampling) {
    options.push_back("randomized=true");
    const core::Sampling usual;
    const auto add_number = [&](absl::string_view name, int64_t number,
                                int64_t otherwise) {
      if (number == otherwise) return;
      options.push_back(absl::StrCat(name, "=", number));
    };
    add_number("oversampling", sampling->oversampling, usual.oversampling);
    add_number("power_iterations", sampling->power_iterations,
               usual.power_iterations);
    add_number("seed", truncation.seed, 0);
  }
  return options.empty() ? ""
                         : absl::StrCat("; ", absl::StrJoin(options, ", "));
}

/// `result` with its modes in the order that `tensor` has them, as a statement
/// writes it: where matrices are numbered they are in another.
core::OperandDesc AsWritten(const core::OperandDesc& result,
                            const core::ProgramTensor& tensor) {
  const core::Layout& layout = tensor.layout;
  core::OperandDesc written = result;
  written.modes.clear();
  for (int m = 0; m < layout.mode_count(); ++m) {
    const auto mode = std::ranges::find_if(result.modes, [&](core::Mode each) {
      const int at = core::PositionOf(each, result.modes);
      return !core::Has(written.modes, each) &&
             result.layout.extents[at] == layout.extents[m] &&
             (layout.extents[m] == 1 ||
              result.layout.strides[at] == layout.strides[m]);
    });
    if (mode != result.modes.end()) written.modes.push_back(*mode);
  }
  return written;
}

/// `U[i,k], S[k], V[k,j] = svd(A[i,j]; cutoff=1e-10)`.
std::string TextOf(const core::Program& program, const core::ProgramStep& step,
                   const core::FactorizationDesc& desc) {
  std::vector<std::string> results;
  const auto operands = step.outputs();
  const std::vector<const core::OperandDesc*> descs = desc.results();
  for (size_t i = 0; i < descs.size(); ++i) {
    const core::ProgramTensor& tensor = program.tensors[operands[i]->tensor];
    results.push_back(TextOf(program, *operands[i],
                             AsWritten(*descs[i], tensor), core::kOne));
  }
  return absl::StrCat(absl::StrJoin(results, ", "), " = ",
                      core::NameOf(desc.method), "(",
                      TextOf(program, step.a, desc.a, core::kOne),
                      OptionsOf(desc, step.truncation), ")");
}

absl::string_view NotationOf(const core::LinearSolveDesc& desc) {
  if (desc.b) return "solve";
  return desc.function == core::MatrixFunction::kInverse ? "inv" : "expm";
}

/// `X[j,r] = solve(A[i,j],B[i,r])`, `X[j,r] = inv(A[i,j])`.
std::string TextOf(const core::Program& program, const core::ProgramStep& step,
                   const core::LinearSolveDesc& desc) {
  std::string options;
  if (desc.structure != core::MatrixStructure::kGeneral) {
    options =
        absl::StrCat("; structure=", core::NameOf(desc.structure),
                     desc.has_unit_diagonal ? ", unit_diagonal=true" : "");
  }
  const std::string b =
      desc.b ? absl::StrCat(",", TextOf(program, step.b, *desc.b, core::kOne))
             : "";
  const core::OperandDesc d = AsWritten(desc.d, program.tensors[step.d.tensor]);
  return absl::StrCat(
      TextOf(program, step.d, d, core::kOne), " = ", NotationOf(desc), "(",
      TextOf(program, step.a, desc.a, core::kOne), b, options, ")");
}

core::AlongFunction FunctionOf(const core::ReductionDesc& desc) {
  if (desc.sorts()) return core::AlongFunction::kArgsort;
  switch (desc.op) {
    case core::BinaryOperator::kMul:
      return core::AlongFunction::kCumulativeProduct;
    case core::BinaryOperator::kMax: return core::AlongFunction::kCumulativeMax;
    case core::BinaryOperator::kMin: return core::AlongFunction::kCumulativeMin;
    default: return core::AlongFunction::kCumulativeSum;
  }
}

/// `D[i,j] = cumsum(A[i,j]; along=j)`.
std::string TextAlong(const core::Program& program,
                      const core::ProgramStep& step,
                      const core::ReductionDesc& desc) {
  return absl::StrCat(TextOf(program, step.d, desc.d, core::kOne), " = ",
                      core::NotationOf(FunctionOf(desc)), "(",
                      TextOf(program, step.a, desc.a, core::kOne),
                      "; along=", program.index_names[desc.along->mode],
                      desc.along->sorting == core::Sorting::kDescending
                          ? ", descending=true"
                          : "",
                      ")");
}

/// `D[i,j] = 2*A[i,k]*B[k,j] + D[i,j]`.
std::string TextOf(const core::Program& program, const core::ProgramStep& step,
                   const Shown& shown) {
  if (const auto* f = std::get_if<core::FactorizationDesc>(&step.desc)) {
    return TextOf(program, step, *f);
  }
  if (const auto* s = std::get_if<core::LinearSolveDesc>(&step.desc)) {
    return TextOf(program, step, *s);
  }
  const auto* const reduction = std::get_if<core::ReductionDesc>(&step.desc);
  if (reduction != nullptr && reduction->along) {
    return TextAlong(program, step, *reduction);
  }
  const auto* const elementwise =
      std::get_if<core::ElementwiseDesc>(&step.desc);
  const core::Scalar& gamma = elementwise != nullptr ? step.gamma : step.beta;
  const std::string d = TextOf(program, step.d, *shown.d, core::kOne);
  const std::string a = TextOf(program, step.a, *shown.a, step.alpha);
  std::string b, c;
  if (shown.b != nullptr) {
    b = TextOf(program, step.b, *shown.b,
               elementwise != nullptr ? step.beta : core::kOne);
  }
  if (shown.c != nullptr && (!gamma.IsZero() || step.accumulates)) {
    c = TextOf(program, step.c, *shown.c, gamma.IsZero() ? core::kOne : gamma);
  }
  const core::BinaryOperator op =
      elementwise != nullptr ? elementwise->op_abc : core::BinaryOperator::kAdd;
  if (op != core::BinaryOperator::kAdd && core::IsInfix(op) && !gamma.IsOne()) {
    c = absl::StrCat("(", c, ")");
  }
  if (op == core::BinaryOperator::kWhere) {
    return absl::StrCat(d, " = ", core::NotationOf(op), "(", b, ",", a, ",", c,
                        ")");
  }
  if (op == core::BinaryOperator::kTake) {
    return absl::StrCat(d, " = ", TakenText(program, step, *elementwise));
  }
  const bool is_product = elementwise == nullptr ||
                          elementwise->op_ab == core::BinaryOperator::kMul;
  const std::string ab =
      b.empty() ? a : absl::StrCat(a, is_product ? "*" : " + ", b);
  return absl::StrCat(d, " = ", c.empty() ? ab : TextOf(op, ab, c));
}

/// Multiplications and additions of a pairwise product over all slices.
/// `indices` are those of both factors, but for what one alone has: that was
/// summed before.
double FlopsOf(const core::ProgramProduct& product,
               absl::Span<const int32_t> indices,
               const core::Network::Indices& result) {
  const core::Network& network = product.network;
  double flops = 1;
  bool sums = false;
  for (const int32_t index : indices) {
    flops *= static_cast<double>(network.extents[index]);
    sums |= std::ranges::find(result, index) == result.end();
  }
  // Slices one by one.
  for (const int32_t index : product.sliced) {
    if (std::ranges::find(indices, index) == indices.end()) {
      flops *= static_cast<double>(network.extents[index]);
    }
  }
  return flops * (sums ? 2 : 1);
}

void AddIndices(const core::ProgramProduct& product,
                const core::Network::Indices& indices, v1::TreeNode& node) {
  for (const int32_t index : indices) {
    node.add_labels(product.index_names[index]);
    node.add_extents(product.network.extents[index]);
  }
}

/// Appends the pairwise products, in their order.
void AddSteps(const core::ProgramProduct& product,
              v1::ProgramProduct& message) {
  const core::Network& network = product.network;
  std::vector<int> uses(network.extents.size(), 0);
  for (const core::Network::Indices& input : network.inputs) {
    for (const int32_t index : input) ++uses[index];
  }
  for (const int32_t index : network.output) ++uses[index];
  const auto results = core::ResultsOf(network, product.tree);
  const auto inputs = static_cast<int32_t>(network.inputs.size());
  for (size_t s = 0; s < product.tree.steps.size(); ++s) {
    const auto [x, y] = product.tree.steps[s];
    v1::TreeNode& node = *message.add_nodes();
    const bool is_last = s + 1 == product.tree.steps.size();
    AddIndices(product, is_last ? network.output : results[s], node);
    node.add_children(x);
    node.add_children(y);
    std::vector<int32_t> all;
    for (const int32_t child : {x, y}) {
      const auto& indices =
          child < inputs ? network.inputs[child] : results[child - inputs];
      for (const int32_t index : indices) {
        if (uses[index] > 1 && std::ranges::find(all, index) == all.end()) {
          all.push_back(index);
        }
      }
    }
    node.set_flops(FlopsOf(product, all, results[s]));
  }
}

v1::ProgramProduct ProductToProto(const core::ProgramProduct& product) {
  v1::ProgramProduct message;
  message.set_statement(product.statement);
  double slices = 1;
  for (const int32_t index : product.sliced) {
    message.add_sliced(product.index_names[index]);
    slices *= static_cast<double>(product.network.extents[index]);
  }
  message.set_slice_count(static_cast<int64_t>(slices));
  for (size_t i = 0; i < product.network.inputs.size(); ++i) {
    v1::TreeNode& node = *message.add_nodes();
    node.set_name(product.factors[i]);
    AddIndices(product, product.network.inputs[i], node);
  }
  AddSteps(product, message);
  message.set_method(product.method);
  message.set_flops(product.cost.flops);
  message.set_largest(product.cost.largest);
  message.set_symbolic_cost(product.symbolic_cost);
  return message;
}

/// The tree below `node`, a line each; below some depth no further to the
/// right.
void AppendTree(const v1::ProgramProduct& product, int node,
                const std::string& lead, bool is_last, std::string& text) {
  constexpr size_t kWidestLead = 200;  // bytes
  const v1::TreeNode& shown = product.nodes(node);
  absl::StrAppend(&text, lead, is_last ? "└─ " : "├─ ");
  if (shown.children().empty()) {
    absl::StrAppend(&text, shown.name(), "\n");
  } else {
    absl::StrAppend(&text, "[", absl::StrJoin(shown.labels(), ","), "]  ",
                    absl::StrFormat("%.3g", shown.flops()), " flops\n");
  }
  const std::string below = lead.size() < kWidestLead
                                ? absl::StrCat(lead, is_last ? "   " : "│  ")
                                : lead;
  for (int i = 0; i < shown.children_size(); ++i) {
    AppendTree(product, shown.children(i), below,
               i + 1 == shown.children_size(), text);
  }
}

std::string TextOf(const v1::ProgramExplanation& explanation) {
  std::string text = absl::StrFormat(
      "%d operation%s, %.4g flops, %d bytes of intermediate results, %d bytes "
      "of scratch memory, %.4g ms predicted\n",
      explanation.operations_size(),
      explanation.operations_size() == 1 ? "" : "s", explanation.flops(),
      explanation.peak_bytes(), explanation.workspace_bytes(),
      explanation.predicted_nanoseconds() * 1e-6);
  if (explanation.kept_bytes() > 0) {
    absl::StrAppend(&text, explanation.kept_bytes(),
                    " bytes are kept, which depend on constants alone\n");
  }
  for (const v1::ProgramOperation& operation : explanation.operations()) {
    absl::StrAppend(&text, "  ", operation.text());
    if (operation.slice_count() > 1) {
      absl::StrAppend(&text, "  x ", operation.slice_count(), " slices");
    }
    absl::StrAppend(
        &text, "  # ",
        operation.kernel().empty() ? "nothing to compute" : operation.kernel(),
        operation.is_folded() ? ", once" : "", "\n");
  }
  for (const v1::ProgramProduct& product : explanation.products()) {
    absl::StrAppendFormat(&text,
                          "product of statement %d, by %s: %.4g flops, largest "
                          "result %.4g elements",
                          product.statement(), product.method(),
                          product.flops(), product.largest());
    if (!product.symbolic_cost().empty()) {
      absl::StrAppend(&text, ", ", product.symbolic_cost(), " multiplications");
    }
    if (product.slice_count() > 1) {
      absl::StrAppend(&text, ", ", product.slice_count(), " slices by ",
                      absl::StrJoin(product.sliced(), ","));
    }
    absl::StrAppend(&text, "\n");
    AppendTree(product, product.nodes_size() - 1, "", true, text);
  }
  return text;
}

}  // namespace

v1::ProgramExplanation Explain(
    const server::PreparedProgram& prepared,
    const std::vector<std::shared_ptr<const core::Plan>>& plans) {
  const core::Program& program = prepared.program();
  v1::ProgramExplanation explanation;
  double nanoseconds = 0;
  int64_t workspace_bytes = 0;
  for (size_t b = 0; b < program.blocks.size(); ++b) {
    const core::ProgramBlock& block = program.blocks[b];
    const int64_t slices = block.slice_count();
    for (size_t s = 0; s < block.steps.size(); ++s) {
      const core::ProgramStep& step = block.steps[s];
      const core::Plan& plan = *plans[prepared.key_of(b, s)];
      const Shown shown = Show(step.desc);
      v1::ProgramOperation& operation = *explanation.add_operations();
      operation.set_statement(step.statement);
      operation.set_operation(std::string(shown.operation));
      operation.set_text(TextOf(program, step, shown));
      operation.set_kernel(std::string(plan.kernel_name()));
      operation.set_slice_count(slices);
      operation.set_flops(step.flops);
      operation.set_predicted_nanoseconds(plan.predicted_nanoseconds());
      operation.set_workspace_bytes(plan.workspace_bytes());
      operation.set_is_folded(block.is_folded);
      nanoseconds += plan.predicted_nanoseconds() * static_cast<double>(slices);
      workspace_bytes = std::max(workspace_bytes, plan.workspace_bytes());
    }
  }
  for (const core::ProgramProduct& product : program.products) {
    if (!product.is_computed) continue;
    *explanation.add_products() = ProductToProto(product);
  }
  explanation.set_flops(program.flops);
  explanation.set_peak_bytes(program.arena_bytes);
  explanation.set_kept_bytes(program.kept_bytes);
  explanation.set_workspace_bytes(workspace_bytes);
  explanation.set_predicted_nanoseconds(nanoseconds);
  explanation.set_text(TextOf(explanation));
  return explanation;
}

bool IsTooLarge(const v1::ProgramExplanation& explanation) {
  constexpr size_t kMostBytes = size_t{3} << 20;
  return explanation.ByteSizeLong() > kMostBytes;
}

void Shorten(v1::ProgramExplanation& explanation) {
  if (!IsTooLarge(explanation)) return;
  explanation.set_text(absl::StrFormat(
      "%d operations, %.4g flops, %d bytes of intermediate results; too many "
      "to show\n",
      explanation.operations_size(), explanation.flops(),
      explanation.peak_bytes()));
  explanation.clear_operations();
  explanation.clear_products();
}

}  // namespace tensord::rpc
