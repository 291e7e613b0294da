// An operation as a client asks for it, and the Desc that it amounts to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/ops/any_desc.h"
#include "core/ops/scalar.h"
#include "core/plan/plan.h"
#include "core/tensor/tensor.h"
#include "server/session/filling.h"
#include "server/session/inline_tensor.h"

namespace tensord::server {

class PreparedPlan;
class StoredTensor;

enum class OperationKind { kPermute, kElementwise, kReduce, kContract };

/// "permute", "elementwise", ...
absl::string_view NameOf(OperationKind kind);

struct InputRequest {
  std::variant<std::string, InlineTensor>
      source;  // a name or the tensor itself
  core::Modes modes;
  core::UnaryOperator unary = core::UnaryOperator::kIdentity;
};

struct OutputRequest {
  std::string tensor;  // existing tensor, or "" for a new one
  core::Modes modes;
  // For a new one:
  std::string tensor_id;
  std::optional<core::ElementType> element_type;
  core::Order order = core::Order::kFirstModeFastest;
  bool is_inline = false;
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
  std::optional<InputRequest> a, b, c;
  OutputRequest d;
  std::optional<PaddingRequest> padding;  // of permutations
  core::Scalar alpha = core::kOne;
  core::Scalar beta = core::kZero;
  core::Scalar gamma = core::kOne;
  core::BinaryOperator op_ab = core::BinaryOperator::kAdd;
  core::BinaryOperator op = core::BinaryOperator::kAdd;  // or op_abc
  std::optional<core::ComputeType> compute_type;
  int64_t workspace_limit_bytes = core::kNoWorkspaceLimit;
  std::string kernel;
  bool deterministic = false;
  core::Selection selection = core::Selection::kHeuristic;
  /// Whose execution this is; null when it was not planned before.
  std::shared_ptr<const PreparedPlan> plan;
};

/// A permutation of `from` that leaves every mode in its place, to `to`.
OperationRequest CopyRequest(const StoredTensor& from, const StoredTensor& to);

/// The tensors that a request names or carries; absent ones it leaves out.
/// Strides of inputs to permutations and element-wise operations may be 0: they
/// repeat along the mode.
struct OperationTensors {
  std::optional<core::TensorDesc> a, b, c;
  std::optional<core::TensorDesc> d;  // absent: a new one
};

/// Which inputs an operation reads: those whose factor is not zero.
struct InputsRead {
  bool a, b, c;
};
InputsRead WhichInputs(const OperationRequest& request);

/// What there is in d besides the result.
struct OutputFrame {
  int64_t result_offset = 0;  // elements, from d's first
  Filling filling;            // of d, before the result is written
};

struct OperationDesc {
  core::AnyDesc desc;       // valid; its d is the result
  core::TensorDesc output;  // of d, also when it is new
  OutputFrame frame;
};

/// The Desc of `request` on `tensors`, with all that was left out filled in.
///
/// A new d gets the extents of the inputs, c's element type or else the widest
/// of a and b, and a packed layout, which has room for padding. An input that
/// is not read and was left out is replaced by one that fits.
///
/// Errors  INVALID_ARGUMENT: an input that is read was left out, the extent of
///         a mode of d is not known, a factor does not fit the types, padding
///         that d has no room for or whose value it does not have, and all that
///         Validate() refuses. UNIMPLEMENTED: no row of the type table.
absl::StatusOr<OperationDesc> MakeDesc(const OperationRequest& request,
                                       const OperationTensors& tensors);

}  // namespace tensord::server
