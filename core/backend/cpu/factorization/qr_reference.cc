#include "core/backend/cpu/factorization/qr_reference.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/backend/cpu/factorization/matrix.h"

namespace tensord::core {
namespace {

using P = FactorizationProblem;

constexpr double kNanosecondsPerFlop = 1;
constexpr double kLaunchNanoseconds = 1000;

/// One reflection, x - factor * v * (v^H x), on the last `length` rows.
template <typename W>
struct Reflection {
  const W* v;
  int64_t length;
  double factor;  // 0: nothing to reflect

  void Apply(W* x) const {
    W product = 0;
    for (int64_t i = 0; i < length; ++i) product += Conjugated(v[i]) * x[i];
    for (int64_t i = 0; i < length; ++i) x[i] -= factor * product * v[i];
  }
};

/// Makes v the reflection that takes x to a multiple of the first unit vector.
template <typename W>
Reflection<W> ReflectionOf(const W* x, int64_t length, W* v) {
  double scale = 0;
  for (int64_t i = 0; i < length; ++i) {
    // A NaN stays one.
    const double size = std::abs(x[i]);
    if (!(size <= scale)) scale = size;
  }
  if (scale == 0) return {v, length, 0};
  double square = 0;
  for (int64_t i = 0; i < length; ++i) {
    v[i] = x[i] / scale;
    square += std::norm(v[i]);
  }
  // Away from x's own first element, so that nothing cancels.
  v[0] += PhaseOf(v[0]) * std::sqrt(square);
  double of_v = 0;
  for (int64_t i = 0; i < length; ++i) of_v += std::norm(v[i]);
  return {v, length, 2 / of_v};
}

class ReferenceQrSolution final : public FactorizationSolution {
 public:
  explicit ReferenceQrSolution(const P& problem)
      : Solution(Predict(problem), RoomBytes(problem)),
        problem_(problem),
        extents_(problem) {}

  std::string decision() const override { return "reflection by reflection"; }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(problem_);
  }
  absl::Status Launch(const FactorizationOperands& operands,
                      Workspace& workspace, Stream&) const override {
    VisitMatrixType(problem_.type, [&]<typename T>(T) {
      const Room<Wide<T>> room{
          .matrix = workspace.Take<Wide<T>>(extents_.rows * extents_.columns),
          .reflections =
              workspace.Take<Wide<T>>(extents_.rows * extents_.inner),
          .q = workspace.Take<Wide<T>>(extents_.rows * extents_.inner),
          .phases = workspace.Take<Wide<T>>(extents_.inner),
          .factors = workspace.Take<double>(extents_.inner)};
      ForEachElement(problem_.batch, [&](const auto& at) {
        Factor(room, static_cast<const T*>(operands.a) + at[P::kBatchA],
               static_cast<T*>(operands.left) + at[P::kBatchLeft],
               static_cast<T*>(operands.right) + at[P::kBatchRight]);
      });
    });
    return absl::OkStatus();
  }

 private:
  template <typename W>
  struct Room {
    W* matrix;        // by columns; so reflections and q
    W* reflections;   // (row, k)
    W* q;             // (row, k)
    W* phases;        // (k)
    double* factors;  // (k)
  };

  static int64_t RoomBytes(const P& problem) {
    const MatrixExtents extents(problem);
    const int64_t element = IsComplex(problem.type) ? 16 : 8;
    return Workspace::BytesFor(extents.rows * extents.columns * element) +
           2 * Workspace::BytesFor(extents.rows * extents.inner * element) +
           Workspace::BytesFor(extents.inner * element) +
           Workspace::BytesFor(extents.inner * 8);
  }
  static double Predict(const P& problem) {
    return kLaunchNanoseconds + kNanosecondsPerFlop * FlopCount(problem);
  }

  template <typename T, typename W>
  void Factor(const Room<W>& room, const T* a, T* q, T* r) const {
    const int64_t rows = extents_.rows;
    LoadMatrix(problem_, a, room.matrix);
    const auto reflection = [&](int64_t k) {
      return Reflection<W>{room.reflections + k * rows, rows - k,
                           room.factors[k]};
    };
    for (int64_t k = 0; k < extents_.inner; ++k) {
      room.factors[k] = ReflectionOf(room.matrix + k + k * rows, rows - k,
                                     room.reflections + k * rows)
                            .factor;
      for (int64_t column = k; column < extents_.columns; ++column) {
        if (room.factors[k] == 0) break;
        reflection(k).Apply(room.matrix + k + column * rows);
      }
    }
    StoreR(problem_, extents_, room.matrix, room.phases, r);
    std::fill_n(room.q, rows * extents_.inner, W(0));
    for (int64_t column = 0; column < extents_.inner; ++column) {
      W* const x = room.q + column * rows;
      x[column] = 1;
      for (int64_t k = column; k >= 0; --k) {
        if (room.factors[k] != 0) reflection(k).Apply(x + k);
      }
    }
    StoreQ(problem_, extents_, room.q, room.phases, q);
  }

  const P problem_;
  const MatrixExtents extents_;
};

}  // namespace

std::unique_ptr<const FactorizationSolution> SolveReferenceQr(
    const FactorizationProblem& problem) {
  return std::make_unique<ReferenceQrSolution>(problem);
}

}  // namespace tensord::core
