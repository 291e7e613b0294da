#include "tests/unit/core/notation/program/program_inputs.h"

#include <algorithm>
#include <complex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "core/notation/parse_program.h"
#include "gtest/gtest.h"

namespace tensord::core::test {
namespace {

/// A random product or sum over `labels`, with operands added as needed.
class RandomStatement {
 public:
  RandomStatement(std::mt19937& rng, Inputs& inputs)
      : rng_(rng), inputs_(inputs) {
    for (const char label : absl::string_view("abcdef")) {
      extents_[std::string(1, label)] = 1 + rng() % 3;
    }
  }

  std::string Sum(const std::vector<std::string>& open, int depth) {
    std::string text;
    const int terms = 1 + static_cast<int>(rng_() % 3);
    for (int t = 0; t < terms; ++t) {
      absl::StrAppend(
          &text,
          t > 0 || rng_() % 3 == 0 ? (rng_() % 2 == 0 ? " + " : " - ") : "",
          Term(open, depth));
    }
    return text;
  }
  int64_t extent(const std::string& label) const { return extents_.at(label); }
  std::vector<std::string> SomeLabels(size_t most) {
    std::vector<std::string> labels;
    for (const auto& [label, extent] : extents_) labels.push_back(label);
    std::shuffle(labels.begin(), labels.end(), rng_);
    labels.resize(rng_() % (most + 1));
    return labels;
  }

 private:
  std::string Tensor(std::vector<std::string> labels) {
    std::shuffle(labels.begin(), labels.end(), rng_);
    const bool is_diagonal = labels.size() == 2 &&
                             extents_[labels[0]] == extents_[labels[1]] &&
                             rng_() % 3 == 0;
    // One that is there, perhaps.
    ModeVector shape;
    for (const std::string& label : labels) shape.push_back(extents_[label]);
    if (is_diagonal) shape.pop_back();
    std::string name;
    for (size_t i = 0; i < inputs_.names.size(); ++i) {
      if (inputs_.values[i].layout.extents == shape && rng_() % 2 == 0) {
        name = inputs_.names[i];
      }
    }
    if (name.empty()) {
      name = absl::StrCat("A", inputs_.names.size());
      inputs_.Add(name, RandomValues(shape, rng_));
    }
    if (is_diagonal) name = absl::StrCat("Diagonal(", name, ")");
    std::string text = absl::StrCat(name, "[", absl::StrJoin(labels, ","), "]");
    return rng_() % 5 == 0 ? absl::StrCat("conj(", text, ")") : text;
  }

  std::string Term(const std::vector<std::string>& open, int depth) {
    // Every open label goes to one factor, or two; others to two.
    std::vector<std::vector<std::string>> factors(1 + rng_() % 4);
    const auto put = [&](const std::string& label) {
      factors[rng_() % factors.size()].push_back(label);
    };
    for (const std::string& label : open) {
      put(label);
      if (depth == 0 && rng_() % 5 == 0) put(label);
    }
    for (const auto& [label, extent] : extents_) {
      if (rng_() % 3 != 0 ||
          std::find(open.begin(), open.end(), label) != open.end()) {
        continue;
      }
      put(label);
      put(label);
    }
    std::vector<std::string> texts;
    if (rng_() % 3 == 0) texts.push_back("2.5");
    if (rng_() % 5 == 0) texts.push_back("x");
    for (std::vector<std::string>& labels : factors) {
      const std::set<std::string> distinct(labels.begin(), labels.end());
      if (depth < 2 && distinct.size() == labels.size() && rng_() % 4 == 0) {
        // Labels of the outer term must not be summed inside.
        std::map<std::string, int64_t> hidden = extents_;
        std::swap(hidden, extents_);
        for (const std::vector<std::string>& other : factors) {
          for (const std::string& label : other) extents_.erase(label);
        }
        for (const std::string& label : open) extents_.erase(label);
        std::map<std::string, int64_t> inner = extents_;
        for (const std::string& label : labels) {
          inner[label] = hidden[label];
        }
        extents_ = inner;
        texts.push_back(absl::StrCat(rng_() % 4 == 0 ? "conj" : "", "(",
                                     Sum(labels, depth + 1), ")"));
        std::swap(hidden, extents_);
      } else {
        texts.push_back(rng_() % 6 == 0 ? Function(labels) : Tensor(labels));
      }
    }
    std::string text = absl::StrJoin(texts, "*");
    if (rng_() % 8 == 0) absl::StrAppend(&text, "/", Divisor());
    return text;
  }

  /// Of moderate size.
  std::string Function(const std::vector<std::string>& labels) {
    const std::string tensor = Tensor(labels);
    // A divisor would sum what it has twice.
    const bool may_divide =
        std::set<std::string>(labels.begin(), labels.end()).size() ==
        labels.size();
    switch (rng_() % (may_divide ? 5 : 4)) {
      case 0: return absl::StrCat("exp(", tensor, "/4)");
      case 1: return absl::StrCat("sin(x - ", tensor, "/4)'");
      case 2: return absl::StrCat("(12 + ", tensor, ")^-1.5");
      case 3: return absl::StrCat("(sqrt(12 + ", tensor, ") - 1)");
      default: return absl::StrCat("(3/(12 - ", tensor, "))");
    }
  }

  /// Nothing near 0.
  std::string Divisor() {
    switch (rng_() % 4) {
      case 0: return "(3*x)";
      case 1: return "(2 + x)";
      case 2: return absl::StrCat("(4 + ", Tensor({}), ")");
      default: return absl::StrCat("conj(", Tensor({}), "*x - 4)");
    }
  }

  std::mt19937& rng_;
  Inputs& inputs_;
  std::map<std::string, int64_t> extents_;
};

}  // namespace

Values RandomValues(const ModeVector& extents, std::mt19937& rng) {
  const Order order =
      rng() % 2 == 0 ? Order::kFirstModeFastest : Order::kLastModeFastest;
  Values values;
  values.layout = PackedLayout(extents, order);
  if (rng() % 4 == 0) {
    for (int64_t& stride : values.layout.strides) stride *= 2;
  }
  std::uniform_real_distribution<double> random(-1, 1);
  values.data.resize(SpanElements(values.layout));
  for (Number& value : values.data) value = {random(rng), random(rng)};
  return values;
}

void Inputs::Add(std::string name, Values tensor) {
  names.push_back(std::move(name));
  values.push_back(std::move(tensor));
}

std::vector<NamedOperand> Inputs::Described() const {
  std::vector<NamedOperand> operands;
  for (size_t i = 0; i < names.size(); ++i) {
    operands.push_back({.name = names[i],
                        .scalar = std::nullopt,
                        .element_type = ElementType::kComplex128,
                        .layout = values[i].layout,
                        .is_constant = constants.contains(names[i])});
  }
  for (const auto& [name, value] : scalars) {
    operands.push_back({.name = name, .scalar = value});
  }
  return operands;
}

ValuesByName Inputs::ByName() const {
  ValuesByName tensors;
  for (size_t i = 0; i < names.size(); ++i) tensors[names[i]] = values[i];
  return tensors;
}

void ExpectNear(const Values& got, const Values& wanted, double bound,
                absl::string_view what) {
  ASSERT_EQ(got.layout.extents, wanted.layout.extents) << what;
  std::vector<int64_t> index(got.layout.extents.size(), 0);
  if (ElementCount(got.layout) == 0) return;
  while (true) {
    ASSERT_LE(std::abs(got.At(index) - wanted.At(index)), bound)
        << what << " at " << absl::StrJoin(index, ",");
    size_t m = 0;
    while (m < index.size() && ++index[m] == got.layout.extents[m]) {
      index[m++] = 0;
    }
    if (m == index.size()) return;
  }
}

absl::StatusOr<Program> Lower(absl::string_view text, const Inputs& inputs,
                              const LoweringOptions& options,
                              const std::vector<NamedOutput>& outputs) {
  TENSORD_ASSIGN_OR_RETURN(const ProgramSyntax syntax, ParseProgram(text));
  return LowerProgram(syntax, inputs.Described(), outputs, options);
}

Program RunAndCompare(absl::string_view text, Inputs inputs,
                      const LoweringOptions& options) {
  const auto syntax = ParseProgram(text);
  EXPECT_TRUE(syntax.ok()) << syntax.status();
  auto program = LowerProgram(*syntax, inputs.Described(), {}, options);
  EXPECT_TRUE(program.ok()) << program.status() << "\n" << text;
  if (!program.ok()) return {};
  ValuesByName meant;
  for (size_t i = 0; i < inputs.names.size(); ++i) {
    meant[inputs.names[i]] = inputs.values[i];
  }
  Evaluate(*syntax, inputs.scalars, meant);
  const std::vector<Values> before = inputs.values;
  const std::vector<Values> outputs = RunProgram(*program, inputs.values);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = program->tensors[program->outputs[i]].name;
    ExpectNear(outputs[i], meant.at(name), kBound, name);
  }
  for (size_t i = 0; i < inputs.names.size(); ++i) {
    const bool is_written = program->operand_written[i];
    ExpectNear(inputs.values[i],
               is_written ? meant.at(inputs.names[i]) : before[i], kBound,
               inputs.names[i]);
  }
  return *std::move(program);
}

Inputs ProgramTest::Make(
    const std::vector<std::pair<std::string, ModeVector>>& tensors) {
  Inputs inputs;
  for (const auto& [name, extents] : tensors) {
    inputs.Add(name, RandomValues(extents, rng_));
  }
  return inputs;
}

std::string RandomProgram(std::mt19937& rng, Inputs& inputs) {
  inputs.scalars["x"] = {0.5, -0.25};
  std::string text;
  const int statements = 1 + static_cast<int>(rng() % 3);
  RandomStatement random(rng, inputs);
  for (int s = 0; s < statements; ++s) {
    const std::vector<std::string> open = random.SomeLabels(3);
    // Into a new tensor, or one that is there and may be read, too.
    std::string name = absl::StrCat("D", s);
    absl::string_view assignment = ":=";
    if (rng() % 3 == 0) {
      assignment = rng() % 3 == 0 ? "=" : rng() % 2 == 0 ? "+=" : "-=";
      ModeVector shape;
      for (const std::string& label : open) {
        shape.push_back(random.extent(label));
      }
      name = absl::StrCat("A", inputs.names.size());
      inputs.Add(name, RandomValues(shape, rng));
    }
    const std::string labels =
        open.empty() && rng() % 2 == 0
            ? ""
            : absl::StrCat("[", absl::StrJoin(open, ","), "]");
    // Makes one, too.
    if (labels.empty() && assignment == ":=") assignment = "=";
    absl::StrAppend(&text, name, labels, " ", assignment, " ",
                    random.Sum(open, 0), "\n");
  }
  return text;
}

}  // namespace tensord::core::test
