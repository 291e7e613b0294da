#include <algorithm>

#include "core/backend/cuda/permutation_kernels.h"
#include "core/backend/cuda/permutation_words.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

constexpr size_t kA = PermutationWords::kA;
constexpr size_t kD = PermutationWords::kD;

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
  absl::Status Accepts(const PermutationWords& words) const override {
    if (words.modes.empty() || words.fastest_in() == 0) {
      return Unimplemented("FASTEST_MODES_EQUAL",
                           "a and d have the same fastest mode");
    }
    if (words.word_count() > kMaxIndex) {
      return Unimplemented("TOO_MANY_WORDS", "it moves ", words.word_count(),
                           " words, at most ", kMaxIndex, " are possible");
    }
    return absl::OkStatus();
  }

  double Nanoseconds(const PermutationWords& words) const override {
    const int64_t side =
        TileSide(words.move.word_bytes, ElementsPerWord(words));
    const auto& in = words.modes[words.fastest_in()];
    const auto& out = words.modes.front();
    const auto run = [side](int64_t extent, int64_t stride) {
      return stride == 1 ? static_cast<double>(std::min(extent, side)) : 1.0;
    };
    const auto used = [side](int64_t extent) {
      return static_cast<double>(extent) /
             static_cast<double>(TilesAlong(extent, side) * side);
    };
    // Half-empty tiles still keep memory busy.
    const double fill = used(in.extent) * used(out.extent);
    return MoveNanoseconds(model(), words, run(in.extent, in.strides[kA]),
                           run(out.extent, out.strides[kD])) *
           std::max(1.0, 0.5 / fill);
  }

  cudaError_t Queue(const PermutationWords& words,
                    cudaStream_t stream) const override {
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
    return QueueTiled(task, stream);
  }
};

}  // namespace

std::unique_ptr<const PermutationKernel> CreateTiledPermutation(
    const GpuModel& model) {
  return std::make_unique<TiledPermutation>(model);
}

}  // namespace tensord::core::cuda
