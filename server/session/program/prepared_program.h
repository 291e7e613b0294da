// A program whose path is found, for operands of given types and layouts.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/notation/program/lower.h"
#include "core/notation/program/program.h"
#include "core/plan/plan.h"
#include "server/engine/engine.h"
#include "server/session/program/program_request.h"

namespace tensord::server {

/// Threads   safe for concurrent use.
/// Lifetime  shared by the session and by requests under way.
class PreparedProgram {
 public:
  /// Reads `source`, finds paths, and makes the keys of all plans for `device`.
  ///
  /// Errors  those of the notation, core::LowerProgram() and LowerEinsum().
  static absl::StatusOr<std::shared_ptr<PreparedProgram>> Make(
      const ProgramSource& source, std::vector<core::NamedOperand> operands,
      absl::Span<const ProgramOutputRequest> outputs,
      const ProgramOptions& options, const Device& device);

  /// The same program, its paths too, with scalars that may be others.
  /// Requires  `operands` are like operands().
  /// Errors  INVALID_ARGUMENT: a factor does not fit the types.
  absl::StatusOr<std::shared_ptr<PreparedProgram>> WithOperands(
      std::vector<core::NamedOperand> operands, const Device& device) const;

  PreparedProgram(const PreparedProgram&) = delete;

  /// What a session calls it; "" when it does not keep it.
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  /// Has executions of its own counted from here on.
  void StartCounting() {
    execution_count_ = std::make_shared<std::atomic<int64_t>>(0);
  }

  const ProgramSource& source() const { return source_; }
  const ProgramOptions& options() const { return options_; }
  /// Those that were asked for when it was made.
  const std::vector<ProgramOutputRequest>& outputs() const { return outputs_; }
  const core::Program& program() const { return program_; }
  /// What operands have to be like, in the order in which they are given.
  const std::vector<core::NamedOperand>& operands() const { return operands_; }
  /// The different plans that it needs.
  const std::vector<core::PlanKey>& keys() const { return keys_; }
  /// Which of keys() is the step's, by block.
  int32_t key_of(size_t block, size_t step) const {
    return key_of_[block][step];
  }

  /// Counted together with those of the program that WithOperands() was called
  /// on.
  void CountExecution() const { ++*execution_count_; }
  int64_t execution_count() const { return *execution_count_; }

 private:
  PreparedProgram() = default;

  static absl::StatusOr<std::shared_ptr<PreparedProgram>> Make(
      const ProgramSource& source, std::vector<core::NamedOperand> operands,
      absl::Span<const ProgramOutputRequest> outputs,
      const ProgramOptions& options, const Device& device,
      const core::Program* like);

  std::string name_;
  ProgramSource source_;
  std::vector<core::NamedOperand> operands_;
  std::vector<ProgramOutputRequest> outputs_;
  ProgramOptions options_;
  core::Program program_;
  std::vector<core::PlanKey> keys_;
  std::vector<std::vector<int32_t>> key_of_;  // (block)(step)
  std::shared_ptr<std::atomic<int64_t>> execution_count_ =
      std::make_shared<std::atomic<int64_t>>(0);
};

}  // namespace tensord::server
