#include "tests/unit/core/notation/program/interpreter.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <set>
#include <utility>
#include <variant>

#include "gtest/gtest.h"

namespace tensord::core::test {
namespace {

using Index = std::vector<int64_t>;
using Place = ProgramTensor::Place;

/// Calls `visit` with every index below `extents`.
void ForEach(const Index& extents,
             const std::function<void(const Index&)>& visit) {
  for (const int64_t extent : extents) {
    if (extent == 0) return;
  }
  Index index(extents.size(), 0);
  while (true) {
    visit(index);
    size_t m = 0;
    while (m < index.size() && ++index[m] == extents[m]) index[m++] = 0;
    if (m == index.size()) return;
  }
}

Number Apply(UnaryOperator op, const Number& x) {
  switch (op) {
    case UnaryOperator::kIdentity: return x;
    case UnaryOperator::kConj: return std::conj(x);
    case UnaryOperator::kRcp: return Number(1) / x;
    case UnaryOperator::kExp: return std::exp(x);
    case UnaryOperator::kSin: return std::sin(x);
    case UnaryOperator::kSqrt: return std::sqrt(x);
    default: ADD_FAILURE() << NameOf(op); return x;
  }
}

Number Apply(BinaryOperator op, const Number& x, const Number& y) {
  switch (op) {
    case BinaryOperator::kAdd: return x + y;
    case BinaryOperator::kMul: return x * y;
    case BinaryOperator::kDiv: return x / y;
    case BinaryOperator::kPow: return std::pow(x, y);
    default: ADD_FAILURE() << NameOf(op); return x;
  }
}

/// One operand of a step, in one slice.
struct Access {
  const OperandDesc* desc;
  Number* first;

  Number* At(const std::map<Mode, int64_t>& index) const {
    Number* at = first;
    for (size_t m = 0; m < desc->modes.size(); ++m) {
      at += index.at(desc->modes[m]) * desc->layout.strides[m];
    }
    return at;
  }
  Number Read(const std::map<Mode, int64_t>& index) const {
    return Apply(desc->unary, *At(index));
  }
};

Number AsNumber(const Scalar& scalar) {
  return {scalar.real, scalar.imaginary};
}

/// Memory of a program's tensors.
class Memory {
 public:
  Memory(const Program& program, std::vector<Values>& operands,
         std::vector<Values>& outputs, std::vector<Number>& kept)
      : program_(program),
        operands_(operands),
        outputs_(outputs),
        kept_(kept),
        arena_(program.arena_bytes / sizeof(Number),
               Number(std::numeric_limits<double>::quiet_NaN(), 0)) {
    for (const ProgramTensor& tensor : program.tensors) {
      EXPECT_EQ(tensor.element_type, ElementType::kComplex128);
      if (tensor.place != Place::kConstant || tensor.arena_offset_bytes < 0) {
        continue;
      }
      std::memcpy(&arena_[tensor.arena_offset_bytes / sizeof(Number)],
                  tensor.value.data(), sizeof(Number));
    }
  }

  Access Of(const OperandDesc& desc, const StepOperand& operand,
            const Index& slice) {
    const ProgramTensor& tensor = program_.tensors[operand.tensor];
    Number* first = nullptr;
    switch (tensor.place) {
      case Place::kOperand: first = operands_[tensor.number].data.data(); break;
      case Place::kOutput: first = outputs_[tensor.number].data.data(); break;
      case Place::kTemporary:
      case Place::kConstant:
        first = arena_.data() + tensor.arena_offset_bytes / sizeof(Number);
        break;
      case Place::kKept:
        first = kept_.data() + tensor.kept_offset_bytes / sizeof(Number);
    }
    first += operand.offset;
    for (size_t i = 0; i < operand.slice_strides.size(); ++i) {
      first += slice[i] * operand.slice_strides[i];
    }
    return {&desc, first};
  }

 private:
  const Program& program_;
  std::vector<Values>& operands_;
  std::vector<Values>& outputs_;
  std::vector<Number>& kept_;
  std::vector<Number> arena_;
};

/// Every mode of the operands with its extent.
std::map<Mode, int64_t> ModesOf(const std::vector<Access>& operands) {
  std::map<Mode, int64_t> modes;
  for (const Access& operand : operands) {
    for (size_t m = 0; m < operand.desc->modes.size(); ++m) {
      modes[operand.desc->modes[m]] = operand.desc->layout.extents[m];
    }
  }
  return modes;
}

/// d = first + the sum of `term` over the modes that d lacks.
void SumInto(
    const Access& d, const std::vector<Access>& inputs,
    const std::function<Number(const std::map<Mode, int64_t>&)>& begin,
    const std::function<Number(const std::map<Mode, int64_t>&)>& term) {
  const std::map<Mode, int64_t> kept = ModesOf({d});
  std::vector<Mode> order;
  Index kept_extents, summed_extents;
  for (const auto& [mode, extent] : kept) {
    order.push_back(mode);
    kept_extents.push_back(extent);
  }
  for (const auto& [mode, extent] : ModesOf(inputs)) {
    if (kept.contains(mode)) continue;
    order.push_back(mode);
    summed_extents.push_back(extent);
  }
  ForEach(kept_extents, [&](const Index& outer) {
    std::map<Mode, int64_t> index;
    for (size_t i = 0; i < outer.size(); ++i) index[order[i]] = outer[i];
    Number sum = begin(index);
    ForEach(summed_extents, [&](const Index& inner) {
      for (size_t i = 0; i < inner.size(); ++i) {
        index[order[outer.size() + i]] = inner[i];
      }
      sum += term(index);
    });
    *d.At(index) = sum;
  });
}

void RunStep(const ProgramStep& step, Memory& memory, const Index& slice,
             bool is_first) {
  const bool adds = step.accumulates && !is_first;
  const Number alpha = AsNumber(step.alpha);
  const Number beta = adds ? Number(1) : AsNumber(step.beta);
  using At = std::map<Mode, int64_t>;
  const auto scaled = [](Number factor, const Access& operand, const At& at) {
    return factor == Number(0) ? Number(0) : factor * operand.Read(at);
  };
  if (const auto* p = std::get_if<PermutationDesc>(&step.desc)) {
    const Access a = memory.Of(p->a, step.a, slice);
    SumInto(
        memory.Of(p->d, step.d, slice), {}, [](const At&) { return Number(0); },
        [&](const At& at) { return scaled(alpha, a, at); });
  } else if (const auto* e = std::get_if<ElementwiseDesc>(&step.desc)) {
    const Number gamma = adds ? Number(1) : AsNumber(step.gamma);
    const Access a = memory.Of(e->a, step.a, slice);
    const Access c = memory.Of(e->c, step.c, slice);
    SumInto(
        memory.Of(e->d, step.d, slice), {}, [](const At&) { return Number(0); },
        [&](const At& at) {
          Number value = scaled(alpha, a, at);
          if (e->b) {
            const Number b = scaled(AsNumber(step.beta),
                                    memory.Of(*e->b, step.b, slice), at);
            value = Apply(e->op_ab, value, b);
          }
          return Apply(e->op_abc, value, scaled(gamma, c, at));
        });
  } else if (const auto* r = std::get_if<ReductionDesc>(&step.desc)) {
    const Access a = memory.Of(r->a, step.a, slice);
    const Access c = memory.Of(*r->c, step.c, slice);
    SumInto(
        memory.Of(r->d, step.d, slice), {a},
        [&](const At& at) { return scaled(beta, c, at); },
        [&](const At& at) { return scaled(alpha, a, at); });
  } else {
    const auto& k = std::get<ContractionDesc>(step.desc);
    const Access a = memory.Of(k.a, step.a, slice);
    const Access b = memory.Of(k.b, step.b, slice);
    const Access c = memory.Of(*k.c, step.c, slice);
    SumInto(
        memory.Of(k.d, step.d, slice), {a, b},
        [&](const At& at) { return scaled(beta, c, at); },
        [&](const At& at) { return scaled(alpha, a, at) * b.Read(at); });
  }
}

/// Labels that stand for values.
using Assigned = std::map<std::string, int64_t>;
using Extents = std::map<std::string, int64_t>;

void Collect(const Sum& sum, const ValuesByName& tensors, Extents& extents);

void Collect(const Term& term, const ValuesByName& tensors, Extents& extents) {
  for (const Factor& factor : term.factors) {
    for (const Sum& part : factor.parts()) {
      // Only what is open in it belongs to this term.
      Extents inner;
      Collect(part, tensors, inner);
      for (const std::string& label : part.labels) {
        extents[label] = inner.at(label);
      }
    }
    if (const auto* reference = std::get_if<TensorReference>(&factor.value)) {
      const auto found = tensors.find(reference->name);
      if (found == tensors.end()) continue;
      for (size_t m = 0; m < reference->labels.size(); ++m) {
        extents[reference->labels[m].text] =
            found->second.layout.extents[reference->is_diagonal ? 0 : m];
      }
    }
  }
}

void Collect(const Sum& sum, const ValuesByName& tensors, Extents& extents) {
  for (const Term& term : sum.terms) {
    Extents all;
    Collect(term, tensors, all);
    if (!term.has_labels) continue;
    for (const std::string& label : sum.labels) extents[label] = all.at(label);
  }
}

Number ValueOf(const Sum& sum, const Assigned& assigned,
               const std::map<std::string, Scalar>& scalars,
               const ValuesByName& tensors);

Number ValueOf(const Factor& factor, const Assigned& assigned,
               const std::map<std::string, Scalar>& scalars,
               const ValuesByName& tensors) {
  Number value;
  if (const auto* number = std::get_if<Scalar>(&factor.value)) {
    value = AsNumber(*number);
  } else if (factor.group() != nullptr) {
    value = ValueOf(*factor.group(), assigned, scalars, tensors);
  } else if (const Call* const call = factor.call()) {
    std::vector<Number> x;
    for (const Sum& argument : call->arguments) {
      x.push_back(ValueOf(argument, assigned, scalars, tensors));
    }
    value = std::visit(
        [&](auto op) {
          if constexpr (std::is_same_v<decltype(op), UnaryOperator>) {
            return Apply(op, x[0]);
          } else {
            return Apply(op, x[0], x[1]);
          }
        },
        call->function);
  } else {
    const auto& reference = std::get<TensorReference>(factor.value);
    const auto tensor = tensors.find(reference.name);
    if (tensor == tensors.end()) {
      value = AsNumber(scalars.at(reference.name));
    } else {
      Index index;
      for (const Label& label : reference.labels) {
        index.push_back(assigned.at(label.text));
      }
      if (!reference.is_diagonal) {
        value = tensor->second.At(index);
      } else if (index[0] == index[1]) {
        value = tensor->second.At({index[0]});
      }
    }
  }
  if (factor.is_conjugated) value = std::conj(value);
  return factor.is_divisor ? 1.0 / value : value;
}

Number ValueOf(const Sum& sum, const Assigned& assigned,
               const std::map<std::string, Scalar>& scalars,
               const ValuesByName& tensors) {
  Number total = 0;
  for (const Term& term : sum.terms) {
    Extents extents;
    Collect(term, tensors, extents);
    Assigned all;
    std::vector<std::string> summed;
    Index summed_extents;
    const std::set<std::string> open(sum.labels.begin(), sum.labels.end());
    for (const auto& [label, extent] : extents) {
      if (open.contains(label)) {
        all[label] = assigned.at(label);
      } else {
        summed.push_back(label);
        summed_extents.push_back(extent);
      }
    }
    ForEach(summed_extents, [&](const Index& index) {
      for (size_t i = 0; i < index.size(); ++i) all[summed[i]] = index[i];
      Number product = term.is_negated ? -1 : 1;
      for (const Factor& factor : term.factors) {
        product *= ValueOf(factor, all, scalars, tensors);
      }
      total += product;
    });
  }
  return total;
}

}  // namespace

Number& Values::At(const Index& index) {
  int64_t offset = 0;
  for (size_t m = 0; m < index.size(); ++m) {
    offset += index[m] * layout.strides[m];
  }
  return data.at(offset);
}

Number Values::At(const Index& index) const {
  return const_cast<Values*>(this)->At(index);
}

std::vector<Values> RunProgram(const Program& program,
                               std::vector<Values>& operands,
                               std::vector<Number>* kept) {
  std::vector<Number> unused;
  if (kept == nullptr) kept = &unused;
  const bool is_kept = !kept->empty();
  kept->resize(program.kept_bytes / sizeof(Number),
               std::numeric_limits<double>::quiet_NaN());
  std::vector<Values> outputs;
  for (const int32_t output : program.outputs) {
    const Layout& layout = program.tensors[output].layout;
    outputs.push_back({layout, std::vector<Number>(
                                   SpanElements(layout),
                                   std::numeric_limits<double>::quiet_NaN())});
  }
  Memory memory(program, operands, outputs, *kept);
  for (const ProgramBlock& block : program.blocks) {
    if (block.is_folded && is_kept) continue;
    const Index extents(block.slice_extents.begin(), block.slice_extents.end());
    // The last index fastest.
    ForEach({extents.rbegin(), extents.rend()}, [&](const Index& reversed) {
      const Index slice(reversed.rbegin(), reversed.rend());
      bool is_first = true;
      for (size_t i = block.kept_slice_count; i < slice.size(); ++i) {
        is_first &= slice[i] == 0;
      }
      for (const ProgramStep& step : block.steps) {
        RunStep(step, memory, slice, is_first);
      }
    });
  }
  return outputs;
}

void Evaluate(const ProgramSyntax& syntax,
              const std::map<std::string, Scalar>& scalars,
              ValuesByName& tensors) {
  for (const Statement& statement : syntax.statements) {
    EXPECT_FALSE(statement.call) << "functions of whole tensors are not interpreted";
    Extents extents;
    Collect(statement.value, tensors, extents);
    const std::string& name = statement.output.name;
    Index shape;
    for (size_t m = 0; m < statement.output.labels.size(); ++m) {
      const auto found = extents.find(statement.output.labels[m].text);
      // Without labels, as large as what there is.
      shape.push_back(found != extents.end()
                          ? found->second
                          : tensors.at(name).layout.extents[m]);
    }
    Values result;
    if (statement.assignment == Assignment::kCreate ||
        (!statement.output.has_brackets && !tensors.contains(name))) {
      result.layout =
          PackedLayout({shape.begin(), shape.end()}, Order::kFirstModeFastest);
      result.data.resize(SpanElements(result.layout));
    } else {
      result = tensors.at(name);
    }
    ForEach(shape, [&](const Index& index) {
      Assigned assigned;
      for (size_t m = 0; m < index.size(); ++m) {
        assigned[statement.output.labels[m].text] = index[m];
      }
      const Number value = ValueOf(statement.value, assigned, scalars, tensors);
      Number& at = result.At(index);
      switch (statement.assignment) {
        case Assignment::kStore:
        case Assignment::kCreate: at = value; break;
        case Assignment::kAdd: at += value; break;
        case Assignment::kSubtract: at -= value; break;
      }
    });
    tensors[name] = std::move(result);
  }
}

Values Evaluate(const EinsumSyntax& einsum,
                const std::vector<Values>& operands) {
  Extents extents;
  for (size_t i = 0; i < operands.size(); ++i) {
    for (size_t m = 0; m < einsum.inputs[i].size(); ++m) {
      int64_t& extent =
          extents.try_emplace(einsum.inputs[i][m].text, 1).first->second;
      const int64_t mine = operands[i].layout.extents[m];
      if (mine != 1) extent = mine;
    }
  }
  std::vector<std::string> labels;
  Index all;
  Index shape;
  for (const Label& label : einsum.output) {
    labels.push_back(label.text);
    shape.push_back(extents.at(label.text));
  }
  for (const auto& [label, extent] : extents) {
    if (std::find(labels.begin(), labels.end(), label) == labels.end()) {
      labels.push_back(label);
      all.push_back(extent);
    }
  }
  Values result;
  result.layout =
      PackedLayout({shape.begin(), shape.end()}, Order::kFirstModeFastest);
  result.data.resize(SpanElements(result.layout));
  ForEach(shape, [&](const Index& outer) {
    Number sum = 0;
    ForEach(all, [&](const Index& inner) {
      Assigned at;
      for (size_t i = 0; i < outer.size(); ++i) at[labels[i]] = outer[i];
      for (size_t i = 0; i < inner.size(); ++i) {
        at[labels[outer.size() + i]] = inner[i];
      }
      Number product = 1;
      for (size_t i = 0; i < operands.size(); ++i) {
        Index index;
        for (size_t m = 0; m < einsum.inputs[i].size(); ++m) {
          index.push_back(operands[i].layout.extents[m] == 1
                              ? 0
                              : at.at(einsum.inputs[i][m].text));
        }
        product *= operands[i].At(index);
      }
      sum += product;
    });
    result.At(outer) = sum;
  });
  return result;
}

}  // namespace tensord::core::test
