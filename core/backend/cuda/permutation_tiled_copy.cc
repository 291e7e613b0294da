#include "core/backend/cuda/permutation_kernels.h"
#include "core/backend/cuda/permutation_words.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

class TiledCopyPermutation final : public CudaPermutation {
 public:
  using CudaPermutation::CudaPermutation;
  absl::string_view name() const override { return "cuda.permute.tiled_copy"; }

 private:
  absl::Status Accepts(const PermutationWords& words) const override {
    if (words.word_count() > kMaxIndex) {
      return Unimplemented("TOO_MANY_WORDS", "it moves ", words.word_count(),
                           " words, at most ", kMaxIndex, " are possible");
    }
    if (!words.modes.empty() && words.fastest_in() != 0) {
      return Unimplemented("FASTEST_MODES_DIFFER",
                           "the fastest mode of a is not that of d");
    }
    return absl::OkStatus();
  }

  double Nanoseconds(const PermutationWords& words) const override {
    if (words.modes.empty()) return MoveNanoseconds(model(), words, 1, 1);
    const auto& fastest = words.modes.front();
    const auto run = static_cast<double>(fastest.extent);
    return MoveNanoseconds(
        model(), words, fastest.strides[PermutationWords::kA] == 1 ? run : 1,
        fastest.strides[PermutationWords::kD] == 1 ? run : 1);
  }

  cudaError_t Queue(const PermutationWords& words,
                    cudaStream_t stream) const override {
    TiledCopyTask task{.move = words.move, .modes = {}};
    for (const auto& mode : words.modes) {
      task.modes.Add(mode.extent, mode.strides);
    }
    return QueueTiledCopy(task, stream);
  }
};

}  // namespace

std::unique_ptr<const PermutationKernel> CreateTiledCopyPermutation(
    const GpuModel& model) {
  return std::make_unique<TiledCopyPermutation>(model);
}

}  // namespace tensord::core::cuda
