// Bound sums -> steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/notation/program/bind.h"
#include "core/notation/program/lower.h"
#include "core/notation/program/plan_product.h"
#include "core/notation/program/program.h"
#include "core/notation/program/step_builder.h"

namespace tensord::core {

/// Adds the steps that compute sums to a program.
class Emitter {
 public:
  /// `max_peak_bytes` bounds what the contractions of a product keep at a time.
  Emitter(Program& program, const Bindings& bindings, StepBuilder& steps,
          const LoweringOptions& options, double max_peak_bytes)
      : program_(program),
        bindings_(bindings),
        steps_(steps),
        options_(options),
        max_peak_bytes_(max_peak_bytes) {}

  void BeginStatement(int32_t statement);

  /// True when `sum` may be evaluated into d although it reads d: it is a
  /// function of several arguments, which read no element of d but the one that
  /// they make, when the function itself is computed.
  static bool IsInPlace(const IndexedTensor& d, const BoundSum& sum);
  /// d = beta * d + factor * sum. No term reads d, or IsInPlace().
  /// Errors  of LowerProgram().
  absl::Status Evaluate(const IndexedTensor& d, const BoundSum& sum,
                        Scalar factor, Scalar beta);
  /// `sum` as a tensor of `type` that is not conjugated: one that is there, or
  /// a temporary with modes in that order, fastest first.
  absl::StatusOr<IndexedTensor> ValueOf(const BoundSum& sum, ElementType type,
                                        const Modes& order);

 private:
  absl::Status EvaluateInto(const IndexedTensor& d, const BoundSum& sum,
                            Scalar factor, Scalar beta);
  /// d = call, which may be known, and is kept.
  absl::Status ComputeInto(const IndexedTensor& d, const BoundCall& call);
  /// d = call.
  absl::Status Compute(const IndexedTensor& d, const BoundCall& call);
  /// d = op of the call's first argument.
  absl::Status ComputeUnary(const IndexedTensor& d, UnaryOperator op,
                            const BoundCall& call);
  /// An input of a function, in `type`, with modes in that order, fastest
  /// first. When `may_be_scaled`, a number that multiplies it is left to the
  /// function.
  absl::StatusOr<ScaledTensor> InputOf(const BoundSum& argument,
                                       ElementType type, const Modes& order,
                                       bool may_be_scaled);
  /// A term that stands for the same at all values of some of d's indices, to
  /// be added to d.
  absl::StatusOr<IndexedTensor> RepeatedPart(const BoundTerm& term,
                                             const IndexedTensor& d);
  /// d += factor * term, which is not zero only on a diagonal of d.
  absl::Status AddOnDiagonal(const IndexedTensor& d, const BoundTerm& term,
                             Scalar factor);
  absl::Status AddProduct(const IndexedTensor& d, const BoundTerm& term,
                          Scalar factor, Scalar beta);
  /// What one step of a product makes, from two tensors.
  struct Contraction {
    Modes kept;                           // its modes, fastest first
    ElementType result_type;              // of the whole product
    const IndexedTensor* into = nullptr;  // null: a temporary
    Scalar alpha = kOne;                  // used with `into` only
    Scalar beta = kZero;                  // likewise
  };
  absl::StatusOr<IndexedTensor> Contract(const IndexedTensor& x,
                                         const IndexedTensor& y,
                                         const Contraction& wanted);
  /// d = beta * d + alpha times the product of `nodes`, in the order of the
  /// plan's tree.
  absl::Status AddContractions(const PlannedProduct& plan,
                               std::vector<IndexedTensor> nodes,
                               const IndexedTensor& d, Scalar alpha,
                               Scalar beta);
  /// A factor of a product as a tensor: of a divisor the reciprocal; groups and
  /// calls are computed, with those of their modes that are in `order` like it,
  /// fastest first.
  absl::StatusOr<IndexedTensor> ValueOf(const BoundFactor& factor,
                                        const Modes& order);
  /// `tensor` summed over the modes that are not in `kept`, in `type`.
  absl::StatusOr<IndexedTensor> SumAway(const IndexedTensor& tensor,
                                        const Modes& kept, ElementType type);

  Program& program_;
  const Bindings& bindings_;
  StepBuilder& steps_;
  const LoweringOptions& options_;
  const double max_peak_bytes_;
  int32_t statement_ = 0;
  /// The tensor that is being computed: what it holds meanwhile is not read.
  int32_t target_ = -1;
};

}  // namespace tensord::core
