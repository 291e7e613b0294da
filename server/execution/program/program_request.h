// A program as a client asks for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "core/base/element_type.h"
#include "core/base/layout.h"
#include "core/notation/path/find_path.h"
#include "core/ops/scalar.h"
#include "core/plan/plan.h"
#include "server/execution/inline_tensor.h"
#include "server/session/stored_tensor.h"
#include "server/session/tensor_view.h"

namespace tensord::server {

struct EinsumText {
  std::string subscripts;
  bool operator==(const EinsumText&) const = default;
};
struct NconText {
  std::vector<std::vector<int64_t>> labels;  // (operand)(mode)
  std::vector<int64_t> order;
  std::vector<int64_t> output;
  bool operator==(const NconText&) const = default;
};

/// Statements, or the one product of all operands.
using ProgramSource = std::variant<std::string, EinsumText, NconText>;

struct ProgramOperandRequest {
  std::string name;  // "": it has none, only a place
  /// A tensor's name, the tensor itself as the request brings it, a scalar, or
  /// the tensor that a prepared program has, whatever it is called by now.
  std::variant<std::string, InlineTensor, core::Scalar,
               std::shared_ptr<StoredTensor>>
      source;
  bool is_constant = false;
  std::optional<ViewRequest> view = {};  // of one that has a name
};

struct ProgramOutputRequest {
  std::string name;
  std::string tensor_id;
  std::optional<core::ElementType> element_type;
  std::optional<core::Order> order;
  bool is_inline = false;
};

/// Longest search that a client may ask for.
inline constexpr absl::Duration kMaxTimeBudget = absl::Minutes(1);

/// What those who search say to each other meanwhile.
struct SearchControl {
  const std::atomic<bool>* stop = nullptr;  // ends the search soon, if set
  /// To which other threads than the caller's add the processor's time that
  /// they take; null: to nothing.
  std::atomic<int64_t>* helper_nanoseconds = nullptr;
};

/// How a program is lowered and planned.
struct ProgramOptions {
  core::Order order = core::Order::kFirstModeFastest;
  core::PathMethod method = core::PathMethod::kAuto;
  absl::Duration time_budget = absl::ZeroDuration();
  std::vector<std::vector<int64_t>> given_path;  // (step)(position)
  core::NamedStart start;
  std::optional<std::string> costs;
  std::optional<int64_t> memory_limit_bytes;
  uint64_t seed = 0;
  std::optional<core::ComputeType> compute_type;
  int64_t workspace_limit_bytes = core::kNoWorkspaceLimit;
  bool deterministic = false;
  core::Selection selection = core::Selection::kHeuristic;

  bool operator==(const ProgramOptions&) const = default;
};

struct ProgramRequest {
  ProgramSource source;
  std::vector<ProgramOperandRequest> operands;
  std::vector<ProgramOutputRequest> outputs;
  ProgramOptions options;
};

}  // namespace tensord::server
