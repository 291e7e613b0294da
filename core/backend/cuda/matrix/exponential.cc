#include "core/backend/cuda/matrix/exponential.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/backend/cuda/kernel/matrix/exponential_tasks.h"
#include "core/backend/cuda/matrix/copy_modes.h"
#include "core/backend/cuda/matrix/elimination.h"
#include "core/backend/cuda/matrix/matrix_run.h"
#include "core/backend/cuda/matrix/solve_copies.h"
#include "core/base/status.h"
#include "core/device/interruption.h"
#include "core/problem/exponential.h"
#include "core/problem/heap_bytes.h"
#include "core/problem/refused_matrix.h"

namespace tensord::core::cuda {
namespace {

using P = LinearSolveProblem;

/// Guesses: not fitted to measurements yet.
double Predict(const P& problem, bool is_batched) {
  constexpr double kWaits = 150e3, kSolving = 30e3, kPerColumn = 5e3;
  constexpr double kFlopsPerNanosecond = 15e3, kBatchedFlopsPerNanosecond = 3e3;
  const SolveShape shape(problem);
  const bool is_single = RealPartOf(problem.type) == ElementType::kFloat32;
  const double flops = FlopCount(problem) / (is_single ? 2 : 1);
  if (is_batched) return kWaits + kSolving + flops / kBatchedFlopsPerNanosecond;
  return kWaits +
         static_cast<double>(shape.count) *
             (kSolving + kPerColumn * static_cast<double>(shape.n)) +
         flops / kFlopsPerNanosecond;
}

// The norms that are asked for: of A, A^2, A^4 and A^6, or of powers of its
// absolute values.
constexpr int kNorms = 4;
constexpr int kMostPower = 27;

class ExponentialSolution final : public LinearSolveSolution {
 public:
  ExponentialSolution(const P& problem, const SolverLibrary& library,
                      SolveCopies copies, const Elimination& elimination,
                      bool is_batched)
      : Solution(Predict(problem, is_batched) + copies.nanoseconds(),
                 OwnBytes(problem, elimination) + copies.workspace_bytes()),
        problem_(problem),
        shape_(problem),
        library_(library),
        copies_(std::move(copies)),
        elimination_(elimination) {}

  std::string decision() const override {
    const std::string each = absl::StrCat(shape_.n, " x ", shape_.n);
    if (shape_.count == 1) {
      return absl::StrCat("exponential of ", NameOf(problem_.structure),
                          " matrix of ", each, ", copied first");
    }
    return absl::StrCat("exponential of ", shape_.count, " ",
                        NameOf(problem_.structure), " matrices of ", each,
                        ", copied first");
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(problem_) +
           copies_.heap_bytes();
  }
  absl::Status Launch(const LinearSolveOperands& operands, Workspace& workspace,
                      Stream& stream) const override {
    TENSORD_ASSIGN_OR_RETURN(
        MatrixRun run,
        MatrixRun::Begin(library_, shape_.count, workspace, AsCuda(stream)));
    Choices choices;  // read until all is done
    TENSORD_RETURN_IF_ERROR(
        QueueLong(predicted_nanoseconds(), run.stream().device(), [&] {
          return VisitSolverType(problem_.type, [&]<typename T>(T) {
            return Work<T>(*this, workspace, run)
                .Compute(operands, workspace, choices);
          });
        }));
    TENSORD_ASSIGN_OR_RETURN(const std::vector<MatrixOutcome> all, run.Await());
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].info > 0) {
        return NotSolvable(MatrixStructure::kGeneral, Named(i), all[i].info);
      }
    }
    return absl::OkStatus();
  }

 private:
  /// How all matrices of a batch are computed.
  struct Choices {
    int degree = 3;
    std::vector<int32_t> before, behind;  // (matrix): powers of two
    std::vector<int32_t> squarings;       // (matrix)
    /// (matrix): whether, as 0 or 1; empty: none is.
    std::vector<int32_t> is_balanced;

    int most_squarings() const { return *std::ranges::max_element(squarings); }
  };

  NumberedMatrix Named(size_t i) const {
    return {shape_.n, shape_.n, static_cast<int64_t>(i), shape_.count};
  }
  static constexpr int64_t kMatrices = 7;
  static int64_t OwnBytes(const P& problem, const Elimination& elimination) {
    const SolveShape shape(problem);
    const int64_t element = SizeOf(problem.type);
    constexpr int64_t kDouble = sizeof(double), kInt = sizeof(int32_t);
    return MatrixRun::WorkspaceBytes(shape.count) +
           kMatrices *
               Workspace::BytesFor(shape.n * shape.n * shape.count * element) +
           2 * Workspace::BytesFor(shape.n * shape.count * kDouble) +
           Workspace::BytesFor(kMostPower * shape.count * kDouble) +
           2 * Workspace::BytesFor(shape.count * kInt) +
           3 * Workspace::BytesFor(shape.n * shape.count * kInt) +
           elimination.RoomBytes(problem.type);
  }

  /// One launch.
  template <typename T>
  class Work {
   public:
    Work(const ExponentialSolution& solution, Workspace& workspace,
         MatrixRun& run)
        : solution_(solution), shape_(solution.shape_), run_(run) {
      const int64_t elements = shape_.n * shape_.n * shape_.count;
      for (T** const matrices :
           {&a_, &result_, &a2_, &a4_, &a6_, &rest_, &sum_}) {
        *matrices = workspace.Take<T>(elements);
      }
      for (double*& sums : sums_) {
        sums = workspace.Take<double>(shape_.n * shape_.count);
      }
      norms_ = workspace.Take<double>(kMostPower * shape_.count);
      powers_ = workspace.Take<int32_t>(shape_.count);
      kept_ = workspace.Take<int32_t>(shape_.count);
      for (int32_t** const numbers :
           {&column_exponents_, &row_exponents_, &balance_}) {
        *numbers = workspace.Take<int32_t>(shape_.n * shape_.count);
      }
      room_ = solution.elimination_.template TakeRoom<T>(workspace);
    }

    absl::Status Compute(const LinearSolveOperands& operands,
                         Workspace& workspace, Choices& choices) {
      TENSORD_RETURN_IF_ERROR(LoadMatrices(solution_.problem_,
                                           solution_.copies_, operands.a,
                                           At(a_), workspace, run_));
      TENSORD_RETURN_IF_ERROR(Choose(choices));
      if (Stops()) return absl::OkStatus();
      TENSORD_RETURN_IF_ERROR(choices.degree <= 9
                                  ? QueueQuotientByPowers(choices.degree)
                                  : QueueQuotient13());
      TENSORD_RETURN_IF_ERROR(
          solution_.elimination_.Queue(a_, result_, room_, run_));
      TENSORD_RETURN_IF_ERROR(QueueSquarings(choices));
      if (!choices.is_balanced.empty()) {
        TENSORD_RETURN_IF_ERROR(Unbalance(result_, /*of_kept=*/true));
      }
      return LaunchCopy(*solution_.copies_.d, result_, operands.d, workspace,
                        run_.stream());
    }

   private:
    struct Summand {
      double factor;
      const T* matrices;
    };

    static bool Stops() { return CurrentWork::ShouldStop(); }
    cudaStream_t queue() const { return run_.stream().get(); }
    Matrices At(T* data) const {
      return shape_.MatricesAt(solution_.problem_.type, data);
    }

    /// Leaves the powers that the degree takes, scaled.
    absl::Status Choose(Choices& choices) {
      TENSORD_RETURN_IF_ERROR(ClearNorms());
      TENSORD_RETURN_IF_ERROR(QueueNorm(a_, 0));
      TENSORD_ASSIGN_OR_RETURN(const std::vector<MatrixOutcome> seen,
                               run_.Await());
      for (size_t i = 0; i < seen.size(); ++i) {
        const int left = seen[i].facts.from_not_finite;
        if (left > 0) return NotFinite(solution_.Named(i), shape_.n - left);
      }
      TENSORD_ASSIGN_OR_RETURN(std::vector<double> norms, AwaitNorms(1));
      if (std::ranges::max(norms) > kBalancesAbove) {
        TENSORD_RETURN_IF_ERROR(Balance(norms, choices));
      }
      const bool is_single =
          RealPartOf(solution_.problem_.type) == ElementType::kFloat32;
      std::vector<ExponentialChooser> choosers;
      for (const double norm : norms) {
        choosers.emplace_back(norm, is_single);
        choices.before.push_back(choosers.back().power_before());
      }
      TENSORD_RETURN_IF_ERROR(QueueDivisions(choices.before, {{a_, 1}}));
      TENSORD_RETURN_IF_ERROR(Multiply(a_, a_, a2_));
      TENSORD_RETURN_IF_ERROR(Multiply(a2_, a2_, a4_));
      TENSORD_RETURN_IF_ERROR(Multiply(a2_, a4_, a6_));
      TENSORD_RETURN_IF_ERROR(QueueNorm(a2_, 1));
      TENSORD_RETURN_IF_ERROR(QueueNorm(a4_, 2));
      TENSORD_RETURN_IF_ERROR(QueueNorm(a6_, 3));
      TENSORD_ASSIGN_OR_RETURN(norms, AwaitNorms(kNorms));
      TENSORD_RETURN_IF_ERROR(Decide(norms, choosers, choices));
      if (choices.degree == 9) {
        TENSORD_RETURN_IF_ERROR(Multiply(a4_, a4_, rest_));
      }
      return QueueDivisions(choices.behind,
                            {{a_, 1}, {a2_, 2}, {a4_, 4}, {a6_, 6}});
    }

    /// Balances matrices of large norms, keeps those whose norm is far smaller
    /// then, and leaves that in `norms`.
    absl::Status Balance(std::vector<double>& norms, Choices& choices) {
      // Each halves what is left of the exponents' differences.
      constexpr int kRounds = 24;
      TENSORD_RETURN_IF_ERROR(run_.Check(
          cudaMemsetAsync(
              balance_, 0,
              static_cast<size_t>(shape_.n * shape_.count) * sizeof(int32_t),
              queue()),
          "clearing powers of two"));
      std::vector<int32_t>& is_balanced = choices.is_balanced;
      for (const double norm : norms) {
        is_balanced.push_back(norm > kBalancesAbove ? 1 : 0);
      }
      TENSORD_RETURN_IF_ERROR(Upload(is_balanced, kept_));
      for (int round = 0; round < kRounds; ++round) {
        TENSORD_RETURN_IF_ERROR(
            run_.Check(QueueExponents({.matrices = At(a_),
                                       .of_columns = column_exponents_,
                                       .of_rows = row_exponents_},
                                      queue()),
                       "looking at columns and rows"));
        TENSORD_RETURN_IF_ERROR(
            run_.Check(QueueBalance({.matrices = At(a_),
                                     .wanted = kept_,
                                     .of_columns = column_exponents_,
                                     .of_rows = row_exponents_,
                                     .powers = balance_},
                                    queue()),
                       "balancing matrices"));
      }
      TENSORD_RETURN_IF_ERROR(ClearNorms());
      TENSORD_RETURN_IF_ERROR(QueueNorm(a_, 0));
      TENSORD_ASSIGN_OR_RETURN(const std::vector<double> balanced,
                               AwaitNorms(1));
      for (size_t i = 0; i < norms.size(); ++i) {
        if (balanced[i] * kLeastGain > norms[i]) is_balanced[i] = 0;
        if (is_balanced[i] != 0) norms[i] = balanced[i];
      }
      TENSORD_RETURN_IF_ERROR(Upload(is_balanced, kept_));
      return Unbalance(a_, /*of_kept=*/false);
    }
    absl::Status Unbalance(T* matrices, bool of_kept) {
      return run_.Check(QueueUnbalance({.matrices = At(matrices),
                                        .powers = balance_,
                                        .kept = kept_,
                                        .of_kept = of_kept},
                                       queue()),
                        "undoing the balance");
    }

    /// What each matrix takes; of a batch all have the highest degree.
    absl::Status Decide(const std::vector<double>& norms,
                        std::vector<ExponentialChooser>& choosers,
                        Choices& choices) {
      absl::Status status;
      std::vector<double> logs;  // (power, matrix), once one is wanted
      const auto count = static_cast<size_t>(shape_.count);
      for (size_t i = 0; i < count; ++i) {
        const auto log2_of_power = [&](int power) {
          if (logs.empty() && status.ok()) status = FindLogs(logs);
          return status.ok() ? logs[static_cast<size_t>(power - 1) * count + i]
                             : 0.0;
        };
        ExponentialChooser& chooser = choosers[i];
        if (!chooser.TakesSquare(norms[count + i], log2_of_power) &&
            !chooser.TakesFourth(norms[2 * count + i], log2_of_power)) {
          chooser.TakeSixth(norms[3 * count + i], log2_of_power);
        }
        TENSORD_RETURN_IF_ERROR(status);
        choices.degree = std::max(choices.degree, chooser.choice().degree);
        choices.behind.push_back(chooser.power_behind());
        choices.squarings.push_back(chooser.choice().squarings);
      }
      return absl::OkStatus();
    }

    /// The logarithms of norms of all powers of absolute values.
    absl::Status FindLogs(std::vector<double>& logs) {
      TENSORD_RETURN_IF_ERROR(ClearNorms());
      for (int power = 1; power <= kMostPower; ++power) {
        const bool is_first = power == 1;
        double* const largest = norms_ + (power - 1) * shape_.count;
        TENSORD_RETURN_IF_ERROR(run_.Check(
            QueueSums({.matrices = At(a_),
                       .weights = is_first ? nullptr : sums_[power % 2],
                       .divisors = is_first ? nullptr : largest - shape_.count,
                       .sums = sums_[1 - power % 2],
                       .largest = largest},
                      queue()),
            "summing absolute values"));
      }
      TENSORD_ASSIGN_OR_RETURN(const std::vector<double> largest,
                               AwaitNorms(kMostPower));
      const auto count = static_cast<size_t>(shape_.count);
      logs.resize(largest.size());
      for (size_t i = 0; i < largest.size(); ++i) {
        logs[i] = std::log2(largest[i]);  // of nothing: minus infinity
        if (i >= count) logs[i] += logs[i - count];
      }
      return absl::OkStatus();
    }

    absl::Status ClearNorms() {
      return run_.Check(
          cudaMemsetAsync(
              norms_, 0,
              static_cast<size_t>(kMostPower * shape_.count) * sizeof(double),
              queue()),
          "clearing norms");
    }
    absl::Status QueueNorm(T* matrices, int number) {
      return run_.Check(QueueSums({.matrices = At(matrices),
                                   .largest = norms_ + number * shape_.count},
                                  queue()),
                        "summing absolute values");
    }
    /// The first `count` norms of all matrices.
    absl::StatusOr<std::vector<double>> AwaitNorms(int64_t count) {
      std::vector<double> norms(static_cast<size_t>(count * shape_.count));
      TENSORD_RETURN_IF_ERROR(run_.stream().Await(
          norms.data(), norms_,
          static_cast<int64_t>(norms.size() * sizeof(double))));
      return norms;
    }

    absl::Status Upload(const std::vector<int32_t>& numbers, int32_t* to) {
      return run_.Check(
          cudaMemcpyAsync(to, numbers.data(), numbers.size() * sizeof(int32_t),
                          cudaMemcpyHostToDevice, queue()),
          "bringing numbers of matrices");
    }
    /// Divides matrices by 2^(times * power of each).
    absl::Status QueueDivisions(
        const std::vector<int32_t>& powers,
        std::initializer_list<std::pair<T*, int32_t>> all) {
      if (std::ranges::max(powers) == 0) return absl::OkStatus();
      TENSORD_RETURN_IF_ERROR(Upload(powers, powers_));
      for (const auto& [matrices, times] : all) {
        TENSORD_RETURN_IF_ERROR(run_.Check(
            QueueDivide(
                {.matrices = At(matrices), .powers = powers_, .times = times},
                queue()),
            "scaling matrices"));
      }
      return absl::OkStatus();
    }

    absl::Status Multiply(const T* x, const T* y, T* to) {
      const SolverLibrary::Use& use = run_.use();
      const T one = One<T>(), zero{};
      const int n = static_cast<int>(shape_.n);
      const int64_t stride = shape_.n * shape_.n;
      return ForEachPart(shape_.count, [&](int64_t first, int64_t count) {
        const int64_t at = first * stride;
        return use.Check(use.blas_routines<T>().GemmStridedBatched(
                             use.blas(), CUBLAS_OP_N, CUBLAS_OP_N, n, n, n,
                             &one, x + at, n, stride, y + at, n, stride, &zero,
                             to + at, n, stride, static_cast<int>(count)),
                         "gemmStridedBatched");
      });
    }

    /// The sum becomes factor * identity + the summands.
    absl::Status SetSum(double factor, const std::vector<Summand>& summands) {
      CombineTask task = {.to = At(sum_), .of_identity = factor};
      for (const auto& [own_factor, matrices] : summands) {
        task.factors[task.summand_count] = own_factor;
        task.summands[task.summand_count++] = matrices;
      }
      return run_.Check(QueueCombine(task, queue()), "adding powers");
    }
    /// q in place of the matrices, p in that of the results: the even terms
    /// minus and plus the odd ones.
    absl::Status QueueQuotientByPowers(int degree) {
      const std::vector<double> c = PadeCoefficients(degree);
      const T* const powers[] = {a2_, a4_, a6_, rest_};
      const auto sum = [&](int first) {
        std::vector<Summand> summands;
        for (int k = first + 2; k <= degree; k += 2) {
          summands.push_back({c[k], powers[k / 2 - 1]});
        }
        return SetSum(c[first], summands);
      };
      TENSORD_RETURN_IF_ERROR(sum(1));
      TENSORD_RETURN_IF_ERROR(Multiply(a_, sum_, result_));
      TENSORD_RETURN_IF_ERROR(sum(0));
      return Divide();
    }
    absl::Status QueueQuotient13() {
      const std::vector<double> c = PadeCoefficients(13);
      const auto sum = [&](int first) -> absl::Status {
        TENSORD_RETURN_IF_ERROR(SetSum(
            0,
            {{c[first + 12], a6_}, {c[first + 10], a4_}, {c[first + 8], a2_}}));
        std::swap(sum_, rest_);
        TENSORD_RETURN_IF_ERROR(Multiply(a6_, rest_, sum_));
        return SetSum(c[first], {{1, sum_},
                                 {c[first + 6], a6_},
                                 {c[first + 4], a4_},
                                 {c[first + 2], a2_}});
      };
      TENSORD_RETURN_IF_ERROR(sum(1));
      TENSORD_RETURN_IF_ERROR(Multiply(a_, sum_, result_));
      TENSORD_RETURN_IF_ERROR(sum(0));
      return Divide();
    }
    absl::Status Divide() {
      return run_.Check(
          QueueQuotient({.odd = At(result_), .even = sum_, .minus = a_},
                        queue()),
          "adding odd and even terms");
    }

    /// Those that are to be squared less often wait for the others.
    absl::Status QueueSquarings(const Choices& choices) {
      const int most = choices.most_squarings();
      const bool differ = std::ranges::min(choices.squarings) < most;
      if (differ) {
        TENSORD_RETURN_IF_ERROR(Upload(choices.squarings, powers_));
      }
      for (int done = 0; done < most && !Stops(); ++done) {
        TENSORD_RETURN_IF_ERROR(Multiply(result_, result_, a2_));
        if (differ) {
          TENSORD_RETURN_IF_ERROR(
              run_.Check(QueueFinished({.from = At(result_),
                                        .to = a2_,
                                        .squarings = powers_,
                                        .done = done},
                                       queue()),
                         "keeping what is squared"));
        }
        std::swap(result_, a2_);
      }
      return absl::OkStatus();
    }

    const ExponentialSolution& solution_;
    const SolveShape& shape_;
    MatrixRun& run_;
    T *a_, *result_, *a2_, *a4_, *a6_;
    T* rest_;  // a^8, or for sums
    T* sum_;
    double* sums_[2];  // (matrix, column)
    double* norms_;    // (number, matrix)
    int32_t* powers_;  // (matrix)
    int32_t* kept_;    // (matrix): whether it is balanced
    int32_t *column_exponents_, *row_exponents_;  // (matrix, column or row)
    int32_t* balance_;  // (matrix, column): powers of two
    typename Elimination::Room<T> room_;
  };

  const P problem_;
  const SolveShape shape_;
  const SolverLibrary& library_;
  const SolveCopies copies_;
  const Elimination elimination_;
};

}  // namespace

SimpleLinearSolve::Solved SolveExponential(const P& problem,
                                           const SolverLibrary& library,
                                           const KernelLists& lists,
                                           bool is_batched) {
  const SolveShape shape(problem);
  TENSORD_ASSIGN_OR_RETURN(
      const Elimination elimination,
      Elimination::Make(IsTriangular(problem.structure)
                            ? problem.structure
                            : MatrixStructure::kGeneral,
                        /*has_unit_diagonal=*/false, shape, problem.type,
                        is_batched, library));
  return std::make_unique<ExponentialSolution>(
      problem, library, SolveCopies(problem, lists), elimination, is_batched);
}

}  // namespace tensord::core::cuda
