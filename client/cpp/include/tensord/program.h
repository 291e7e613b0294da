// Whole programs in index notation: any number of tensors and statements in one
// request. The contract is tensord/v1/program.proto.
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "tensord/element_type.h"
#include "tensord/layout.h"
#include "tensord/operations.h"
#include "tensord/remote_tensor.h"

namespace tensord {

/// One product of all operands, as `numpy.einsum` writes it: `ij,jk->ik`,
/// `...ii`, `a,ab,abc->c`.
struct EinsumText {
  std::string subscripts;

  bool operator==(const EinsumText&) const = default;
};

/// One product of all operands, as NCON writes it: positive labels occur twice
/// and are summed, negative ones are the modes of the result.
struct NconLabels {
  std::vector<std::vector<int64_t>> labels;  // (operand)(mode)
  std::vector<int64_t> order;                // of summation; none: ascending
  std::vector<int64_t> output;  // (mode of the result); none: -1, -2, ...

  bool operator==(const NconLabels&) const = default;
};

/// What to compute. Text is statements, each on a line of its own or behind a
/// `;`:
///
///   T[a,b] := A[a,c]*B[c,b]
///   D[a,b] = 2*T[a,b] - conj(C[b,a])/alpha   # comment
///
/// `:=` makes a tensor. `=` stores into an operand. `+=` and `-=` add to an
/// operand, or to what an earlier statement made. `s = ...` without brackets
/// makes a scalar where nothing is called `s`. A label that a term has twice
/// is summed, unless the output has it. Parentheses order products.
struct ProgramSource {
  ProgramSource(std::string_view statements)
      : notation(std::string(statements)) {}
  ProgramSource(const std::string& statements) : notation(statements) {}
  ProgramSource(const char* statements) : notation(std::string(statements)) {}
  ProgramSource(EinsumText einsum) : notation(std::move(einsum)) {}
  ProgramSource(NconLabels ncon) : notation(std::move(ncon)) {}

  std::variant<std::string, EinsumText, NconLabels> notation;
};

/// What an operand of a program is: a tensor, a number, or a view of the
/// caller's memory, which is sent with the request and must be small, see
/// Limits.max_inline_bytes. To explain or prepare a program, a view may have no
/// data.
///
/// Lifetime  refers to the tensor or to the view's data, which must outlive the
///           call.
struct ProgramValue {
  ProgramValue(const RemoteTensor& remote) : source(&remote) {}
  ProgramValue(UntypedHostView host) : source(std::move(host)) {}
  template <Element T>
  ProgramValue(const HostView<T>& host)
      : source(static_cast<UntypedHostView>(host)) {}
  ProgramValue(Scalar scalar) : source(scalar) {}
  ProgramValue(double number) : source(Scalar(number)) {}
  ProgramValue(std::complex<double> number)
      : source(Scalar(number.real(), number.imag())) {}

  std::variant<const RemoteTensor*, UntypedHostView, Scalar> source;
};

/// A name of the program and what it stands for. A product has its operands in
/// their order; names are what messages call them.
///
///   {{"A", a}, {"alpha", 2.0}}  or, of a product,  {a, b, c}
struct ProgramOperand {
  ProgramOperand(std::string name_in_program, ProgramValue operand)
      : name(std::move(name_in_program)), value(std::move(operand)) {}
  ProgramOperand(const RemoteTensor& remote) : value(remote) {}
  ProgramOperand(UntypedHostView host) : value(std::move(host)) {}
  template <Element T>
  ProgramOperand(const HostView<T>& host) : value(host) {}

  std::string name;
  ProgramValue value;
  bool is_constant = false;  // see Constant()
};

/// For Session::PrepareProgram(): a tensor that is not expected to change from
/// one run to the next. What depends on constants alone is computed by the
/// first run, and again only after a constant has changed. The session's memory
/// holds it until the program is deleted. Runs need not name constants. A view
/// of the caller's memory is uploaded.
///
///   session.PrepareProgram("ij,jk,kl->il", {Constant(a), Constant(b), x})
inline ProgramOperand Constant(ProgramOperand operand) {
  operand.is_constant = true;
  return operand;
}

using ProgramOperands = absl::Span<const ProgramOperand>;

/// A result of a program that is kept, or sent with the response.
struct ProgramOutput {
  /// To the left of a `:=`. Of a product it may be left out.
  std::string name;
  /// The tensor's name's last part; "" lets the server choose.
  std::string tensor_name;
  /// Unspecified: as NumPy promotes the operands' types.
  ElementType element_type = ElementType::kUnspecified;
  std::optional<Order> order;  // absent: the program's
  /// It comes with the response, and the server keeps nothing.
  bool is_inline = false;
};

/// How the order of contractions is found. Numbered as in the contract.
enum class PathMethod {
  kAuto = 1,     // by the number of operands
  kOptimal = 2,  // the fewest flops of all; up to 16 operands
  kGreedy = 3,   // always the cheapest pair
  kRandomGreedy = 4,
  kPartition = 5,
};

/// An order and the labels that it slices.
struct PathStart {
  std::vector<std::vector<int64_t>> steps;  // as of PathOptions
  std::vector<std::string> sliced;
};

struct PathOptions {
  PathMethod method = PathMethod::kAuto;
  /// How long to search for each product. Absent: by its size.
  std::optional<absl::Duration> time_budget;
  /// Of a product: the order itself, as `numpy.einsum_path` writes it. Each
  /// step takes the operands at those positions out of the list and puts their
  /// product at its end.
  std::vector<std::vector<int64_t>> steps;  // (step)(position)
  /// Most bytes of intermediate results. To keep to it the product is computed
  /// in parts, one after the other.
  std::optional<int64_t> memory_limit_bytes;
  int64_t seed = 0;  // of searches that are random
  /// What labels cost, as polynomials of a variable that is large. The order
  /// with the fewest multiplications is taken, whatever the extents are.
  ///
  ///   a=>χ, b=>χ^2, c=>2*χ, e=>5   and 1 for other labels
  ///   (a,b)                        χ for these
  ///   !(a,b)                       χ for all others; without any text, for all
  ///
  /// With kAuto, kOptimal or `steps` alone: other methods look at extents.
  std::optional<std::string> costs;
  /// Of a product: what an earlier search found, from where this one goes on.
  std::optional<PathStart> start;
};

struct ProgramOptions {
  PathOptions path;
  ComputeType compute_type = ComputeType::kFromElementTypes;  // of contractions
  /// Most scratch memory of an operation; absent: the server chooses.
  std::optional<int64_t> workspace_limit_bytes;
  /// Pins the choice of kernels: the same request gives the same bits.
  bool deterministic = false;
  /// How the kernel of each operation is chosen, when an execution comes to it;
  /// only kHeuristic together with `deterministic`.
  Selection selection = Selection::kHeuristic;
  std::optional<Order> order;  // of what is made; absent: the session's
  /// What is kept; none: what `:=` makes and no later statement reads.
  std::vector<ProgramOutput> outputs;
  /// Absent: the session's default deadline.
  std::optional<absl::Duration> deadline;
};

/// What a product of tensors can be told. Names mean what they mean in
/// ExecutionOptions and ProgramOptions.
struct ProductOptions {
  PathOptions path;
  ComputeType compute_type = ComputeType::kFromElementTypes;
  std::optional<int64_t> workspace_limit_bytes;
  bool deterministic = false;
  Selection selection = Selection::kHeuristic;
  /// An existing tensor that is overwritten: the result is computed beside it
  /// and then copied.
  const RemoteTensor* output = nullptr;
  std::string output_name;
  ElementType output_element_type = ElementType::kUnspecified;
  std::optional<Order> output_order;
  std::optional<absl::Duration> deadline;
};

/// How many singular values an SVD of a program kept, the most of any matrix.
/// Elements of its results beyond are zero.
struct KeptExtent {
  int32_t statement = 0;  // from 0
  std::string label;      // the one of its labels that counts values
  int64_t extent = 0;
};

/// What a program did.
struct ProgramReport {
  int64_t operation_count = 0;         // that ran, in all slices
  int64_t folded_operation_count = 0;  // not run, as their results were kept
  double flops = 0;             // of contractions, reductions and products
  int64_t peak_bytes = 0;       // of intermediate results
  int64_t kept_bytes = 0;       // of what depends on constants alone
  int64_t workspace_bytes = 0;  // largest scratch memory of an operation
  int64_t plan_cache_hits = 0;
  int64_t plan_count = 0;
  bool program_cache_hit = false;  // no path was searched
  int64_t gathered_bytes = 0;      // as in ExecutionReport
  bool replayed = false;  // queued at once, by the recording of an earlier run
  absl::Duration queued;
  absl::Duration executed;
  absl::Duration prepared;  // reading the notation and searching paths
  /// Of every SVD that was needed, in the order of statements.
  std::vector<KeptExtent> kept_extents;
};

/// A tensor on the server or, when it was asked for inline, its elements.
struct ProgramResult {
  std::string name;                    // as the program calls it
  std::optional<RemoteTensor> tensor;  // absent: it came inline
  ElementType element_type = ElementType::kUnspecified;
  Layout layout;                 // with explicit strides
  std::vector<std::byte> bytes;  // of what came inline, as `layout` says

  /// All elements: those of a tensor as RemoteTensor::Download() orders them,
  /// those that came inline as the layout does.
  ///
  /// Errors  INVALID_ARGUMENT: T is not the element type. Those of
  ///         DownloadTensor.
  template <Element T>
  requires(!std::same_as<T, bool>) absl::StatusOr<std::vector<T>> Download(
      const DownloadOptions& options = {})
  const {
    std::vector<T> elements(ElementCount(layout.extents));
    const absl::Status status =
        DownloadTo(kElementTypeOf<T>,
                   std::as_writable_bytes(std::span<T>(elements)), options);
    if (!status.ok()) return status;
    return elements;
  }

  /// The same into memory of the caller's.
  ///
  /// Requires  `to` is as long as all elements together.
  absl::Status DownloadTo(ElementType wanted, std::span<std::byte> to,
                          const DownloadOptions& options = {}) const;
};

/// What one run gave.
struct ProgramResults {
  /// In the order in which they were asked for, or made.
  std::vector<ProgramResult> results;
  ProgramReport report;

  /// The result of that name; null: there is none. Lifetime  as this.
  const ProgramResult* Find(std::string_view name) const;

  /// Gives the tensor of that name away.
  ///
  /// Errors  NOT_FOUND (`RESULT_NOT_FOUND`): no result is called so, or it came
  ///         inline, or was taken before.
  absl::StatusOr<RemoteTensor> Take(std::string_view name);
};

/// One operation of a program.
struct ProgramOperation {
  int statement = 0;        // from 0
  std::string operation;    // `permute`, `elementwise`, `reduce` or `contract`
  std::string text;         // e.g. `t2[a,c] = t1[a,b]*C[b,c]`
  std::string kernel;       // empty when there is nothing to compute
  int64_t slice_count = 1;  // times that it is carried out
  double flops = 0;         // of one slice
  double predicted_nanoseconds = 0;  // of one slice
  int64_t workspace_bytes = 0;
  bool is_folded = false;  // depends on constants alone: carried out once
};

/// A factor of a product, or what a step makes of others.
struct TreeNode {
  std::string name;  // of a factor
  std::vector<std::string> labels;
  std::vector<int64_t> extents;
  std::vector<int> children;  // of what a step makes: the nodes it multiplies
  double flops = 0;           // of its step, in all slices
};

/// A product of three factors or more, and the order in which it is contracted.
struct ProgramProduct {
  int statement = 0;
  std::vector<TreeNode> nodes;  // factors, then steps; the last is the product
  std::vector<std::string> sliced;  // labels that are taken index by index
  int64_t slice_count = 1;
  std::string method;  // e.g. `optimal`, or `given`
  double flops = 0;    // of all slices
  double largest = 0;  // elements of the largest result of a step, in one slice
  /// Multiplications in terms of the variable of PathOptions.costs, if given.
  std::string symbolic_cost;
};

/// How a program would run.
struct ProgramExplanation {
  std::vector<ProgramOperation> operations;
  std::vector<ProgramProduct> products;
  double flops = 0;        // of all slices
  int64_t peak_bytes = 0;  // most of intermediate results at a time
  int64_t kept_bytes = 0;  // of what depends on constants alone
  int64_t workspace_bytes = 0;
  double predicted_nanoseconds = 0;  // of all slices
  std::string text;                  // all of this for people
};

/// What an operand of a prepared program has to be like, or an output will be.
struct ProgramTensor {
  std::string name;
  ElementType element_type = ElementType::kUnspecified;
  Layout layout;                 // with explicit strides
  std::optional<Scalar> scalar;  // of a number, which has no type or layout
  bool is_written = false;       // of an operand
  bool is_constant = false;      // of an operand
};

/// What a prepared program was when the server was asked last.
struct ProgramInfo {
  std::string name;  // `sessions/{session}/programs/{program}`
  ProgramSource source = "";
  std::string device;
  std::vector<ProgramTensor> operands;
  std::vector<ProgramTensor> outputs;
  ProgramExplanation explanation;
  int64_t execution_count = 0;
};

/// What one run of a prepared program brings along.
struct ProgramExecution {
  /// By `name`; only `tensor_name` and `is_inline` are used. Empty: as
  /// prepared.
  std::vector<ProgramOutput> outputs;
  std::optional<absl::Duration> deadline;
};

/// A program whose notation is read and whose paths are found, for operands
/// like those it was made for. Leaves the server with this handle. Keeps the
/// session open.
///
///   auto program = session.PrepareProgram("D[i,k] := x*A[i,j]*B[j,k]",
///                                         {{"A", a}, {"B", b}, {"x", 1.0}});
///   for (...) results = program->Run({{"A", c}, {"B", d}});
///
/// Threads   const methods may be called concurrently.
/// Owner     whoever holds it; a moved-from handle holds nothing.
/// Lifetime  may outlive the Session that made it.
class PreparedProgram {
 public:
  const std::string& name() const { return info_.name; }
  /// As it was when it was made.
  const ProgramInfo& info() const { return info_; }
  absl::StatusOr<ProgramInfo> Describe() const;

  /// Operands by name, or all in their order. Numbers and constants that are
  /// left out are those it was made with.
  ///
  /// Errors  those of ExecuteProgram: INVALID_ARGUMENT,
  ///         `PROGRAM_OPERAND_DIFFERS`.
  absl::StatusOr<ProgramResults> Run(
      ProgramOperands operands, const ProgramExecution& options = {}) const;

  /// Leaves the program on the server until its session ends.
  void Release() { handle_.Release(); }

  /// Deletes it now. Runs that have begun go on.
  absl::Status Delete();

 private:
  friend class Session;

  PreparedProgram(std::shared_ptr<internal::Connection> connection,
                  ProgramInfo info)
      : handle_(std::move(connection), info.name, /*is_owned=*/true),
        info_(std::move(info)) {}

  internal::Handle handle_;
  ProgramInfo info_;
};

}  // namespace tensord
