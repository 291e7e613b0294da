// Operations prepared once and run often. The contract is
// tensord/v1/plan.proto.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tensord/handle.h"
#include "tensord/operations.h"
#include "tensord/remote_tensor.h"

namespace tensord {

/// What a plan was when the server was asked last.
struct PlanInfo {
  std::string name;  // `sessions/{session}/plans/{plan}`
  /// `permute`, `elementwise`, `reduce`, `contract`, `factorize` or `solve`.
  std::string operation;
  std::string device;
  int result_count = 1;
  Selection selection = Selection::kHeuristic;
  Explanation explanation;          // how it is computed now
  int64_t min_workspace_bytes = 0;  // over the kernels that could run
  int64_t max_workspace_bytes = 0;
  int sample_count = 0;  // of INCREMENTAL selection: executions timed
  int wanted_sample_count = 0;
  int64_t execution_count = 0;
};

struct PlanOptions {
  std::string name;  // the last part; empty: the server chooses
  std::optional<absl::Duration> deadline;
};

/// The inputs of one execution. Those that the operation does not have, or
/// whose factor is 0, stay null.
struct PlanInputs {
  const RemoteTensor* a = nullptr;
  const RemoteTensor* b = nullptr;
  const RemoteTensor* c = nullptr;
};

struct PlanExecution {
  const RemoteTensor* output = nullptr;      // null: a new tensor
  std::string output_name;                   // of a new one
  std::optional<Scalar> alpha, beta, gamma;  // absent: the plan's
  std::optional<absl::Duration> deadline;
};

/// The two results of a factorization, in their order: q and r, or l and q, u
/// and v, w and v. Both have the operation's report.
struct Factors {
  RemoteTensor q;
  RemoteTensor r;
};

/// Of a new result the plan says the order.
struct FactorizeExecution {
  FactorOutput q, r;
  std::optional<absl::Duration> deadline;
};

struct KernelInfo {
  std::string name;  // e.g. `cpu.contract.gemm`
  int version = 1;
  std::string operation;
};

/// An operation that is validated and has its kernel, for tensors like those it
/// was made for. Leaves the server with this handle. Keeps the session open.
///
///   auto plan = session.PlanContract({a, "ik"}, {b, "kj"}, "ij").value();
///   for (...) c = plan.Execute({&x, &y}).value();
///
/// Threads   const methods may be called concurrently.
/// Owner     whoever holds it; a moved-from handle holds nothing.
/// Lifetime  may outlive the Session that made it.
class Plan {
 public:
  const std::string& name() const { return info_.name; }
  /// As it was when it was made.
  const PlanInfo& info() const { return info_; }
  absl::StatusOr<PlanInfo> Describe() const;

  /// Leaves the plan on the server until its session ends.
  void Release() { handle_.Release(); }

  /// Errors  those of ExecutePlan: INVALID_ARGUMENT, `PLAN_OPERAND_DIFFERS`;
  ///         `PLAN_RESULT_COUNT`: it has several results.
  absl::StatusOr<RemoteTensor> Execute(const PlanInputs& inputs,
                                       const PlanExecution& options = {}) const;
  /// Runs a factorization of two results, which go where q and r say.
  /// Errors  as Execute(); `PLAN_RESULT_COUNT`: it has not two.
  absl::StatusOr<Factors> ExecuteFactorize(
      const RemoteTensor& a, const FactorizeExecution& options = {}) const;

 private:
  friend class Session;

  Plan(std::shared_ptr<internal::Connection> connection, PlanInfo info)
      : handle_(std::move(connection), info.name, /*is_owned=*/true),
        info_(std::move(info)) {}

  /// OK when it has so many results.
  absl::Status CheckResultCount(int count) const;

  internal::Handle handle_;
  PlanInfo info_;
};

}  // namespace tensord
