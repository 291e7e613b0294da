#include "core/backend/cuda/permutation_kernels.h"
#include "core/backend/cuda/permutation_words.h"

namespace tensord::core::cuda {
namespace {

// Whole lines for single elements, and divisions of 64 bits, one a mode.
constexpr double kSlowness = 20;

class ReferencePermutation final : public CudaPermutation {
 public:
  using CudaPermutation::CudaPermutation;
  absl::string_view name() const override { return "cuda.permute.reference"; }

 private:
  absl::StatusOr<PermutationTiling> Divide(
      const PermutationWords&) const override {
    return PermutationTiling{};
  }
  double Nanoseconds(const PermutationWords& words,
                     const PermutationTiling&) const override {
    return kSlowness * CopyNanoseconds(model(), words);
  }
  cudaError_t Queue(const PermutationWords& words, const PermutationTiling&,
                    cudaStream_t stream) const override {
    return QueueReference(ReferenceTaskOf(words), stream);
  }
};

}  // namespace

std::unique_ptr<const PermutationKernel> CreateReferencePermutation(
    const GpuModel& model) {
  return std::make_unique<ReferencePermutation>(model);
}

}  // namespace tensord::core::cuda
