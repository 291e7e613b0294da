// The operations that a program's steps consist of, made one by one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/notation/program/bind.h"
#include "core/notation/program/program.h"

namespace tensord::core {

/// A tensor times a factor.
struct ScaledTensor {
  Scalar factor = kOne;
  IndexedTensor tensor;
};

/// Adds steps to a program.
///
/// Outside of sliced blocks, a product, sum or conversion that was computed
/// before, of tensors that have not been written since, is not computed again.
class StepBuilder {
 public:
  /// Contractions compute in `compute_type`, unless it is left out.
  StepBuilder(Program& program, const Bindings& bindings,
              std::optional<ComputeType> compute_type)
      : program_(program), bindings_(bindings), compute_type_(compute_type) {}

  /// Steps from here on belong to that statement.
  void BeginStatement(int32_t statement) { statement_ = statement; }

  /// Steps until EndSlices() are carried out once for each value of `sliced`,
  /// of which d has the first `kept_count`.
  void BeginSlices(absl::Span<const Mode> sliced, int32_t kept_count);
  void EndSlices();
  bool is_slicing() const { return !sliced_.empty(); }
  /// `tensor` in each of the slices: without their indices.
  IndexedTensor Slice(const IndexedTensor& tensor) const;

  ElementType TypeOf(const IndexedTensor& tensor) const {
    return program_.tensors[tensor.tensor].element_type;
  }
  /// A temporary with these modes, the first one fastest.
  IndexedTensor MakeTemporary(ElementType type, const Modes& indices);
  /// A tensor without modes that has this value.
  absl::StatusOr<IndexedTensor> MakeConstant(ElementType type, Scalar value);

  /// `tensor` with elements of `type`: itself, or a converted copy.
  absl::StatusOr<IndexedTensor> Convert(const IndexedTensor& tensor,
                                        ElementType type);

  /// A copy of `tensor`, which is not conjugated.
  absl::StatusOr<IndexedTensor> Copy(const IndexedTensor& tensor);

  /// 1 divided by the elements of `tensor`, in ReciprocalType().
  absl::StatusOr<IndexedTensor> Reciprocal(const IndexedTensor& tensor);

  /// d = op(a), or what `function` makes of two or three `inputs` of one type:
  /// of WHERE the condition, of bool and not scaled, comes first. Modes of d
  /// that an input lacks repeat it. What has one input only is not scaled, and
  /// not conjugated.
  absl::Status Apply(const IndexedTensor& d, const ElementFunction& function,
                     absl::Span<const ScaledTensor> inputs);

  /// d = the elements of `a` whose index `taken` is that in `indices`, which
  /// are as they are in memory.
  absl::Status Take(const IndexedTensor& d, const ScaledTensor& a, Mode taken,
                    const IndexedTensor& indices, StepPlace place);

  /// d = beta * d + the sum of one to three `terms`, two when beta is not 0.
  /// Modes of d that a term lacks repeat it.
  absl::Status Add(const IndexedTensor& d, absl::Span<const ScaledTensor> terms,
                   Scalar beta);
  /// d = beta * d + alpha * a, summed over the modes that d lacks.
  absl::Status Reduce(const IndexedTensor& d, Scalar alpha,
                      const IndexedTensor& a, Scalar beta);
  /// d = beta * d + alpha * a * b, likewise.
  absl::Status Multiply(const IndexedTensor& d, Scalar alpha,
                        const IndexedTensor& a, const IndexedTensor& b,
                        Scalar beta);

  /// An operation on whole tensors. An SVD keeps as many values as
  /// `truncation` says.
  absl::Status AddCallStep(AnyDesc desc, absl::Span<const IndexedTensor> inputs,
                           absl::Span<const IndexedTensor> outputs,
                           const Truncation& truncation, StepPlace place);
  /// `tensor` as an operand with those modes; of those that it lacks the extent
  /// is 1.
  OperandDesc DescOf(const IndexedTensor& tensor,
                     absl::Span<const Mode> modes) const;

  /// What was kept under `key`, if it still holds, with the indices that it was
  /// kept with; nothing that is in `target`, which is about to be written.
  std::optional<IndexedTensor> Known(const std::string& key,
                                     int32_t target = -1) const;
  void Keep(std::string key, const IndexedTensor& tensor);
  /// Identifies the contents of `tensor`, whatever its indices are called.
  std::string KeyOf(const IndexedTensor& tensor) const;
  /// `tensor` is written: it has other contents from here on.
  void Touch(int32_t tensor) { ++versions_[tensor]; }
  /// Nothing is kept any more, nor found.
  void StopKeeping() { keeps_ = false; }

 private:
  OperandDesc DescOf(const IndexedTensor& tensor) const;
  /// d = a * b + d.
  ContractionDesc ContractionOf(const IndexedTensor& a, const IndexedTensor& b,
                                const IndexedTensor& d,
                                std::optional<ComputeType> compute_type) const;
  StepOperand OperandOf(const IndexedTensor& tensor) const;
  /// Times that `tensor` was written.
  int64_t VersionOf(int32_t tensor) const;
  double ExtentProduct(absl::Span<const Mode> indices) const;
  /// Adds `step`, whose operands are there, when its desc is valid.
  absl::Status AddStep(ProgramStep step);
  ProgramBlock& block();

  Program& program_;
  const Bindings& bindings_;
  const std::optional<ComputeType> compute_type_;
  int32_t statement_ = 0;
  int32_t temporary_count_ = 0;
  std::vector<Mode> sliced_;
  bool wants_block_ = true;
  bool keeps_ = true;
  absl::flat_hash_map<int32_t, int64_t> versions_;
  absl::flat_hash_map<std::string, std::pair<IndexedTensor, int64_t>>
      known_;  // and the version that holds it
};

}  // namespace tensord::core
