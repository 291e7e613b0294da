#include <algorithm>
#include <utility>
#include <vector>

#include "core/backend/cuda/permutation_kernels.h"
#include "core/backend/cuda/permutation_words.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

// Of a thread, about.
constexpr int64_t kRegisters = 32;

class TiledCopyPermutation final : public CudaPermutation {
 public:
  using CudaPermutation::CudaPermutation;
  absl::string_view name() const override { return "cuda.permute.tiled_copy"; }

 private:
  absl::StatusOr<PermutationTiling> Divide(
      const PermutationWords& words) const override {
    if (words.word_count() > kMaxIndex) {
      return Unimplemented("TOO_MANY_WORDS", "it moves ", words.word_count(),
                           " words, at most ", kMaxIndex, " are possible");
    }
    if (!words.modes.empty() && words.fastest_in() != 0) {
      return Unimplemented("FASTEST_MODES_DIFFER",
                           "the fastest mode of a is not that of d");
    }
    return PermutationTiling{};
  }

  double Nanoseconds(const PermutationWords& words,
                     const PermutationTiling&) const override {
    const IndexSpace<2> modes = ModesOf(words);
    const int64_t block = std::min<int64_t>(
        int64_t{TiledCopyTask::kThreads} * TiledCopyTask::kWordsPerThread,
        modes.count);
    std::vector<int64_t> loads, stores;
    for (int64_t index = 0; index < block; ++index) {
      const auto [load, store] = modes.At(index);
      loads.push_back(load);
      stores.push_back(store);
    }
    const Turns turns{
        .accesses =
            TileAccesses(loads, words.move.word_bytes, std::move(stores),
                         static_cast<int>(words.bytes_out())),
        .shape = {.warps_per_block = TiledCopyTask::kThreads / 32.0,
                  .warps_per_multiprocessor = WarpsPerMultiprocessor(
                      model(), TiledCopyTask::kThreads, kRegisters, 0),
                  .parallel_requests = TiledCopyTask::kWordsPerThread,
                  .shared_transactions = 0},
        .tile_count = (modes.count + block - 1) / block,
        .base = [&](int64_t number) { return modes.At(number * block); }};
    return TurnsNanoseconds(model(), words, turns);
  }

  cudaError_t Queue(const PermutationWords& words, const PermutationTiling&,
                    cudaStream_t stream) const override {
    return QueueTiledCopy({.move = words.move, .modes = ModesOf(words)},
                          stream);
  }
};

}  // namespace

std::unique_ptr<const PermutationKernel> CreateTiledCopyPermutation(
    const GpuModel& model) {
  return std::make_unique<TiledCopyPermutation>(model);
}

}  // namespace tensord::core::cuda
