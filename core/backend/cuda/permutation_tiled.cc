#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/backend/cuda/permutation_kernels.h"
#include "core/backend/cuda/permutation_words.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

constexpr size_t kA = PermutationWords::kA;
constexpr size_t kD = PermutationWords::kD;

// Of a thread, about.
constexpr int64_t kRegisters = 40;

int64_t TilesAlong(int64_t extent, int64_t side) {
  return (extent + side - 1) / side;
}

/// How many elements a 4-byte word holds that is turned as one; 1 when single
/// elements have to be.
int ElementsPerWord(const PermutationWords& words) {
  const int per_word = 4 / std::max(words.move.word_bytes, 1);
  if (per_word < 2 || !words.move.change.is_move) return 1;
  const size_t in = words.fastest_in();
  for (size_t m = 0; m < words.modes.size(); ++m) {
    const auto& mode = words.modes[m];
    if (m == in ? mode.strides[kA] != 1 : mode.strides[kA] % per_word != 0) {
      return 1;
    }
    if (m == 0 ? mode.strides[kD] != 1 : mode.strides[kD] % per_word != 0) {
      return 1;
    }
    if ((m == 0 || m == in) && mode.extent % per_word != 0) return 1;
  }
  const auto is_aligned = [](const void* address) {
    return reinterpret_cast<uintptr_t>(address) % 4 == 0;
  };
  return is_aligned(words.move.a) && is_aligned(words.move.d) ? per_word : 1;
}

class TiledPermutation final : public CudaPermutation {
 public:
  using CudaPermutation::CudaPermutation;
  absl::string_view name() const override { return "cuda.permute.tiled"; }

 private:
  absl::StatusOr<PermutationTiling> Divide(
      const PermutationWords& words) const override {
    if (words.modes.empty() || words.fastest_in() == 0) {
      return Unimplemented("FASTEST_MODES_EQUAL",
                           "a and d have the same fastest mode");
    }
    if (words.word_count() > kMaxIndex) {
      return Unimplemented("TOO_MANY_WORDS", "it moves ", words.word_count(),
                           " words, at most ", kMaxIndex, " are possible");
    }
    return PermutationTiling{};
  }

  double Nanoseconds(const PermutationWords& words,
                     const PermutationTiling&) const override {
    const TiledTask task = TaskOf(words);
    const int64_t per_word = task.elements_per_word;
    const int64_t side =
        TileSide(words.move.word_bytes, task.elements_per_word);
    // The tile at the origin, which is whole unless the modes are short.
    const auto in = std::min<int64_t>(task.extent_in, side);
    const auto out = std::min<int64_t>(task.extent_out, side);
    std::vector<int64_t> loads, stores;
    loads.reserve(static_cast<size_t>(in * out));
    stores.reserve(static_cast<size_t>(in * out));
    for (int64_t j = 0; j < out; ++j) {
      for (int64_t i = 0; i < in; i += per_word) {
        loads.push_back((i * task.stride_a_in + j * task.stride_a_out) /
                        per_word);
      }
    }
    for (int64_t i = 0; i < in; ++i) {
      for (int64_t j = 0; j < out; j += per_word) {
        stores.push_back((i * task.stride_d_in + j * task.stride_d_out) /
                         per_word);
      }
    }
    const int64_t bytes = words.move.word_bytes * per_word;
    const int64_t side_words = side / per_word;
    const int64_t shared_bytes = side * (side_words + 1) * bytes;
    const auto base = [&](int64_t number) {
      const int64_t first_out = number % task.tiles_out.divisor * side;
      number /= task.tiles_out.divisor;
      const int64_t first_in = number % task.tiles_in.divisor * side;
      const auto outer = task.outer.At(number / task.tiles_in.divisor);
      return std::array<int64_t, 2>{(outer[kA] + first_in * task.stride_a_in +
                                     first_out * task.stride_a_out) /
                                        per_word,
                                    (outer[kD] + first_in * task.stride_d_in +
                                     first_out * task.stride_d_out) /
                                        per_word};
    };
    // Threads beyond the ends of short modes wait for the others.
    const double requests =
        static_cast<double>(side * side_words / int64_t{TiledTask::kThreads});
    const Turns turns{
        .accesses =
            TileAccesses(loads, static_cast<int>(bytes), std::move(stores),
                         static_cast<int>(words.bytes_out() *
                                          static_cast<double>(per_word))),
        .shape = {.warps_per_block = TiledTask::kThreads / 32.0,
                  .warps_per_multiprocessor = WarpsPerMultiprocessor(
                      model(), TiledTask::kThreads, kRegisters, shared_bytes),
                  .parallel_requests = requests,
                  // As many as a word has elements meet in a bank.
                  .shared_transactions =
                      (1 + static_cast<double>(per_word)) / 2},
        .tile_count = task.tile_count,
        .base = base};
    return TurnsNanoseconds(model(), words, turns);
  }

  cudaError_t Queue(const PermutationWords& words, const PermutationTiling&,
                    cudaStream_t stream) const override {
    return QueueTiled(TaskOf(words), stream);
  }

  static TiledTask TaskOf(const PermutationWords& words) {
    const size_t fastest_in = words.fastest_in();
    const auto& in = words.modes[fastest_in];
    const auto& out = words.modes.front();
    TiledTask task{.move = words.move,
                   .elements_per_word = ElementsPerWord(words),
                   .extent_in = static_cast<uint32_t>(in.extent),
                   .extent_out = static_cast<uint32_t>(out.extent),
                   .stride_a_in = in.strides[kA],
                   .stride_a_out = out.strides[kA],
                   .stride_d_in = in.strides[kD],
                   .stride_d_out = out.strides[kD],
                   .tiles_in = {},
                   .tiles_out = {},
                   .tile_count = 1,
                   .outer = {}};
    const int64_t side =
        TileSide(words.move.word_bytes, task.elements_per_word);
    const auto tiles_in = static_cast<uint32_t>(TilesAlong(in.extent, side));
    const auto tiles_out = static_cast<uint32_t>(TilesAlong(out.extent, side));
    task.tiles_in = FastDivisor(tiles_in);
    task.tiles_out = FastDivisor(tiles_out);
    for (size_t m = 1; m < words.modes.size(); ++m) {
      if (m != fastest_in) {
        task.outer.Add(words.modes[m].extent, words.modes[m].strides);
      }
    }
    task.tile_count = tiles_in * tiles_out * task.outer.count;
    return task;
  }
};

}  // namespace

std::unique_ptr<const PermutationKernel> CreateTiledPermutation(
    const GpuModel& model) {
  return std::make_unique<TiledPermutation>(model);
}

}  // namespace tensord::core::cuda
