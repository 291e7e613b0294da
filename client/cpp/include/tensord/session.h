// The way to a tensord server: sessions, tensors, operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tensord/credentials.h"
#include "tensord/element_type.h"
#include "tensord/layout.h"
#include "tensord/operations.h"
#include "tensord/pipeline.h"
#include "tensord/plan.h"
#include "tensord/program.h"
#include "tensord/remote_tensor.h"
#include "tensord/server.h"
#include "tensord/status.h"

namespace tensord {

/// Keys and values.
using Headers = std::vector<std::pair<std::string, std::string>>;

struct SessionOptions {
  std::string job;     // who asks, for the server's logs and statistics
  std::string device;  // e.g. `cpu:0`; empty: the server's first
  /// How long the session outlives this process. Renewed in the background.
  absl::Duration lease = absl::Seconds(60);
  int64_t memory_quota_bytes = 0;  // 0: the server's default
  /// 0 to 9: of the job's sessions, higher ones have the device first.
  int priority = 0;
  absl::Duration deadline = absl::Seconds(60);  // of each call
  Order order = Order::kLastModeFastest;        // of results and of downloads
  Transport transport = Transport::kAuto;       // of large tensors
  Credentials credentials;
  /// Asked before each call, on the thread that makes it, for metadata to send
  /// along, e.g. {"traceparent", ...}; keys in small letters. Null: none.
  std::function<Headers()> headers;
};

struct SessionInfo {
  std::string name;
  std::string job;
  std::string device;
  absl::Duration lease;
  int64_t memory_quota_bytes = 0;
  int priority = 0;
  int64_t memory_used_bytes = 0;
  int64_t tensor_count = 0;
  int64_t staging_used_bytes = 0;  // pinned host memory that transfers use
};

struct CreateOptions {
  std::string name;  // the last part; empty: the server chooses
  std::optional<absl::Duration> deadline;
};

struct UploadOptions {
  std::string name;  // the last part; empty: the server chooses
  Progress progress;
  /// Absent: the session's default deadline and a second more for every 32 MiB.
  std::optional<absl::Duration> deadline;
};

struct CopyOptions {
  std::string name;  // the last part; empty: the server chooses
  /// Of the copy, with the source's extents. Absent: the source's own.
  std::optional<Layout> layout;
  std::optional<absl::Duration> deadline;
};

/// A session with a tensord server: it owns tensors and computes on them.
///
///   auto session = tensord::Session::Connect("localhost:8470").value();
///   auto a = session.Upload(view_of_a).value();
///   auto c = session.Einsum("ijk,kjl->il", {a, b}).value();
///
/// Closed, and its tensors deleted, when the Session and the last of its
/// RemoteTensors have gone, or by Close().
///
/// Threads  safe for concurrent use; moving and destroying it are not.
/// Errors   every call can end with UNAVAILABLE (server gone or draining),
///          DEADLINE_EXCEEDED and what the contract lists for its rpc;
///          ReasonOf() tells more.
class Session {
 public:
  /// `address` is `host:port` or `unix:/path`.
  static absl::StatusOr<Session> Connect(std::string_view address,
                                         const SessionOptions& options = {});

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  /// `sessions/{session}`. Whoever knows it can use the session.
  const std::string& name() const;
  const std::string& device() const;
  /// Of the server, as they were when the session was opened.
  const Limits& limits() const;

  /// Closes the session now. Handles of its tensors become void.
  absl::Status Close();

  absl::StatusOr<SessionInfo> DescribeSession() const;
  absl::StatusOr<ServerInfo> Info() const;
  /// What it takes to share memory with the server, each looked at anew, and
  /// how fast that is; takes a second.
  SharedMemoryReport CheckSharedMemory() const;
  absl::StatusOr<ServerStats> Stats() const;

  // Tensors.

  /// Creates a tensor without contents.
  absl::StatusOr<RemoteTensor> Create(ElementType element_type,
                                      const Layout& layout,
                                      const CreateOptions& options = {});

  /// Creates a tensor of the view's layout and fills it. A transfer that breaks
  /// off is resumed a few times.
  ///
  /// Post  nothing refers to the view's memory any more, also after an error.
  absl::StatusOr<RemoteTensor> Upload(const UntypedHostView& view,
                                      const UploadOptions& options = {});
  template <Element T>
  absl::StatusOr<RemoteTensor> Upload(const HostView<T>& view,
                                      const UploadOptions& options = {}) {
    return Upload(static_cast<UntypedHostView>(view), options);
  }

  /// Fills an existing tensor with the bytes from its first to its last
  /// element, gaps included. `options.name` is not used.
  ///
  /// Requires  bytes.size() == span_bytes of the tensor.
  absl::Status Refill(const RemoteTensor& tensor,
                      std::span<const std::byte> bytes,
                      const UploadOptions& options = {});

  /// All elements, in the order asked for, without gaps. The tensor must not
  /// be written meanwhile.
  ///
  /// Requires  `elements` has as many as the tensor.
  template <Element T>
  absl::Status Download(const RemoteTensor& tensor, std::span<T> elements,
                        const DownloadOptions& options = {}) const {
    return tensor.DownloadTo(kElementTypeOf<T>,
                             std::as_writable_bytes(elements), options);
  }

  /// A handle of the session's tensor `sessions/{session}/tensors/{tensor}`
  /// that does not own it.
  absl::StatusOr<RemoteTensor> Borrow(std::string_view name) const;

  absl::StatusOr<TensorInfo> Describe(const RemoteTensor& tensor) const;
  absl::StatusOr<std::vector<TensorInfo>> List() const;
  absl::Status Delete(RemoteTensor tensor);
  /// Deletes all of them, in one call unless they are thousands.
  /// Errors  that of the first that could not be deleted; the others are gone.
  absl::Status Delete(std::vector<RemoteTensor> tensors);
  /// A tensor that another session shares, by what RemoteTensor::Share() has
  /// returned: a view that can be read only. `name` is its name in this
  /// session;
  /// "": the server chooses.
  /// Errors  those of OpenSharedTensor.
  absl::StatusOr<RemoteTensor> OpenShared(std::string_view share,
                                          std::string_view name = "") const;
  /// Copies a tensor into this session. It may be of another session with the
  /// same server, and on another device.
  absl::StatusOr<RemoteTensor> Copy(const RemoteTensor& source,
                                    const CopyOptions& options = {});

  // Operations. The result is READY when they return.

  absl::StatusOr<RemoteTensor> Permute(const Operand& a, const Modes& d,
                                       const PermuteOptions& options = {});
  absl::StatusOr<RemoteTensor> Elementwise(
      const Operand& a, BinaryOperator op_ac, const Operand& c, const Modes& d,
      const ElementwiseOptions& options = {});
  absl::StatusOr<RemoteTensor> Elementwise(
      const Operand& a, BinaryOperator op_ab, const Operand& b,
      BinaryOperator op_abc, const Operand& c, const Modes& d,
      const ElementwiseOptions& options = {});
  absl::StatusOr<RemoteTensor> Reduce(BinaryOperator op, const Operand& a,
                                      const Modes& d,
                                      const ReduceOptions& options = {});
  absl::StatusOr<RemoteTensor> Contract(const Operand& a, const Operand& b,
                                        const Modes& d,
                                        const ContractOptions& options = {});

  /// Factors of the matrices that `a` is, one for each value of its batch
  /// modes, as the rpc Factorize has them: q and r; l and q; u, s and v, or u
  /// and v, of an SVD whose values a factor absorbs; w and v of EIGH; l of
  /// CHOLESKY. The inner label is the one that all results have and `a` lacks.
  /// Of QR, LQ and SVD, a label of `a` that both factors have is a batch mode,
  /// one of the first alone counts rows, one of the second alone columns, the
  /// last one fastest.
  ///
  ///   auto [q, r] = session.Factorize("abcd->abk,kcd", a).value();
  ///   auto usv = session.FactorizeAll("ij->ik,k,kj", a, {
  ///       .method = FactorizationMethod::kSvd,
  ///       .truncation = {.rank = 64, .relative_cutoff = 1e-10}}).value();
  ///   usv[1].report().kept_extent  // elements of u, s and v beyond are 0
  ///
  /// Errors  INVALID_ARGUMENT: malformed subscripts, `SUBSCRIPTS_MALFORMED`;
  ///         not two results, `RESULT_COUNT_MISMATCH`; and those of the rpc.
  ///         UNIMPLEMENTED: element types other than float32, float64,
  ///         complex64 and complex128; a device without kernels for it, as
  ///         GPUs are.
  absl::StatusOr<Factors> Factorize(std::string_view subscripts,
                                    const RemoteTensor& a,
                                    const FactorizeOptions& options = {}) {
    return PairOf(FactorizeAll(subscripts, a, options));
  }
  absl::StatusOr<std::vector<RemoteTensor>> FactorizeAll(
      std::string_view subscripts, const RemoteTensor& a,
      const FactorizeOptions& options = {}) {
    return RunFactorization(subscripts, Operand(a, {}), options);
  }
  // Of a view of the caller's memory, which travels inside the request.
  absl::StatusOr<Factors> Factorize(std::string_view subscripts,
                                    UntypedHostView a,
                                    const FactorizeOptions& options = {}) {
    return PairOf(FactorizeAll(subscripts, std::move(a), options));
  }
  absl::StatusOr<std::vector<RemoteTensor>> FactorizeAll(
      std::string_view subscripts, UntypedHostView a,
      const FactorizeOptions& options = {}) {
    return RunFactorization(subscripts, Operand(std::move(a), {}), options);
  }

  /// d of a * d = b, summed over the columns of a. A mode of all three is a
  /// batch mode, one of a and b alone counts rows, one of a and d alone
  /// columns, one of b and d alone right sides. Where the structure has a
  /// triangle, rows are numbered in the order of b's modes, columns in that of
  /// d's, the last one fastest.
  ///
  ///   session.Solve({a, "ij"}, {b, "ik"}, "jk",
  ///                 {.structure = MatrixStructure::kPositiveDefinite})
  ///
  /// Errors  those of the rpc SolveLinear, e.g. INVALID_ARGUMENT, reason
  ///         `MATRIX_SINGULAR`.
  absl::StatusOr<RemoteTensor> Solve(const Operand& a, const Operand& b,
                                     const Modes& d,
                                     const SolveOptions& options = {});
  /// The inverse of a. d lacks the modes of its rows, and has as many that a
  /// lacks; the last modes of d that a has, as many, are those of columns.
  /// Where there are batch modes, d has these first, its own last.
  ///
  ///   session.Invert({a, "nij"}, "njk")
  absl::StatusOr<RemoteTensor> Invert(const Operand& a, const Modes& d,
                                      const SolveOptions& options = {});
  /// The exponential of a. d lacks the modes of its columns, and has as many
  /// that a lacks; the last modes of a that d has, as many, are those of rows.
  /// Of a matrix of two modes d may have both.
  ///
  ///   session.Expm({a, "nij"}, "nik")
  absl::StatusOr<RemoteTensor> Expm(const Operand& a, const Modes& d,
                                    const SolveOptions& options = {});

  // Programs: any number of tensors and statements in one request. The server
  // finds the order of contractions and holds intermediate results. Errors are
  // those of ProgramService.

  /// NumPy's einsum of any number of tensors. The report of the result is that
  /// of all operations together, without a kernel.
  ///
  ///   session.Einsum("ijk,kjl->il", {a, b})
  ///   session.Einsum("...ij,jk,kl->...il", {a, b, c},
  ///                  {.path = {.memory_limit_bytes = 1 << 30}})
  absl::StatusOr<RemoteTensor> Einsum(std::string_view subscripts,
                                      ProgramOperands operands,
                                      const ProductOptions& options = {});

  /// NCON's product of tensors.
  ///
  ///   session.Ncon({.labels = {{-1, 1}, {1, -2}}}, {a, b})
  absl::StatusOr<RemoteTensor> Ncon(const NconLabels& labels,
                                    ProgramOperands operands,
                                    const ProductOptions& options = {});

  /// Computes statements, or a product.
  ///
  ///   auto results = session.Run("D[i,k] := x*A[i,j]*B[j,k]",
  ///                              {{"A", a}, {"B", b}, {"x", 2.0}}).value();
  ///   auto d = results.Take("D").value();
  absl::StatusOr<ProgramResults> Run(const ProgramSource& source,
                                     ProgramOperands operands,
                                     const ProgramOptions& options = {});

  /// Prepares a program that is to run often. Operands only say what tensors
  /// will be like; they need no contents. Numbers are kept, and so are
  /// constants, see Constant(). `plan` has the program's name and the deadline;
  /// that of `options` is not used.
  absl::StatusOr<PreparedProgram> PrepareProgram(
      const ProgramSource& source, ProgramOperands operands,
      const ProgramOptions& options = {}, const PlanOptions& plan = {});

  /// How a program would run; nothing runs. Operands need no contents.
  absl::StatusOr<ProgramExplanation> ExplainProgram(
      const ProgramSource& source, ProgramOperands operands,
      const ProgramOptions& options = {}) const;
  absl::StatusOr<ProgramExplanation> ExplainEinsum(
      std::string_view subscripts, ProgramOperands operands,
      const ProductOptions& options = {}) const;

  /// Starts a pipeline of operations that do not wait for each other's
  /// responses.
  Pipeline StartPipeline(const PipelineOptions& options = {});

  // Prepare an operation that is to run often. Operands only say what tensors
  // will be like; they need no contents. `output` and `deadline` of the options
  // are not used.

  absl::StatusOr<Plan> PlanPermute(const Operand& a, const Modes& d,
                                   const PermuteOptions& options = {},
                                   const PlanOptions& plan = {});
  absl::StatusOr<Plan> PlanElementwise(const Operand& a, BinaryOperator op_ac,
                                       const Operand& c, const Modes& d,
                                       const ElementwiseOptions& options = {},
                                       const PlanOptions& plan = {});
  absl::StatusOr<Plan> PlanElementwise(const Operand& a, BinaryOperator op_ab,
                                       const Operand& b, BinaryOperator op_abc,
                                       const Operand& c, const Modes& d,
                                       const ElementwiseOptions& options = {},
                                       const PlanOptions& plan = {});
  absl::StatusOr<Plan> PlanReduce(BinaryOperator op, const Operand& a,
                                  const Modes& d,
                                  const ReduceOptions& options = {},
                                  const PlanOptions& plan = {});
  absl::StatusOr<Plan> PlanContract(const Operand& a, const Operand& b,
                                    const Modes& d,
                                    const ContractOptions& options = {},
                                    const PlanOptions& plan = {});
  /// To be run by Plan::ExecuteFactorize().
  absl::StatusOr<Plan> PlanFactorize(std::string_view subscripts,
                                     const RemoteTensor& a,
                                     const FactorizeOptions& options = {},
                                     const PlanOptions& plan = {});

  absl::StatusOr<Plan> PlanSolve(const Operand& a, const Operand& b,
                                 const Modes& d,
                                 const SolveOptions& options = {},
                                 const PlanOptions& plan = {});
  absl::StatusOr<Plan> PlanInvert(const Operand& a, const Modes& d,
                                  const SolveOptions& options = {},
                                  const PlanOptions& plan = {});
  absl::StatusOr<Plan> PlanExpm(const Operand& a, const Modes& d,
                                const SolveOptions& options = {},
                                const PlanOptions& plan = {});

  // Say how an operation would be computed, and run nothing. Tensors need no
  // contents.

  absl::StatusOr<Explanation> ExplainPermute(
      const Operand& a, const Modes& d,
      const PermuteOptions& options = {}) const;
  absl::StatusOr<Explanation> ExplainElementwise(
      const Operand& a, BinaryOperator op_ac, const Operand& c, const Modes& d,
      const ElementwiseOptions& options = {}) const;
  absl::StatusOr<Explanation> ExplainElementwise(
      const Operand& a, BinaryOperator op_ab, const Operand& b,
      BinaryOperator op_abc, const Operand& c, const Modes& d,
      const ElementwiseOptions& options = {}) const;
  absl::StatusOr<Explanation> ExplainReduce(
      BinaryOperator op, const Operand& a, const Modes& d,
      const ReduceOptions& options = {}) const;
  absl::StatusOr<Explanation> ExplainContract(
      const Operand& a, const Operand& b, const Modes& d,
      const ContractOptions& options = {}) const;
  absl::StatusOr<Explanation> ExplainFactorize(
      std::string_view subscripts, const RemoteTensor& a,
      const FactorizeOptions& options = {}) const;
  absl::StatusOr<Explanation> ExplainSolve(
      const Operand& a, const Operand& b, const Modes& d,
      const SolveOptions& options = {}) const;
  absl::StatusOr<Explanation> ExplainInvert(
      const Operand& a, const Modes& d, const SolveOptions& options = {}) const;
  absl::StatusOr<Explanation> ExplainExpm(
      const Operand& a, const Modes& d, const SolveOptions& options = {}) const;

 private:
  struct Running;
  struct Planning;

  explicit Session(std::shared_ptr<internal::Connection> connection);

  absl::StatusOr<RemoteTensor> RunProduct(const ProgramSource& source,
                                          ProgramOperands operands,
                                          const ProductOptions& options);
  absl::StatusOr<std::vector<RemoteTensor>> RunFactorization(
      std::string_view subscripts, Operand a, const FactorizeOptions& options);
  /// Errors  INVALID_ARGUMENT, reason RESULT_COUNT_MISMATCH.
  static absl::StatusOr<Factors> PairOf(
      absl::StatusOr<std::vector<RemoteTensor>> made);

  std::shared_ptr<internal::Connection> connection_;
};

}  // namespace tensord
