// A program whose path is found, for operands of given types and layouts.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "core/notation/program/lower.h"
#include "core/notation/program/program.h"
#include "core/plan/plan.h"
#include "server/engine/engine.h"
#include "server/execution/prepared.h"
#include "server/execution/program/kept_values.h"
#include "server/execution/program/program_request.h"
#include "server/session/stored_tensor.h"

namespace tensord::server {

class Replays;

class PreparedProgram final
    : public Prepared,
      public std::enable_shared_from_this<PreparedProgram> {
 public:
  ~PreparedProgram() override;

  /// Reads `source`, finds paths, and makes the keys of all plans for `device`.
  /// Searching ends soon after `search.stop` is set, with whatever
  /// paths there are.
  ///
  /// Errors  those of the notation, core::LowerProgram() and LowerEinsum();
  ///         INVALID_ARGUMENT, reasons PROGRAM_EMPTY: no statement;
  ///         NAME_UNKNOWN: no statement names an operand.
  static absl::StatusOr<std::shared_ptr<PreparedProgram>> Make(
      const ProgramSource& source, std::vector<core::NamedOperand> operands,
      absl::Span<const ProgramOutputRequest> outputs,
      const ProgramOptions& options, const Device& device,
      const SearchControl& search = {});

  /// The same program, its paths too, with scalars that may be others. It has
  /// the same constants, and keeps values together with this one where they do
  /// not depend on scalars that differ. Executions are counted together.
  /// Requires  `operands` are like operands().
  /// Errors  INVALID_ARGUMENT: a factor does not fit the types.
  ///         RESOURCE_EXHAUSTED, reason PATH_MEMORY_LIMIT.
  absl::StatusOr<std::shared_ptr<PreparedProgram>> WithOperands(
      std::vector<core::NamedOperand> operands, const Device& device,
      const SearchControl& search = {}) const;

  /// A program of its own, for a session to keep.
  std::shared_ptr<PreparedProgram> Copy() const;

  /// This one, or the variant that was kept last, when its scalars are those of
  /// `operands`; else null.
  std::shared_ptr<const PreparedProgram> WithScalars(
      absl::Span<const core::NamedOperand> operands) const;
  /// Has WithScalars() find what WithOperands() made.
  void KeepVariant(std::shared_ptr<const PreparedProgram> variant) const;

  /// With a variant.
  int64_t size_bytes() const override;

  /// Sets its constant operands, (operand), null for others; `memory` is for
  /// what it computes of them alone.
  /// Requires  nobody else has it yet.
  void SetConstants(std::vector<std::shared_ptr<StoredTensor>> constants,
                    std::shared_ptr<core::MemoryResource> memory);
  /// The constant that operand number `i` is; null: it is none.
  std::shared_ptr<StoredTensor> constant(size_t i) const {
    return i < constants_.size() ? constants_[i] : nullptr;
  }
  /// Null without constants.
  const std::shared_ptr<KeptValues>& kept() const { return kept_; }

  const ProgramSource& source() const { return source_; }
  const ProgramOptions& options() const { return options_; }
  /// Those that were asked for when it was made.
  const std::vector<ProgramOutputRequest>& outputs() const { return outputs_; }
  const core::Program& program() const { return program_; }
  /// What operands have to be like, in the order in which they are given.
  const std::vector<core::NamedOperand>& operands() const { return operands_; }
  /// Which of keys() is the step's, by block.
  int32_t key_of(size_t block, size_t step) const {
    return key_of_[block][step];
  }

  /// What executions keep for later ones.
  Replays& replays() const { return *replays_; }

 private:
  PreparedProgram();

  static absl::StatusOr<std::shared_ptr<PreparedProgram>> Make(
      const ProgramSource& source, std::vector<core::NamedOperand> operands,
      absl::Span<const ProgramOutputRequest> outputs,
      const ProgramOptions& options, const Device& device,
      const core::Program* like, const SearchControl& search);

  ProgramSource source_;
  std::vector<core::NamedOperand> operands_;
  std::vector<ProgramOutputRequest> outputs_;
  ProgramOptions options_;
  core::Program program_;
  std::vector<std::vector<int32_t>> key_of_;              // (block)(step)
  std::vector<std::shared_ptr<StoredTensor>> constants_;  // (operand); or none
  std::shared_ptr<KeptValues> kept_;
  std::unique_ptr<Replays> replays_;
  mutable absl::Mutex variant_mutex_;
  mutable std::shared_ptr<const PreparedProgram> variant_
      ABSL_GUARDED_BY(variant_mutex_);
};

}  // namespace tensord::server
