#include "tests/unit/core/backend/cuda/gemm/random_product.h"

#include <algorithm>
#include <functional>
#include <map>

namespace tensord::test {
namespace {

using core::ElementType;
using core::Mode;
using core::OperandDesc;

/// The modes of one contraction, those of each group together.
struct Labels {
  std::vector<Mode> batch, m, n, k;
  std::map<Mode, int64_t> extents;
};

int64_t SpanOf(const core::Layout& layout) {
  int64_t last = 0;
  for (size_t i = 0; i < layout.extents.size(); ++i) {
    last += (layout.extents[i] - 1) * layout.strides[i];
  }
  return last + 1;
}

int64_t OffsetOf(const OperandDesc& operand,
                 const std::map<Mode, int64_t>& index) {
  int64_t offset = 0;
  for (size_t i = 0; i < operand.modes.size(); ++i) {
    offset += index.at(operand.modes[i]) * operand.layout.strides[i];
  }
  return offset;
}

/// Calls `body(index)` for every index of `modes`, the others as in `index`.
void ForEach(const std::vector<Mode>& modes, const Labels& labels,
             std::map<Mode, int64_t>& index, const std::function<void()>& body,
             size_t from = 0) {
  if (from == modes.size()) return body();
  for (int64_t i = 0; i < labels.extents.at(modes[from]); ++i) {
    index[modes[from]] = i;
    ForEach(modes, labels, index, body, from + 1);
  }
}

Complex Conjugated(const OperandDesc& operand, const Complex& x) {
  return operand.unary == core::UnaryOperator::kConj ? std::conj(x) : x;
}

}  // namespace

RandomProduct RandomProduct::Make(uint32_t seed, int most_modes) {
  std::mt19937 random(seed);
  const auto below = [&](int count) {
    return static_cast<int>(random() % static_cast<uint32_t>(count));
  };
  Labels labels;
  Mode next = 'a';
  for (auto* group : {&labels.batch, &labels.m, &labels.n, &labels.k}) {
    const int count = below(most_modes + 1);
    for (int i = 0; i < count; ++i) {
      labels.extents[next] = 1 + below(4);
      group->push_back(next++);
    }
  }
  const auto operand = [&](std::initializer_list<const std::vector<Mode>*> of) {
    OperandDesc desc;
    desc.element_type = ElementType::kComplex128;
    for (const auto* group : of) {
      desc.modes.insert(desc.modes.end(), group->begin(), group->end());
    }
    if (below(3) > 0) {  // otherwise whole groups stay together
      std::shuffle(desc.modes.begin(), desc.modes.end(), random);
    }
    int64_t stride = 1;
    for (const Mode mode : desc.modes) {
      desc.layout.extents.push_back(labels.extents[mode]);
      desc.layout.strides.push_back(stride);
      stride *= labels.extents[mode];
      if (below(6) == 0) stride += 1 + below(3);
    }
    return desc;
  };
  RandomProduct product;
  product.desc = {
      .a = below(2) == 0 ? operand({&labels.m, &labels.k, &labels.batch})
                         : operand({&labels.k, &labels.m, &labels.batch}),
      .b = below(2) == 0 ? operand({&labels.k, &labels.n, &labels.batch})
                         : operand({&labels.n, &labels.k, &labels.batch}),
      .c = std::nullopt,
      .d = below(2) == 0 ? operand({&labels.m, &labels.n, &labels.batch})
                         : operand({&labels.n, &labels.m, &labels.batch}),
      .compute_type = core::ComputeType::kFloat64};
  auto& desc = product.desc;
  desc.c = desc.d;
  if (below(4) == 0) {  // c with a gap of its own
    for (auto& stride : desc.c->layout.strides) stride *= 2;
  }
  for (OperandDesc* input : {&desc.a, &desc.b, &*desc.c}) {
    if (below(4) == 0) input->unary = core::UnaryOperator::kConj;
  }
  const auto fill = [&](const OperandDesc& of, Elements& elements) {
    elements.resize(static_cast<size_t>(SpanOf(of.layout)));
    for (Complex& x : elements) x = Complex(below(9) - 4, below(9) - 4);
  };
  fill(desc.a, product.a);
  fill(desc.b, product.b);
  fill(*desc.c, product.c);
  fill(desc.d, product.d);
  const auto factor = [&]() -> core::Scalar {
    switch (below(3)) {
      case 0: return core::kOne;
      case 1: return {2, 0};
      default: return {-1, 3};
    }
  };
  product.alpha = factor();
  product.beta = below(3) == 0 ? core::kZero : factor();
  return product;
}

Elements RandomProduct::Expected() const {
  Labels labels;
  for (const OperandDesc* input : {&desc.a, &desc.b}) {
    for (size_t i = 0; i < input->modes.size(); ++i) {
      labels.extents[input->modes[i]] = input->layout.extents[i];
    }
  }
  const std::vector<Mode> kept(desc.d.modes.begin(), desc.d.modes.end());
  std::vector<Mode> summed;
  for (const auto& [mode, extent] : labels.extents) {
    if (std::find(kept.begin(), kept.end(), mode) == kept.end()) {
      summed.push_back(mode);
    }
  }
  Elements result = d;
  std::map<Mode, int64_t> index;
  ForEach(kept, labels, index, [&] {
    Complex sum = 0;
    ForEach(summed, labels, index, [&] {
      sum += Conjugated(desc.a, a[OffsetOf(desc.a, index)]) *
             Conjugated(desc.b, b[OffsetOf(desc.b, index)]);
    });
    Complex value = Complex(alpha.real, alpha.imaginary) * sum;
    value += Complex(beta.real, beta.imaginary) *
             Conjugated(*desc.c, c[OffsetOf(*desc.c, index)]);
    result[OffsetOf(desc.d, index)] = value;
  });
  return result;
}

}  // namespace tensord::test
