#include "core/backend/cpu/elementwise_take.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/backend/cpu/block/tile_operand.h"
#include "core/base/status.h"
#include "core/problem/heap_bytes.h"
#include "core/problem/refused_index.h"

namespace tensord::core {
namespace {

using Problem = ElementwiseProblem;

constexpr size_t kA = Problem::kA, kB = Problem::kB, kC = Problem::kC,
                 kD = Problem::kD;

constexpr double kLaunchNanoseconds = 2000;
constexpr double kNanosecondsPerElement = 1;
constexpr double kNanosecondsPerByte = 0.1;

/// The indices that there are not.
///
/// Threads  safe for concurrent use.
class RefusedIndices {
 public:
  void Add(int64_t index) {
    const absl::MutexLock lock(&mutex_);
    const auto [lowest, highest] = range_.value_or(std::pair(index, index));
    range_ = {std::min(lowest, index), std::max(highest, index)};
  }
  absl::Status status(const LoopMode<1>& taken) const {
    const absl::MutexLock lock(&mutex_);
    if (!range_) return absl::OkStatus();
    return IndexOutOfRange(taken, range_->first, range_->second);
  }

 private:
  mutable absl::Mutex mutex_;
  std::optional<std::pair<int64_t, int64_t>> range_ ABSL_GUARDED_BY(mutex_);
};

struct TwoWords {
  uint64_t words[2];
};

constexpr TwoWords kNothing = {};

/// Where a tile lies in a and where its elements go, and its indices: one for
/// each element, or one for each run along i.
struct Places {
  TileLayout from;
  int64_t to_i, to_j;  // strides
  const int64_t* indices;
  bool is_of_runs;
};

/// Takes the elements of a tile, calling miss(index, i, j) for each that is
/// nowhere; of runs that are nowhere for each element.
template <typename Word, typename Miss>
void TakeTile(const Word* a, const LoopMode<1>& taken, const Places& places,
              Word* to, const Miss& miss) {
  const TileLayout& from = places.from;
  const int64_t along = taken.strides[0];
  for (int64_t j = 0; j < from.count_j; ++j) {
    const Word* const row = a + from.offset + j * from.stride_j;
    Word* const to_row = to + j * places.to_j;
    if (places.is_of_runs) {
      int64_t index = places.indices[j];
      if (!FindIndex(taken, index)) {
        for (int64_t i = 0; i < from.count_i; ++i) {
          miss(places.indices[j], i, j);
        }
        continue;
      }
      const Word* const run = row + index * along;
      if (from.stride_i == 1 && places.to_i == 1) {
        std::memcpy(static_cast<void*>(to_row), run,
                    static_cast<size_t>(from.count_i) * sizeof(Word));
        continue;
      }
      for (int64_t i = 0; i < from.count_i; ++i) {
        to_row[i * places.to_i] = run[i * from.stride_i];
      }
      continue;
    }
    const int64_t* const indices = places.indices + j * from.count_i;
    for (int64_t i = 0; i < from.count_i; ++i) {
      int64_t index = indices[i];
      if (FindIndex(taken, index)) {
        to_row[i * places.to_i] = row[i * from.stride_i + index * along];
      } else {
        miss(indices[i], i, j);
      }
    }
  }
}

/// The same of elements of `bytes` bytes.
template <typename Miss>
void TakeTile(int64_t bytes, const void* a, const LoopMode<1>& taken,
              const Places& places, void* to, const Miss& miss) {
  const auto take = [&]<typename Word>(Word /*zero*/) {
    TakeTile(static_cast<const Word*>(a), taken, places, static_cast<Word*>(to),
             miss);
  };
  switch (bytes) {
    case 1: return take(uint8_t{});
    case 2: return take(uint16_t{});
    case 4: return take(uint32_t{});
    case 8: return take(uint64_t{});
    default: return take(TwoWords{});
  }
}

/// Tiles whose elements fit a buffer in the compute type, as they are stored in
/// a, and as indices.
TileSpace<4> TilesOf(const Problem& problem) {
  const int64_t bytes = std::max({SizeOf(problem.compute_element()),
                                  SizeOf(problem.types[kA]), int64_t{8}});
  return CutIntoTiles(problem.modes, kD, kTileBytes / bytes);
}

/// One launch: elements are gathered as they are stored, and then, unless they
/// stay as they are, become terms in T.
template <typename T>
class Taking {
 public:
  Taking(const Problem& problem, const ElementwiseOperands& operands,
         const TileSpace<4>& space)
      : problem_(problem),
        operands_(operands),
        space_(space),
        element_(problem.compute_element()),
        b_(operands.b, {.stored = problem.types[kB],
                        .element = ElementType::kInt64,
                        .compute = ComputeType::kInteger,
                        .unary = problem.unary[kB],
                        .factor = operands.beta}),
        c_(operands.c, OptionsOf(kC, operands.gamma)),
        d_(operands.d, element_, problem.types[kD], Stores::kCached),
        moves_(MovesBits()) {}

  absl::Status Run(ThreadPool& threads) {
    const int64_t bytes = SizeOf(problem_.types[kA]) +
                          SizeOf(problem_.types[kD]) + sizeof(int64_t);
    ParallelRanges(
        threads, space_.tile_count(),
        bytes * space_.loop(0).step * space_.loop(1).step,
        [this](int64_t begin, int64_t end) { RunTiles(begin, end); });
    return refused_.status(problem_.taken);
  }

 private:
  using Options = typename TileInput<T>::Options;

  Options OptionsOf(size_t operand, Scalar factor) const {
    return {.stored = problem_.types[operand],
            .element = element_,
            .compute = problem_.compute_type,
            .unary = problem_.unary[operand],
            .factor = factor};
  }

  bool MovesBits() const {
    const ElementType type = problem_.types[kD];
    return operands_.alpha.IsOne() && operands_.gamma.IsZero() &&
           problem_.types[kA] == type &&
           problem_.unary[kA] == UnaryOperator::kIdentity &&
           element_ == ComputeElement(type, type, DefaultComputeType(type));
  }

  TileLayout LayoutOf(size_t operand, const TileSpace<4>::Offsets& offsets,
                      const TileSpace<4>::Sizes& sizes) const {
    return {.offset = offsets[operand],
            .count_i = sizes[0],
            .count_j = sizes[1],
            .stride_i = space_.loop(0).strides[operand],
            .stride_j = space_.loop(1).strides[operand]};
  }

  void RunTiles(int64_t begin, int64_t end) {
    TileBuffer<int64_t> index_buffer, index_scratch;
    TileBuffer<T> x_buffer, z_buffer, scratch;
    TileBuffer<std::byte> stored, misses;
    const int64_t size_a = SizeOf(problem_.types[kA]);
    const int64_t size_d = SizeOf(problem_.types[kD]);
    const TileInput<T> a(stored.data(), OptionsOf(kA, operands_.alpha));
    const bool is_filled = !operands_.gamma.IsZero();
    space_.ForEach(begin, end, [&](const auto& offsets, const auto& sizes) {
      TileLayout of_b = LayoutOf(kB, offsets, sizes);
      const TileLayout of_d = LayoutOf(kD, offsets, sizes);
      Places places{.from = LayoutOf(kA, offsets, sizes),
                    .to_i = 1,
                    .to_j = of_d.count_i,
                    .indices = nullptr,
                    .is_of_runs = of_b.stride_i == 0};
      if (places.is_of_runs) of_b.count_i = 1;
      places.indices = b_.Load(of_b, index_buffer.data(), index_scratch);
      const auto refuse = [&](int64_t index, int64_t, int64_t) {
        refused_.Add(index);
      };
      if (moves_) {
        places.to_i = of_d.stride_i;
        places.to_j = of_d.stride_j;
        TakeTile(size_d, operands_.a, problem_.taken, places,
                 static_cast<std::byte*>(operands_.d) + of_d.offset * size_d,
                 refuse);
        return;
      }
      LoopMode<1> taken = problem_.taken;
      const void* source = operands_.a;
      if (operands_.alpha.IsZero()) {
        // Which indices there are is all that is asked.
        places.from.offset = places.from.stride_i = places.from.stride_j = 0;
        taken.strides[0] = 0;
        source = &kNothing;
      }
      std::fill_n(stored.data(), of_d.count() * size_a, std::byte{0});
      if (is_filled) {
        std::fill_n(misses.data(), of_d.count(), std::byte{0});
        TakeTile(size_a, source, taken, places, stored.data(),
                 [&](int64_t, int64_t i, int64_t j) {
                   misses.data()[j * of_d.count_i + i] = std::byte{1};
                 });
      } else {
        TakeTile(size_a, source, taken, places, stored.data(), refuse);
      }
      const TileLayout packed{.offset = 0,
                              .count_i = of_d.count_i,
                              .count_j = of_d.count_j,
                              .stride_i = 1,
                              .stride_j = of_d.count_i};
      const T* x = a.Load(packed, x_buffer.data(), scratch);
      if (is_filled) {
        const T* const z =
            c_.Load(LayoutOf(kC, offsets, sizes), z_buffer.data(), scratch);
        for (int64_t k = 0; k < of_d.count(); ++k) {
          x_buffer.data()[k] = misses.data()[k] == std::byte{0} ? x[k] : z[k];
        }
        x = x_buffer.data();
      }
      d_.Store(x, of_d, scratch);
    });
  }

  const Problem& problem_;
  const ElementwiseOperands& operands_;
  const TileSpace<4>& space_;
  const ElementType element_;
  const TileInput<int64_t> b_;
  const TileInput<T> c_;
  const TileOutput<T> d_;
  const bool moves_;  // bits, from a to d
  RefusedIndices refused_;
};

double PredictNanoseconds(const Problem& problem) {
  const int64_t bytes = SizeOf(problem.types[kA]) + SizeOf(problem.types[kD]);
  return kLaunchNanoseconds +
         static_cast<double>(ElementCount(problem.modes)) *
             (kNanosecondsPerElement +
              kNanosecondsPerByte * static_cast<double>(bytes));
}

class TakeSolution final : public ElementwiseSolution {
 public:
  TakeSolution(const Problem& problem, ThreadPool& threads)
      : Solution(PredictNanoseconds(problem)),
        threads_(threads),
        problem_(problem),
        tiles_(TilesOf(problem)) {}

  std::string decision() const override {
    return absl::StrCat(tiles_.tile_count(), " tiles, by indices below ",
                        problem_.taken.extent);
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(problem_) +
           tiles_.heap_bytes();
  }
  absl::Status Launch(const ElementwiseOperands& operands, Workspace&,
                      Stream&) const override {
    return VisitComputeElement(problem_.compute_element(), [&](auto zero) {
      return Taking<decltype(zero)>(problem_, operands, tiles_).Run(threads_);
    });
  }

 private:
  ThreadPool& threads_;
  const Problem problem_;
  const TileSpace<4> tiles_;
};

}  // namespace

std::unique_ptr<const ElementwiseKernel> CreateTakeElementwise(
    ThreadPool& threads) {
  return std::make_unique<SimpleElementwise>(
      "cpu.elementwise.take",
      [&](const Problem& problem) -> ElementwiseKernel::Solved {
        if (!problem.is_take()) {
          return Unimplemented("NOTHING_TO_TAKE", "it is for TAKE alone");
        }
        return std::make_unique<TakeSolution>(problem, threads);
      });
}

}  // namespace tensord::core
