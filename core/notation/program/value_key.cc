#include "core/notation/program/value_key.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/notation/functions.h"

namespace tensord::core {
namespace {

void AppendExactly(const Scalar& scalar, std::string& key) {
  absl::StrAppend(&key, absl::Hex(std::bit_cast<uint64_t>(scalar.real)), ",",
                  absl::Hex(std::bit_cast<uint64_t>(scalar.imaginary)));
}

}  // namespace

Mode Numbering::Of(Mode index) {
  const int at = PositionOf(index, seen_);
  if (at >= 0) return at;
  seen_.push_back(index);
  return static_cast<Mode>(seen_.size() - 1);
}

Modes Numbering::Of(const Modes& indices) {
  Modes numbers;
  for (const Mode index : indices) numbers.push_back(Of(index));
  return numbers;
}

Modes Numbering::Back(const Modes& numbers) const {
  Modes indices;
  for (const Mode number : numbers) indices.push_back(seen_[number]);
  return indices;
}

void AppendNumbers(const Modes& numbers, std::string& key) {
  for (const Mode number : numbers) absl::StrAppend(&key, " ", number);
}

void AppendSet(Modes numbers, std::string& key) {
  std::ranges::sort(numbers);
  AppendNumbers(numbers, key);
}

std::string KeyOf(const BoundSum& sum, const StepBuilder& steps,
                  Numbering& numbering) {
  std::string key = "(";
  for (const BoundTerm& term : sum.terms) {
    absl::StrAppend(&key, "+");
    AppendExactly(term.coefficient, key);
    for (const BoundFactor& factor : term.factors) {
      if (factor.is_divisor) absl::StrAppend(&key, "/");
      if (factor.is_computed() && factor.is_conjugated) {
        absl::StrAppend(&key, "*");
      }
      if (factor.group != nullptr) {
        absl::StrAppend(&key, KeyOf(*factor.group, steps, numbering));
      } else if (factor.call != nullptr) {
        absl::StrAppend(&key, KeyOf(*factor.call, steps, numbering));
      } else {
        absl::StrAppend(&key, "[", steps.KeyOf(factor.tensor), "]");
      }
      AppendNumbers(numbering.Of(factor.indices()), key);
    }
    for (const auto& [index, other] : term.same) {
      absl::StrAppend(&key, " same");
      AppendNumbers(numbering.Of(Modes{index, other}), key);
    }
    absl::StrAppend(&key, " by");
    AppendNumbers(numbering.Of(Modes(term.order.begin(), term.order.end())),
                  key);
  }
  absl::StrAppend(&key, ")");
  AppendSet(numbering.Of(sum.indices), key);
  return key;
}

std::string KeyOf(const BoundCall& call, const StepBuilder& steps,
                  Numbering& numbering) {
  std::string key = absl::StrCat(std::string(NotationOf(call.function)), " in ",
                                 std::string(NameOf(call.argument_type)), "{");
  for (const BoundSum& argument : call.arguments) {
    absl::StrAppend(&key, KeyOf(argument, steps, numbering), ";");
  }
  absl::StrAppend(&key, "}");
  AppendSet(numbering.Of(call.indices), key);
  return key;
}

PairKey::PairKey(IndexedTensor (&pair)[2], const StepBuilder& steps,
                 const Modes& kept, ElementType type) {
  std::string keys[2] = {steps.KeyOf(pair[0]), steps.KeyOf(pair[1])};
  if (keys[1] < keys[0]) {
    std::swap(keys[0], keys[1]);
    std::swap(pair[0], pair[1]);
  }
  text_ =
      absl::StrCat(keys[0], " x ", keys[1], " in ", std::string(NameOf(type)));
  AppendNumbers(numbering_.Of(pair[0].indices), text_);
  AppendNumbers(numbering_.Of(pair[1].indices), text_);
  absl::StrAppend(&text_, " ->");
  AppendSet(numbering_.Of(kept), text_);
}

IndexedTensor PairKey::Numbered(IndexedTensor tensor) {
  tensor.indices = numbering_.Of(tensor.indices);
  return tensor;
}

IndexedTensor PairKey::Named(IndexedTensor tensor) const {
  tensor.indices = numbering_.Back(tensor.indices);
  return tensor;
}

}  // namespace tensord::core
