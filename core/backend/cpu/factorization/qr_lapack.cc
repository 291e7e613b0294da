#include "core/backend/cpu/factorization/qr_lapack.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/backend/cpu/factorization/lapack.h"
#include "core/backend/cpu/factorization/qr_matrix.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

using P = FactorizationProblem;

constexpr double kLaunchNanoseconds = 1000;
/// Of one thread, in float64; float32 is twice as fast.
constexpr double kFlopsPerNanosecond = 10;
constexpr double kNanosecondsPerElement = 3;  // to copy in and out

class LapackQrSolution final : public FactorizationSolution {
 public:
  LapackQrSolution(const P& problem, ThreadPool& threads, const Lapack& lapack)
      : LapackQrSolution(problem, QrExtents(problem), threads, lapack) {}

  std::string decision() const override {
    const std::string each =
        absl::StrCat(extents_.rows, " x ", extents_.columns);
    const int64_t count = matrices_.tile_count();
    if (count == 1) return absl::StrCat("a matrix of ", each, ", copied first");
    return absl::StrCat(count, " matrices of ", each, ", copied first, ",
                        teams_, " at a time");
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(problem_) +
           matrices_.heap_bytes();
  }
  absl::Status Launch(const FactorizationOperands& operands,
                      Workspace& workspace, Stream&) const override {
    VisitFactorizationType(problem_.type, [&]<typename T>(T) {
      FactorAll<T>(operands, workspace);
    });
    return absl::OkStatus();
  }

 private:
  LapackQrSolution(const P& problem, const QrExtents& extents,
                   ThreadPool& threads, const Lapack& lapack)
      : Solution(Predict(problem, extents, Teams(problem, threads)),
                 Teams(problem, threads) * RoomBytes(problem, extents)),
        problem_(problem),
        extents_(extents),
        teams_(Teams(problem, threads)),
        threads_(threads),
        lapack_(lapack) {
    for (const auto& mode : problem.batch) matrices_.Add(mode);
  }

  static int64_t Block(const QrExtents& extents) {
    return std::min<int64_t>(Lapack::kBlock, extents.inner);
  }
  /// Matrices that are under way at a time.
  static int64_t Teams(const P& problem, const ThreadPool& threads) {
    return std::min<int64_t>(ElementCount(problem.batch),
                             threads.thread_count());
  }
  /// Workspace of each: the matrix, tau, the phases and LAPACK's scratch.
  static int64_t RoomBytes(const P& problem, const QrExtents& extents) {
    const int64_t element = SizeOf(problem.type);
    return Workspace::BytesFor(extents.rows * extents.columns * element) +
           2 * Workspace::BytesFor(extents.inner * element) +
           Workspace::BytesFor(extents.columns * Block(extents) * element);
  }
  static double Predict(const P& problem, const QrExtents& extents,
                        int64_t teams) {
    const double elements = static_cast<double>(ElementCount(problem.batch)) *
                            static_cast<double>(extents.rows) *
                            static_cast<double>(extents.columns);
    const bool is_single = RealPartOf(problem.type) == ElementType::kFloat32;
    const double rate = kFlopsPerNanosecond * (is_single ? 2 : 1);
    return kLaunchNanoseconds +
           (FlopCount(problem) / rate + 2 * kNanosecondsPerElement * elements) /
               static_cast<double>(teams);
  }

  template <typename T>
  void FactorAll(const FactorizationOperands& operands,
                 Workspace& workspace) const {
    std::vector<Lapack::QrArguments<T>> rooms;
    std::vector<T*> phases;
    for (int64_t team = 0; team < teams_; ++team) {
      rooms.push_back(
          {.rows = static_cast<int>(extents_.rows),
           .columns = static_cast<int>(extents_.columns),
           .block = static_cast<int>(Block(extents_)),
           .a = workspace.Take<T>(extents_.rows * extents_.columns),
           .tau = workspace.Take<T>(extents_.inner),
           .scratch = workspace.Take<T>(extents_.columns * Block(extents_))});
      phases.push_back(workspace.Take<T>(extents_.inner));
    }
    const int64_t count = matrices_.tile_count();
    threads_.ParallelFor(teams_, [&](int64_t team) {
      matrices_.ForEach(
          count * team / teams_, count * (team + 1) / teams_,
          [&](const auto& at, const auto&) {
            Factor(rooms[team], phases[team],
                   static_cast<const T*>(operands.a) + at[P::kBatchA],
                   static_cast<T*>(operands.q) + at[P::kBatchQ],
                   static_cast<T*>(operands.r) + at[P::kBatchR]);
          });
    });
  }
  template <typename T>
  void Factor(Lapack::QrArguments<T> room, T* phases, const T* a, T* q,
              T* r) const {
    LoadMatrix(problem_, a, room.a);
    lapack_.FactorQr(room);
    StoreR(problem_, extents_, room.a, phases, r);
    room.columns = static_cast<int>(extents_.inner);
    lapack_.FormQ(room);
    StoreQ(problem_, extents_, room.a, phases, q);
  }

  const P problem_;
  const QrExtents extents_;
  const int64_t teams_;
  TileSpace<3> matrices_;  // of the batch
  ThreadPool& threads_;
  const Lapack& lapack_;
};

class LapackQr final : public FactorizationKernel {
 public:
  LapackQr(ThreadPool& threads,
           absl::StatusOr<std::shared_ptr<const Blas>> blas)
      : threads_(threads),
        lapack_(blas.ok() ? Lapack::Find(**blas) : blas.status()) {}

  absl::string_view name() const override { return "cpu.factorize.lapack"; }

  Solved Solve(const P& problem) const override {
    if (!lapack_.ok()) {
      return Unimplemented("NO_LAPACK", lapack_.status().message());
    }
    const QrExtents extents(problem);
    constexpr int64_t kMost = std::numeric_limits<int>::max();
    if (extents.rows > kMost || extents.columns > kMost / Lapack::kBlock) {
      return Unimplemented("MATRIX_TOO_LARGE", "the matrix has ", extents.rows,
                           " x ", extents.columns,
                           " elements, LAPACK counts to ", kMost);
    }
    return std::make_unique<LapackQrSolution>(problem, threads_, *lapack_);
  }

 private:
  ThreadPool& threads_;
  const absl::StatusOr<Lapack> lapack_;
};

}  // namespace

std::unique_ptr<const FactorizationKernel> CreateLapackQr(
    ThreadPool& threads, absl::StatusOr<std::shared_ptr<const Blas>> blas) {
  return std::make_unique<LapackQr>(threads, std::move(blas));
}

}  // namespace tensord::core
