#include "core/backend/cuda/permutation_kernels.h"
#include "core/backend/cuda/permutation_words.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

class TrivialPermutation final : public CudaPermutation {
 public:
  using CudaPermutation::CudaPermutation;
  absl::string_view name() const override { return "cuda.permute.trivial"; }

 private:
  absl::StatusOr<PermutationTiling> Divide(
      const PermutationWords& words) const override {
    if (!words.move.change.is_move) {
      return Unimplemented("NOT_A_COPY", "elements change on the way");
    }
    if (words.modes.empty()) return PermutationTiling{};
    const auto& mode = words.modes.front();
    if (words.modes.size() == 1 && mode.strides[PermutationWords::kA] == 1 &&
        mode.strides[PermutationWords::kD] == 1) {
      return PermutationTiling{};
    }
    return Unimplemented("NOT_A_COPY",
                         "a and d are not one run of memory in "
                         "the same order");
  }

  double Nanoseconds(const PermutationWords& words,
                     const PermutationTiling&) const override {
    return CopyNanoseconds(model(), words);
  }

  cudaError_t Queue(const PermutationWords& words, const PermutationTiling&,
                    cudaStream_t stream) const override {
    const auto bytes =
        static_cast<size_t>(words.word_count() * words.move.word_bytes);
    // Either may be pinned memory of the host, which CUDA sees by the address.
    return cudaMemcpyAsync(words.move.d, words.move.a, bytes, cudaMemcpyDefault,
                           stream);
  }
};

}  // namespace

std::unique_ptr<const PermutationKernel> CreateTrivialPermutation(
    const GpuModel& model) {
  return std::make_unique<TrivialPermutation>(model);
}

}  // namespace tensord::core::cuda
