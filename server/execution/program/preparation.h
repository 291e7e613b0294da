// A request for a program, on its way to a program that can run.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/engine/engine.h"
#include "server/execution/background.h"
#include "server/execution/program/given_operands.h"
#include "server/execution/program/prepared_program.h"
#include "server/execution/program/program_cache.h"
#include "server/execution/program/program_request.h"
#include "server/execution/run.h"
#include "server/session/session.h"

namespace tensord::server {

/// What preparing programs shares: those that are known, and threads for path
/// searches that take long.
///
/// Threads  safe for concurrent use.
class Preparer {
 public:
  explicit Preparer(Engine& engine);

  Engine& engine() const { return engine_; }
  ProgramCache& cache() { return cache_; }
  Background& background() { return background_; }

 private:
  Engine& engine_;
  ProgramCache cache_;
  Background background_;
};

/// A program's request with what its session has for it.
///
/// Threads   one after the other.
/// Lifetime  refers to the messages that the request came in.
class Preparation {
 public:
  /// What a program is asked for.
  enum class Purpose { kExecute, kExplain, kCreate };

  /// Of a program that the request brings.
  /// Errors  NOT_FOUND; INVALID_ARGUMENT: operands that make no sense.
  static absl::StatusOr<Preparation> Of(Preparer& preparer,
                                        std::shared_ptr<Session> session,
                                        ProgramRequest request,
                                        Purpose purpose);
  /// Of an execution of a program that the session keeps.
  /// Errors  NOT_FOUND; INVALID_ARGUMENT: operands unlike the program's.
  static absl::StatusOr<Preparation> OfKept(
      Preparer& preparer, std::shared_ptr<Session> session,
      absl::string_view name, std::vector<ProgramOperandRequest> operands,
      std::vector<ProgramOutputRequest> outputs);

  /// Whether there is nothing to Make().
  bool is_ready() const { return program_ != nullptr; }
  /// Whether Make() takes less time than others would notice.
  bool is_short() const;
  /// Whether the tenant has time left for Make(), if that is not short.
  /// Errors  as SearchBudget::Check().
  absl::Status CheckBudget() const;
  /// Finds paths, on any thread, until `stop` is set.
  /// Errors  CANCELLED: it was set. Those of PreparedProgram::Make().
  absl::Status Make(const std::atomic<bool>& stop);

  const std::shared_ptr<Session>& session() const { return session_; }
  /// Requires  is_ready().
  const PreparedProgram& program() const { return *program_; }
  const std::vector<ProgramOutputRequest>& outputs() const {
    return request_.outputs;
  }
  /// Whether the program was known, but perhaps for its scalars.
  bool is_known() const { return is_known_; }
  /// How long Make() took.
  absl::Duration time() const { return time_; }

  /// The plans of program().keys().
  /// Errors  as Engine::PlanFor().
  absl::StatusOr<std::vector<std::shared_ptr<const core::Plan>>> Plans() const;
  /// Takes the plans of a run: on any thread, as those of a large program take
  /// long. Called once.
  /// Errors  as PlanProgramRun().
  absl::Status PlanRun();
  /// A run of the program, in the session's order, after PlanRun(). Called
  /// once.
  /// Errors  as PrepareProgramRun().
  absl::StatusOr<std::unique_ptr<Run>> Start(int64_t max_inline_bytes);
  /// Has the session keep the program, with its constants, as `id` or by a
  /// name of its own. Called once.
  /// Errors  as Collection::Add() and Prepared::CountAgainst().
  absl::StatusOr<std::shared_ptr<const PreparedProgram>> Keep(
      absl::string_view id);

 private:
  Preparation(Preparer& preparer, std::shared_ptr<Session> session)
      : preparer_(&preparer), session_(std::move(session)) {}

  Preparer* preparer_;
  std::shared_ptr<Session> session_;
  ProgramRequest request_;  // of a kept program operands and outputs
  FoundOperands found_;
  std::string key_;  // in the cache; "" of a kept program
  std::shared_ptr<const PreparedProgram> program_;
  std::shared_ptr<const PreparedProgram> like_;  // but for scalars; or null
  std::unique_ptr<RunState> run_state_;          // or null
  bool is_known_ = false;
  absl::Duration time_;
};

/// The plans of `program.keys()`.
/// Errors  as Engine::PlanFor().
absl::StatusOr<std::vector<std::shared_ptr<const core::Plan>>> PlansOf(
    Engine& engine, const Session& session, const PreparedProgram& program);

}  // namespace tensord::server
