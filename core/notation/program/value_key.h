// What tells equal computations, whatever their indices are called.
#pragma once

#include <string>

#include "core/notation/program/bind.h"
#include "core/notation/program/step_builder.h"
#include "core/ops/operand.h"

namespace tensord::core {

/// Numbers indices in the order in which they come, so that equal computations
/// on indices of other names look equal.
class Numbering {
 public:
  Mode Of(Mode index);
  Modes Of(const Modes& indices);
  /// The indices that have these numbers.
  Modes Back(const Modes& numbers) const;

 private:
  Modes seen_;  // (number)
};

/// Appends numbers; of a set, sorted.
void AppendNumbers(const Modes& numbers, std::string& key);
void AppendSet(Modes numbers, std::string& key);

/// What `sum` or `call` computes.
std::string KeyOf(const BoundSum& sum, const StepBuilder& steps,
                  Numbering& numbering);
std::string KeyOf(const BoundCall& call, const StepBuilder& steps,
                  Numbering& numbering);

/// What the product of two tensors is, summed over all but `kept`, in `type`.
/// Puts the pair in an order that does not depend on which came first.
class PairKey {
 public:
  PairKey(IndexedTensor (&pair)[2], const StepBuilder& steps, const Modes& kept,
          ElementType type);

  const std::string& text() const { return text_; }
  /// `tensor` with numbers in place of indices, and back.
  IndexedTensor Numbered(IndexedTensor tensor);
  IndexedTensor Named(IndexedTensor tensor) const;

 private:
  Numbering numbering_;
  std::string text_;
};

}  // namespace tensord::core
