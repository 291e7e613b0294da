// What operations take and tell. The contract is tensord/v1/compute.proto.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "tensord/element_type.h"
#include "tensord/layout.h"

namespace tensord {

class RemoteTensor;

/// Labels of an operand's modes, one for each: characters of UTF-8, which count
/// by their code points, or any int32.
///
///   Modes("ijk")  is  Modes({'i', 'j', 'k'}),  Modes("\u00d7")  is
///   Modes({215})
struct Modes {
  std::vector<int32_t> labels;

  Modes() = default;
  Modes(std::string_view characters);
  Modes(const char* characters) : Modes(std::string_view(characters)) {}
  Modes(std::initializer_list<int32_t> numbers) : labels(numbers) {}
  explicit Modes(std::vector<int32_t> numbers) : labels(std::move(numbers)) {}

  bool operator==(const Modes&) const = default;
};

/// Applied to each element of an operand. Numbered as in the contract.
enum class UnaryOperator {
  kIdentity = 1,
  kSqrt = 2,
  kRelu = 3,
  kConj = 4,
  kRcp = 5,
  kSigmoid = 6,
  kTanh = 7,
  kExp = 8,
  kLog = 9,
  kAbs = 10,
  kNeg = 11,
  kSin = 12,
  kCos = 13,
  kTan = 14,
  kSinh = 15,
  kCosh = 16,
  kAsin = 17,
  kAcos = 18,
  kAtan = 19,
  kAsinh = 20,
  kAcosh = 21,
  kAtanh = 22,
  kCeil = 23,
  kFloor = 24,
  kMish = 25,
  kSwish = 26,
  kSoftPlus = 27,
  kSoftSign = 28,
  kReal = 29,
  kImag = 30,
};

/// Numbered as in the contract. Reductions take the first four alone.
/// Comparisons give bools; they, kWhere and kTake are for op_abc. kWhere takes
/// elements of a where b is true, and of c elsewhere; kTake those of a at the
/// indices in b, of the mode that a has and d lacks, and of c where an index is
/// out of range. With two operands the indices are the second, and such an
/// index is an error.
enum class BinaryOperator {
  kAdd = 1,
  kMul = 2,
  kMax = 3,
  kMin = 4,
  kDiv = 5,
  kPow = 6,
  kEqual = 7,
  kNotEqual = 8,
  kLess = 9,
  kLessEqual = 10,
  kGreater = 11,
  kGreaterEqual = 12,
  kWhere = 13,
  kTake = 14,
};

/// Precision of the arithmetic, whatever operands are stored in. Numbered as in
/// the contract.
enum class ComputeType {
  kFromElementTypes = 0,
  kFloat16 = 1,
  kBfloat16 = 2,
  kTf32 = 3,
  k3xTf32 = 4,
  kFloat32 = 5,
  kFloat64 = 6,
  kInteger = 7,
};

/// A factor. Rounded to the compute type where it is used.
struct Scalar {
  double real = 0;
  double imaginary = 0;

  Scalar() = default;
  Scalar(double real_part, double imaginary_part = 0)
      : real(real_part), imaginary(imaginary_part) {}
};

/// An input: a tensor, its modes, and an operator that is applied to each of
/// its elements first. A view of the caller's memory is sent with the request,
/// so it must be small, see Limits.max_inline_bytes.
///
/// Lifetime  refers to the tensor or to the view's data, which must outlive the
///           call.
struct Operand {
  Operand(const RemoteTensor& remote, Modes with_modes,
          UnaryOperator op = UnaryOperator::kIdentity)
      : source(&remote), modes(std::move(with_modes)), unary_operator(op) {}
  Operand(UntypedHostView host, Modes with_modes,
          UnaryOperator op = UnaryOperator::kIdentity)
      : source(std::move(host)),
        modes(std::move(with_modes)),
        unary_operator(op) {}

  std::variant<const RemoteTensor*, UntypedHostView> source;
  Modes modes;
  UnaryOperator unary_operator;
};

/// How the server chooses a kernel.
enum class Selection {
  kHeuristic = 1,  // by cost models
  /// By running all that can compute the problem, once. The first call takes
  /// longer and needs memory for a second output.
  kMeasure = 2,
  /// The same bit by bit: each execution of the problem, whoever asks for it,
  /// tries one more kernel.
  kIncremental = 3,
};

/// What every operation can be told. Fields left out take the defaults.
struct ExecutionOptions {
  ComputeType compute_type = ComputeType::kFromElementTypes;
  /// Name of the kernel to use, as Explain...() lists them; "" lets the planner
  /// choose.
  std::string kernel;
  /// Most scratch memory; absent: the server chooses.
  std::optional<int64_t> workspace_limit_bytes;
  /// Pins the kernel choice: the same request gives the same bits.
  bool deterministic = false;
  /// How the kernel is chosen. With `deterministic` it must be kHeuristic.
  Selection selection = Selection::kHeuristic;
  /// An existing tensor that is overwritten; the call then returns a handle
  /// that borrows it. Null: the server allocates a new tensor.
  const RemoteTensor* output = nullptr;
  /// For a new tensor: its name's last part; "" lets the server choose.
  std::string output_name;
  /// For a new tensor: unspecified means the type of c, or else the widest of
  /// the inputs.
  ElementType output_element_type = ElementType::kUnspecified;
  /// For a new tensor: absent means the session's.
  std::optional<Order> output_order;
  /// Absent: the session's default deadline.
  std::optional<absl::Duration> deadline;
};

/// Elements around a result. Along each mode, d has `before` elements of
/// padding, those of the result, and `after` elements of padding. Padding is
/// `value`, rounded to d's type; no operator or factor applies to it.
struct OutputPadding {
  std::vector<int64_t> before;  // (mode of d); empty: all 0
  std::vector<int64_t> after;   // (mode of d); empty: all 0
  Scalar value = 0;
};

/// d = alpha * unary(a), with a's modes in another order, another element type,
/// or broadcast along modes that a lacks.
struct PermuteOptions {
  Scalar alpha = 1;
  OutputPadding padding;
  ExecutionOptions execution;
};

/// d = op_abc(op_ab(alpha * unary(a), beta * unary(b)), gamma * unary(c)),
/// without b: d = op_abc(alpha * unary(a), gamma * unary(c)).
struct ElementwiseOptions {
  Scalar alpha = 1;
  Scalar beta = 1;
  Scalar gamma = 1;
  ExecutionOptions execution;
};

/// Whether indices that sort are asked for. NaN is above all numbers, and equal
/// elements stay as they are to each other. Numbered as in the contract.
enum class Sorting { kNone = 0, kAscending = 1, kDescending = 2 };

/// A mode of a that d has, too: `{'j'}`, or its label as an integer. An element
/// of d is what the operator makes of those of a up to its own index; or, where
/// it sorts, the index of the element that stands there when they are in order,
/// an int64.
struct Along {
  int32_t mode = 0;
  Sorting sorting = Sorting::kNone;
};

/// d = alpha * op(unary(a)) + beta * unary(c), over the modes that d lacks, or
/// along one, and then it lacks none.
struct ReduceOptions {
  Scalar alpha = 1;
  Scalar beta = 0;
  std::optional<Operand> c;
  std::optional<Along> along;
  ExecutionOptions execution;
};

/// d = alpha * a * b + beta * c, summed over every mode that d lacks.
struct ContractOptions {
  Scalar alpha = 1;
  Scalar beta = 0;
  std::optional<Operand> c;
  ExecutionOptions execution;
};

/// Numbered as in the contract.
enum class FactorizationMethod {
  kQr = 1,
  kLq = 2,
  kSvd = 3,
  kEigh = 4,
  kCholesky = 5
};

/// Which factor of an SVD is multiplied by its values; both: by their roots.
/// Numbered as in the contract.
enum class Absorb { kNone = 0, kLeft = 1, kRight = 2, kBoth = 3 };

/// A random sample of a matrix: so many columns more than values are kept, so
/// often multiplied by its adjoint and itself. Equal seeds are equal results.
struct Sampling {
  int64_t oversampling = 10;
  int64_t power_iterations = 2;
  int64_t seed = 0;

  bool operator==(const Sampling&) const = default;
};

/// How many values of an SVD are kept, at least one. 0 cuts nothing.
struct Truncation {
  std::optional<int64_t> rank;   // the most, also of the results' inner mode
  double cutoff = 0;             // values are above it,
  double relative_cutoff = 0;    // and above it times the largest
  double discarded_squares = 0;  // the most that squares of the rest add up to,
  double relative_discarded_squares = 0;  // and as a part of all
  Absorb absorb = Absorb::kNone;
  bool renormalizes = false;  // what is kept has the norm of all
  /// With a rank: the values may be those that a sample finds, where that takes
  /// less.
  std::optional<Sampling> sampling = {};

  bool operator==(const Truncation&) const = default;
};

/// Where one of several results goes. Names mean what they mean in
/// ExecutionOptions.
struct FactorOutput {
  const RemoteTensor* output = nullptr;
  std::string output_name;
  std::optional<Order> output_order;
};

/// Names mean what they mean in ExecutionOptions.
struct FactorizeOptions {
  /// Of Factorize(), kQr or kLq, and of plans.
  FactorizationMethod method = FactorizationMethod::kQr;
  FactorOutput q;       // or l, u, the eigenvectors v
  FactorOutput r;       // or q of LQ, v of an SVD
  FactorOutput values;  // s or w
  Truncation truncation;
  std::string kernel;
  std::optional<int64_t> workspace_limit_bytes;
  bool deterministic = false;
  Selection selection = Selection::kHeuristic;
  std::optional<absl::Duration> deadline;
};

/// What is known of matrices, and which of their elements are read. Numbered as
/// in the contract.
enum class MatrixStructure {
  kGeneral = 1,
  kLowerTriangular = 2,   // that alone
  kUpperTriangular = 3,   // that alone
  kHermitian = 4,         // the lower triangle
  kPositiveDefinite = 5,  // the lower triangle
};

/// a * d = b, or the inverse or exponential of a. The compute type is that of
/// the elements.
struct SolveOptions {
  MatrixStructure structure = MatrixStructure::kGeneral;
  bool has_unit_diagonal = false;  // of a triangle: ones, not read
  ExecutionOptions execution;
};

/// What an operation did.
struct ExecutionReport {
  std::string kernel;  // empty when there was nothing to compute
  bool plan_cache_hit = false;
  int64_t workspace_bytes = 0;
  absl::Duration queued;    // from the request's arrival to its start
  absl::Duration executed;  // on the device
  /// Scratch memory for views: inputs were gathered into it first, or the
  /// result was scattered from it in the end.
  int64_t gathered_bytes = 0;
  /// Of an SVD, how many values were kept, the most of any matrix.
  int64_t kept_extent = 0;
};

struct KernelCandidate {
  std::string kernel;
  std::string refusal;  // why it declines; empty when it could run
  double predicted_nanoseconds = 0;
  int64_t workspace_bytes = 0;
  double measured_nanoseconds = 0;  // the shortest; 0: not timed
  std::string decision;  // what it would do, in one line; empty if it declines
};

/// How an operation would be computed.
struct Explanation {
  std::string kernel;  // the one that the planner takes
  int64_t workspace_bytes = 0;
  double flops = 0;
  int64_t moved_bytes = 0;  // of all operands, each read or written once
  std::vector<KernelCandidate> candidates;  // in the planner's order
  std::string problem;                      // as kernels see it, for people
  bool plan_cache_hit = false;
};

}  // namespace tensord
