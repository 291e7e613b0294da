// An operation as a client asks for it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/container/inlined_vector.h"
#include "core/base/element_type.h"
#include "core/base/layout.h"
#include "core/ops/factorization.h"
#include "core/ops/linear_solve.h"
#include "core/ops/operand.h"
#include "core/ops/operators.h"
#include "core/ops/reduction.h"
#include "core/ops/scalar.h"
#include "core/plan/plan.h"
#include "core/tensor/tensor.h"
#include "server/execution/inline_tensor.h"
#include "server/session/tensor_view.h"

namespace tensord::server {

class PreparedPlan;
class StoredTensor;

enum class OperationKind {
  kPermute,
  kElementwise,
  kReduce,
  kContract,
  kFactorize,
  kSolve,
};
inline constexpr int kOperationCount = 6;

/// One value for each of the inputs a, b and c.
template <typename T>
using PerInput = std::array<T, 3>;
/// One value for each result.
template <typename T>
using PerResult = absl::InlinedVector<T, 1>;

struct InputRequest {
  std::variant<std::string, InlineTensor> source;  // its name, or itself
  std::optional<ViewRequest> view = {};            // of one that has a name
  core::Modes modes;
  core::UnaryOperator unary = core::UnaryOperator::kIdentity;
};

struct OutputRequest {
  std::string tensor;                    // existing tensor, or "" for a new one
  std::optional<ViewRequest> view = {};  // of an existing one
  core::Modes modes;
  // For a new one:
  std::string tensor_id;
  std::optional<core::ElementType> element_type;
  core::Order order = core::Order::kFirstModeFastest;
  bool is_inline = false;
  bool is_sent = false;  // in the response, too, if it is small
};

/// Elements around a result.
struct PaddingRequest {
  core::ModeVector before, after;  // (mode of d); empty: all 0
  core::Scalar value;
};

/// An operation as a client asks for it. Which fields count follows from the
/// kind, as in the proto.
struct OperationRequest {
  OperationKind kind;
  PerInput<std::optional<InputRequest>> inputs = {};
  PerResult<OutputRequest> results = {};
  std::optional<PaddingRequest> padding = {};  // of permutations
  core::Scalar alpha = core::kOne;
  core::Scalar beta = core::kZero;
  core::Scalar gamma = core::kOne;
  core::BinaryOperator op_ab = core::BinaryOperator::kAdd;
  core::BinaryOperator op = core::BinaryOperator::kAdd;  // or op_abc
  std::optional<core::Along> along = {};                 // of reductions
  core::FactorizationMethod method = core::FactorizationMethod::kQr;
  core::Truncation truncation = {};
  std::optional<core::Sampling> sampling = {};
  core::MatrixFunction function = core::MatrixFunction::kInverse;
  core::MatrixStructure structure = core::MatrixStructure::kGeneral;
  bool has_unit_diagonal = false;
  std::optional<int64_t> rank = {};  // most inner extent of new results
  std::optional<core::ComputeType> compute_type = {};
  int64_t workspace_limit_bytes = core::kNoWorkspaceLimit;
  std::string kernel = {};
  bool deterministic = false;
  core::Selection selection = core::Selection::kHeuristic;
  /// Whose execution this is; null when it was not planned before.
  std::shared_ptr<const PreparedPlan> plan = nullptr;
};

/// A permutation of `from` that leaves every mode in its place, to `to`.
OperationRequest CopyRequest(const StoredTensor& from, const StoredTensor& to);

/// The tensors that a request names or carries; absent ones it leaves out.
/// Strides of inputs to operations that broadcast may be 0: they repeat along
/// the mode.
struct OperationTensors {
  PerInput<std::optional<core::TensorDesc>> inputs;
  PerResult<std::optional<core::TensorDesc>> results;  // absent: a new one
};

}  // namespace tensord::server
