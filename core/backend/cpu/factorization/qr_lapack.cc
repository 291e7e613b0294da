#include "core/backend/cpu/factorization/qr_lapack.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/backend/cpu/factorization/lapack.h"
#include "core/backend/cpu/factorization/matrix.h"
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
      : LapackQrSolution(problem, MatrixExtents(problem), threads, lapack) {}

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
    VisitMatrixType(problem_.type,
                    [&]<typename T>(T) { FactorAll<T>(operands, workspace); });
    return absl::OkStatus();
  }

 private:
  LapackQrSolution(const P& problem, const MatrixExtents& extents,
                   ThreadPool& threads, const Lapack& lapack)
      : Solution(Predict(problem, extents, Teams(problem, threads)),
                 Teams(problem, threads) * RoomBytes(problem, extents)),
        problem_(problem),
        extents_(extents),
        teams_(Teams(problem, threads)),
        call_flops_(CallFlops(problem.type)),
        panel_(PanelOf(extents, call_flops_)),
        threads_(threads),
        lapack_(lapack) {
    for (const auto& mode : problem.batch) matrices_.Add(mode);
  }

  /// Matrices that are under way at a time.
  static int64_t Teams(const P& problem, const ThreadPool& threads) {
    return std::min<int64_t>(ElementCount(problem.batch),
                             threads.thread_count());
  }
  /// Workspace of each: the matrix, tau, the phases and LAPACK's scratch.
  static int64_t RoomBytes(const P& problem, const MatrixExtents& extents) {
    const int64_t element = SizeOf(problem.type);
    return Workspace::BytesFor(extents.rows * extents.columns * element) +
           2 * Workspace::BytesFor(extents.inner * element) +
           Workspace::BytesFor(
               Lapack::ScratchFor(extents.columns, extents.inner) * element);
  }
  /// What takes 20 ms: a call that is under way cannot be interrupted.
  static int64_t CallFlops(ElementType type) {
    const bool is_single = RealPartOf(type) == ElementType::kFloat32;
    const double flops = 20e6 * kFlopsPerNanosecond * (is_single ? 2 : 1);
    return static_cast<int64_t>(flops / (IsComplex(type) ? 4 : 1));
  }
  static int64_t PanelOf(const MatrixExtents& extents, int64_t call_flops) {
    constexpr int64_t kWidest = 128;
    const auto flops = [&](int64_t columns) {  // to factorize a panel
      return 2.0 * static_cast<double>(extents.rows) *
             static_cast<double>(columns * columns);
    };
    int64_t panel = extents.inner;
    if (flops(panel) <= static_cast<double>(call_flops)) return panel;
    panel = std::min(panel, kWidest);
    while (panel > 1 && flops(panel) > static_cast<double>(call_flops)) {
      panel /= 2;
    }
    return panel;
  }
  static double Predict(const P& problem, const MatrixExtents& extents,
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

  /// What the factorization of one matrix works in.
  template <typename T>
  struct Room {
    T* matrix;  // by columns, without gaps
    T* tau;
    T* phases;
    Lapack::Scratch<T> scratch;
  };

  template <typename T>
  void FactorAll(const FactorizationOperands& operands,
                 Workspace& workspace) const {
    std::vector<Room<T>> rooms;
    const int64_t scratch =
        Lapack::ScratchFor(extents_.columns, extents_.inner);
    for (int64_t team = 0; team < teams_; ++team) {
      rooms.push_back(
          {.matrix = workspace.Take<T>(extents_.rows * extents_.columns),
           .tau = workspace.Take<T>(extents_.inner),
           .phases = workspace.Take<T>(extents_.inner),
           .scratch = {workspace.Take<T>(scratch), static_cast<int>(scratch)}});
    }
    const auto factor = [&](int64_t team) {
      return [&, team](const auto& at, const auto&) {
        Factor(rooms[static_cast<size_t>(team)],
               static_cast<const T*>(operands.a) + at[P::kBatchA],
               static_cast<T*>(operands.left) + at[P::kBatchLeft],
               static_cast<T*>(operands.right) + at[P::kBatchRight]);
      };
    };
    threads_.ParallelFor(matrices_.tile_count(), teams_,
                         [&](int64_t matrix, int64_t team) {
                           matrices_.ForEach(matrix, matrix + 1, factor(team));
                         });
  }
  template <typename T>
  void Factor(const Room<T>& room, const T* a, T* q, T* r) const {
    LoadMatrix(problem_, a, room.matrix);
    const int64_t panels = CeilDivide(extents_.inner, panel_);
    for (int64_t panel = 0; panel < panels; ++panel) {
      if (CurrentWork::ShouldStop()) return;
      const Lapack::Columns<T> own = Panel(room, panel);
      T* const tau = room.tau + panel * panel_;
      lapack_.FactorQr(own, tau, room.scratch);
      ApplyToRest(room, own, tau, true, extents_.columns);
    }
    StoreR(problem_, extents_, room.matrix, room.phases, r);
    for (int64_t panel = panels - 1; panel >= 0; --panel) {
      if (CurrentWork::ShouldStop()) return;
      const Lapack::Columns<T> own = Panel(room, panel);
      T* const tau = room.tau + panel * panel_;
      const int64_t first = panel * panel_;
      // What reflectors after it have made begins below it.
      for (int64_t c = first + own.columns; c < extents_.inner; ++c) {
        std::fill_n(room.matrix + c * extents_.rows + first, own.columns, T(0));
      }
      ApplyToRest(room, own, tau, false, extents_.inner);
      lapack_.FormQ(own, tau, room.scratch);
    }
    StoreQ(problem_, extents_, room.matrix, room.phases, q);
  }
  /// Columns of a panel, from its diagonal down.
  template <typename T>
  Lapack::Columns<T> Panel(const Room<T>& room, int64_t panel) const {
    const int64_t first = panel * panel_;
    return {
        .rows = static_cast<int>(extents_.rows - first),
        .columns = static_cast<int>(std::min(panel_, extents_.inner - first)),
        .a = room.matrix + first * (extents_.rows + 1),
        .line = static_cast<int>(extents_.rows)};
  }
  /// Applies the reflectors of a panel to the columns behind it, to before
  /// column `end` of the matrix.
  template <typename T>
  void ApplyToRest(const Room<T>& room, const Lapack::Columns<T>& panel,
                   const T* tau, bool adjoint, int64_t end) const {
    const int64_t first = extents_.rows - panel.rows;
    const int64_t slab =
        std::max<int64_t>(1, call_flops_ / (4 * panel.rows * panel.columns));
    for (int64_t c = first + panel.columns; c < end; c += slab) {
      if (CurrentWork::ShouldStop()) return;
      lapack_.ApplyQ(panel, tau, adjoint,
                     {.rows = panel.rows,
                      .columns = static_cast<int>(std::min(slab, end - c)),
                      .a = room.matrix + c * extents_.rows + first,
                      .line = panel.line},
                     room.scratch);
    }
  }

  const P problem_;
  const MatrixExtents extents_;
  const int64_t teams_;
  const int64_t call_flops_;  // of a call of LAPACK
  const int64_t panel_;       // columns
  TileSpace<4> matrices_;     // of the batch
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
    if (problem.method != FactorizationMethod::kQr) {
      return Unimplemented("OTHER_METHOD", NameOf(problem.method),
                           " is wanted, this is qr");
    }
    if (!lapack_.ok()) {
      return Unimplemented("NO_LAPACK", lapack_.status().message());
    }
    const MatrixExtents extents(problem);
    constexpr int64_t kMost = std::numeric_limits<int>::max();
    if (extents.rows > kMost ||
        Lapack::ScratchFor(extents.columns, extents.inner) > kMost) {
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
