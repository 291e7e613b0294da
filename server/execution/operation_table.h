// The operations, a row each.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/execution/operation_desc.h"
#include "server/execution/operation_request.h"

namespace tensord::server {

/// What an input is multiplied by. One whose factor is 0 is not read.
enum class Factor { kNone, kAlpha, kBeta, kGamma };

/// "alpha", ...
absl::string_view NameOf(Factor factor);

struct InputRow {
  bool exists = false;
  bool is_optional = false;  // may be left out of the operation itself
  bool is_addend = false;    // kernels take it or not, as the factor says
  Factor factor = Factor::kNone;
};

/// What the server has to know of an operation.
struct OperationRow {
  absl::string_view name;  // "contract"
  PerInput<InputRow> inputs;
  /// Takes inputs that repeat along a mode as they lie.
  bool broadcasts = false;
  /// As MakeDesc().
  absl::StatusOr<OperationDesc> (*make_desc)(const OperationRequest& request,
                                             const OperationTensors& tensors);
};

const OperationRow& RowOf(OperationKind kind);
inline absl::string_view NameOf(OperationKind kind) { return RowOf(kind).name; }

/// What result number `i` is called: "d", or a factor by its method.
absl::string_view ResultNameOf(const OperationRequest& request, size_t i);

/// "a", "b" and "c".
inline constexpr PerInput<absl::string_view> kInputNames = {"a", "b", "c"};

/// Whether the operation has input number `i`. A request may still leave it out
/// where it is not read.
bool HasInput(const OperationRequest& request, size_t i);
/// Whether `request` reads input number `i`: it has no factor, or not 0.
bool Reads(const OperationRequest& request, size_t i);
/// Whether the operation has the factor.
bool HasFactor(const OperationRequest& request, Factor factor);

}  // namespace tensord::server
