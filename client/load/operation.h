// An operation of a mix, ready to be called on a session.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/load/mix.h"
#include "client/load/statistics.h"
#include "tensord/operations.h"
#include "tensord/program.h"
#include "tensord/remote_tensor.h"
#include "tensord/session.h"

namespace tensord::load {

/// Elements for the tensors of an operation: random, the same in every run.
using TensorContents = std::vector<std::vector<std::byte>>;  // (tensor)(byte)

TensorContents RandomContents(const OperationSpec& spec);

/// Whether calls carry the contents, rather than find them on the server.
bool IsSentByCalls(const OperationSpec& spec);

/// What a call came to, and what it made; that leaves the server with this.
struct CallResult {
  CallOutcome outcome;
  std::vector<RemoteTensor> tensors;
};

/// Threads   safe for concurrent use.
/// Lifetime  refers to the session, the specification and the contents, which
///           may be emptied unless IsSentByCalls().
class Operation {
 public:
  /// Puts onto the server what the operation reads, unless it is sent inline.
  static absl::StatusOr<std::unique_ptr<Operation>> Prepare(
      Session& session, const OperationSpec& spec,
      const TensorContents& contents);

  /// Asks the server whether it can be called. Nothing runs.
  absl::Status Check();

  CallResult Call();

 private:
  Operation(Session& session, const OperationSpec& spec,
            const TensorContents& contents)
      : session_(session), spec_(spec), contents_(contents) {}

  UntypedHostView HostViewOf(size_t tensor) const;
  void MakeOperands();
  void MakeProgramOperands();
  ProgramOptions program_options() const;
  ProductOptions product_options() const;
  FactorizeOptions factorize_options() const;
  absl::StatusOr<RemoteTensor> Compute();

  Session& session_;
  const OperationSpec& spec_;
  const TensorContents& contents_;
  std::vector<RemoteTensor> residents_;  // (tensor); empty if sent inline
  std::vector<Operand> operands_;
  std::vector<ProgramOperand> program_operands_;
  Modes d_;
  ContractOptions contract_;
  PermuteOptions permute_;
  ReduceOptions reduce_;
  ElementwiseOptions elementwise_;
};

}  // namespace tensord::load
