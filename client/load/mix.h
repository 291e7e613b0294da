// What a load is made of, as a TOML file says it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tensord/element_type.h"
#include "tensord/operations.h"

namespace tensord::load {

enum class OperationKind {
  kContract,
  kPermute,
  kReduce,
  kElementwise,
  kEinsum,
  kFactorize,
  kProgram,
  kUpload,
  kDownload,
};

/// What a tensor that an operation reads is like.
struct TensorSpec {
  std::string name;   // in a program
  std::string modes;  // labels, one character each; of operations by subscripts
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;  // elements; none: packed, last mode fastest
  ElementType element_type = ElementType::kFloat32;

  bool operator==(const TensorSpec&) const = default;
};

/// One kind of call. An operation that computes makes a new tensor, which is
/// deleted after it.
struct OperationSpec {
  std::string name;  // in what is told of it
  OperationKind kind = OperationKind::kContract;
  double weight = 1;       // how often it is called, in relation to the others
  std::string subscripts;  // of all but programs and transfers
  std::string result_modes;  // labels of d; empty for einsum and factorize
  std::string statements;    // of a program
  std::map<std::string, double> scalars;  // of a program
  std::vector<TensorSpec> tensors;  // what it reads, or of a transfer carries
  BinaryOperator op = BinaryOperator::kAdd;
  ComputeType compute_type = ComputeType::kFromElementTypes;
  Selection selection = Selection::kHeuristic;
  /// Its tensors travel inside each request.
  bool is_inline = false;
  std::optional<absl::Duration> deadline;  // of a call
};

/// Invariant  names of operations differ; the weights have a positive sum.
struct Mix {
  std::string name;
  std::string job;  // the label that the server's statistics have
  std::vector<OperationSpec> operations;
};

/// Reads the text of a mix; `file` is what messages call it.
///
/// Errors  INVALID_ARGUMENT: says line, key, what is there and what is wanted.
absl::StatusOr<Mix> ParseMix(std::string_view text, const std::string& file);

/// The same of a file.
///
/// Errors  NOT_FOUND: it cannot be read. Those of ParseMix().
absl::StatusOr<Mix> ReadMix(const std::string& file);

}  // namespace tensord::load
