#include "core/backend/cuda/elementwise_kernels.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/backend/cuda/cuda_stream.h"
#include "core/backend/cuda/kernel/elementwise_tasks.h"
#include "core/backend/cuda/kernel/groups/group.h"
#include "core/base/status.h"
#include "core/ops/type_tables.h"

namespace tensord::core::cuda {
namespace {

using Problem = ElementwiseProblem;

constexpr size_t kD = Problem::kD;

Expression ExpressionOf(const Problem& problem,
                        const ElementwiseOperands& operands) {
  Expression expression{
      .inputs = {operands.a, operands.b, operands.c},
      .d = operands.d,
      .compute = ComputeElement(problem.types[Problem::kA], problem.types[kD],
                                problem.compute_type),
      .compute_type = problem.compute_type,
      .has_b = problem.has_b,
      .op_ab = problem.op_ab,
      .op_abc = problem.op_abc};
  const Scalar factors[3] = {operands.alpha, operands.beta, operands.gamma};
  for (size_t i = 0; i < 3; ++i) {
    expression.types[i] = problem.types[i];
    expression.unary[i] = problem.unary[i];
    expression.is_scaled[i] = !factors[i].IsOne();
    expression.factors[i][0] = factors[i].real;
    expression.factors[i][1] = factors[i].imaginary;
    if (factors[i].IsZero()) expression.inputs[i] = nullptr;
  }
  if (!problem.has_b) expression.inputs[Problem::kB] = nullptr;
  const ElementType type_d = problem.types[kD];
  expression.types[kD] = type_d;
  expression.is_uniform =
      expression.compute ==
      ComputeElement(type_d, type_d, DefaultComputeType(type_d));
  expression.is_plain = true;
  for (size_t i = 0; i < 3; ++i) {
    if (expression.inputs[i] == nullptr) continue;
    expression.is_uniform &= expression.types[i] == type_d;
    expression.is_plain &= expression.unary[i] == UnaryOperator::kIdentity;
  }
  return expression;
}

bool IsInput(const Problem& problem, size_t i) {
  return i != Problem::kB || problem.has_b;
}

/// Bytes that reading and writing each operand once moves.
double Bytes(const Problem& problem) {
  double bytes = 0;
  for (size_t i = 0; i <= kD; ++i) {
    if (i != kD && !IsInput(problem, i)) continue;
    double count = 1;
    for (const auto& mode : problem.modes) {
      if (mode.strides[i] != 0) count *= static_cast<double>(mode.extent);
    }
    bytes += count * static_cast<double>(SizeOf(problem.types[i]));
  }
  return bytes;
}

/// The mode along which operand `i` is fastest; 0 when it is broadcast along
/// all.
size_t FastestOf(const Problem& problem, size_t i) {
  size_t fastest = 0;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (size_t m = 0; m < problem.modes.size(); ++m) {
    const int64_t stride = problem.modes[m].strides[i];
    if (stride != 0 && stride < least) {
      fastest = m;
      least = stride;
    }
  }
  return fastest;
}

/// Whether neighbours in d are apart in operand `i`, which has neighbours along
/// another mode. One that is broadcast along d's fastest mode is not: a whole
/// run takes one element of it.
bool IsTurned(const Problem& problem, size_t i) {
  return IsInput(problem, i) && FastestOf(problem, i) != 0 &&
         problem.modes[0].strides[i] != 0;
}

/// What reading along d's fastest mode costs for an operand that is fastest
/// along another: whole sectors for single elements.
double StridedBytes(const Problem& problem, size_t i) {
  const double sector =
      SectorBytes(static_cast<double>(SizeOf(problem.types[i])));
  return sector * static_cast<double>(ElementCount(problem.modes));
}

absl::Status CheckCount(const Problem& problem) {
  if (ElementCount(problem.modes) <= kMaxIndex) return absl::OkStatus();
  return Unimplemented("TOO_MANY_ELEMENTS", "it has ",
                       ElementCount(problem.modes), " elements, at most ",
                       kMaxIndex, " are possible");
}

class CudaElementwise : public ElementwiseKernel {
 public:
  explicit CudaElementwise(const GpuModel& model) : model_(model) {}

  int64_t WorkspaceBytes(const Problem&) const override { return 0; }

  absl::Status Launch(const Problem& problem,
                      const ElementwiseOperands& operands, Workspace&,
                      Stream& stream) const override {
    CudaStream& queue = AsCuda(stream);
    TENSORD_RETURN_IF_ERROR(queue.device().Select());
    return queue.device().Check(
        Queue(problem, ExpressionOf(problem, operands), queue.get()),
        absl::StrCat("launching ", name()));
  }

 protected:
  virtual cudaError_t Queue(const Problem& problem,
                            const Expression& expression,
                            cudaStream_t stream) const = 0;

  double Nanoseconds(double bytes) const {
    return model_.launch_ns + bytes / model_.copy_bytes_per_ns();
  }

 private:
  const GpuModel model_;
};

class ReferenceElementwise final : public CudaElementwise {
 public:
  using CudaElementwise::CudaElementwise;
  absl::string_view name() const override {
    return "cuda.elementwise.reference";
  }
  absl::Status Supports(const Problem&) const override {
    return absl::OkStatus();
  }
  double PredictNanoseconds(const Problem& problem) const override {
    double bytes = 0;
    for (size_t i = 0; i <= kD; ++i) bytes += StridedBytes(problem, i);
    return Nanoseconds(2 * bytes);
  }

 private:
  cudaError_t Queue(const Problem& problem, const Expression& expression,
                    cudaStream_t stream) const override {
    ElementwiseReferenceTask task{
        .expression = expression,
        .element_count = ElementCount(problem.modes),
        .mode_count = static_cast<int>(problem.modes.size()),
        .modes = {}};
    for (size_t m = 0; m < problem.modes.size(); ++m) {
      const auto& mode = problem.modes[m];
      task.modes[m].extent = mode.extent;
      std::copy(mode.strides.begin(), mode.strides.end(),
                task.modes[m].strides);
    }
    return QueueElementwiseReference(task, stream);
  }
};

class FusedElementwise final : public CudaElementwise {
 public:
  using CudaElementwise::CudaElementwise;
  absl::string_view name() const override { return "cuda.elementwise.fused"; }
  absl::Status Supports(const Problem& problem) const override {
    return CheckCount(problem);
  }
  double PredictNanoseconds(const Problem& problem) const override {
    double bytes = Bytes(problem);
    for (size_t i = 0; i < 3; ++i) {
      if (IsTurned(problem, i)) {
        bytes += StridedBytes(problem, i);
      }
    }
    return Nanoseconds(bytes);
  }

 private:
  cudaError_t Queue(const Problem& problem, const Expression& expression,
                    cudaStream_t stream) const override {
    ElementwiseFusedTask task{
        .expression = expression,
        .is_grouped = expression.is_uniform &&
                      (expression.is_plain || !IsInteger(problem.types[kD])),
        .modes = {}};
    if (!task.is_grouped) {
      for (const auto& mode : problem.modes) {
        task.modes.Add(mode.extent, mode.strides);
      }
      return QueueElementwiseMixed(task, stream);
    }
    AddGroups(problem, task);
    return VisitElementType(problem.types[kD], [&](auto zero) {
      return QueueElementwiseGroups<decltype(zero)>(task, stream);
    });
  }

  static void AddGroups(const Problem& problem, ElementwiseFusedTask& task) {
    const int64_t width = kGroupBytes / SizeOf(problem.types[kD]);
    LoopModes<4> modes = problem.modes;
    if (modes.empty()) modes.push_back({.extent = 1, .strides = {}});
    auto& [run, strides] = modes[0];
    task.run = static_cast<uint32_t>(run);
    std::copy(strides.begin(), strides.end(), task.run_strides);
    const bool is_whole =
        reinterpret_cast<uintptr_t>(task.expression.d) % kGroupBytes == 0 &&
        std::all_of(modes.begin() + 1, modes.end(), [&](const auto& mode) {
          return mode.strides[kD] % width == 0;
        });
    // Of short runs more would be gained by nothing.
    task.is_shifted = !is_whole && strides[kD] == 1 && run >= 4 * width;
    if (task.is_shifted) run += width - 1;
    run = (run + width - 1) / width;
    for (int64_t& stride : strides) stride *= width;
    for (const auto& mode : modes) task.modes.Add(mode.extent, mode.strides);
  }
};

class TiledElementwise final : public CudaElementwise {
 public:
  using CudaElementwise::CudaElementwise;
  absl::string_view name() const override { return "cuda.elementwise.tiled"; }

  absl::Status Supports(const Problem& problem) const override {
    TENSORD_RETURN_IF_ERROR(CheckCount(problem));
    if (OtherMode(problem) != 0) return absl::OkStatus();
    return Unimplemented("NOTHING_TO_TURN",
                         "every input is fastest along d's fastest mode, or "
                         "broadcast along it");
  }

  double PredictNanoseconds(const Problem& problem) const override {
    const size_t other = OtherMode(problem);
    double bytes = 1.05 * Bytes(problem);
    for (size_t i = 0; i < 3; ++i) {
      if (IsTurned(problem, i) && FastestOf(problem, i) != other) {
        bytes += StridedBytes(problem, i);
      }
    }
    const auto used = [](int64_t extent) {
      return static_cast<double>(extent) /
             static_cast<double>(TilesAlong(extent) * kSide);
    };
    const double fill =
        used(problem.modes[0].extent) * used(problem.modes[other].extent);
    return Nanoseconds(bytes * std::max(1.0, 0.5 / fill));
  }

 private:
  static constexpr int64_t kSide = ElementwiseTiledTask::kSide;

  static int64_t TilesAlong(int64_t extent) {
    return (extent + kSide - 1) / kSide;
  }

  /// The mode, other than d's fastest, along which the most bytes of inputs are
  /// fastest; 0 when there is none.
  static size_t OtherMode(const Problem& problem) {
    size_t best = 0;
    int64_t most = 0;
    for (size_t m = 1; m < problem.modes.size(); ++m) {
      int64_t bytes = 0;
      for (size_t i = 0; i < 3; ++i) {
        if (IsTurned(problem, i) && FastestOf(problem, i) == m) {
          bytes += SizeOf(problem.types[i]);
        }
      }
      if (bytes > most) {
        best = m;
        most = bytes;
      }
    }
    return best;
  }

  cudaError_t Queue(const Problem& problem, const Expression& expression,
                    cudaStream_t stream) const override {
    const size_t other = OtherMode(problem);
    const auto& in = problem.modes[other];
    const auto& out = problem.modes[0];
    const auto tiles_in = static_cast<uint32_t>(TilesAlong(in.extent));
    const auto tiles_out = static_cast<uint32_t>(TilesAlong(out.extent));
    ElementwiseTiledTask task{.expression = expression,
                              .extent_in = static_cast<uint32_t>(in.extent),
                              .extent_out = static_cast<uint32_t>(out.extent),
                              .tiles_in = FastDivisor(tiles_in),
                              .tiles_out = FastDivisor(tiles_out),
                              .outer = {}};
    for (size_t i = 0; i <= kD; ++i) {
      task.strides_in[i] = in.strides[i];
      task.strides_out[i] = out.strides[i];
      if (i < 3 && expression.inputs[i] != nullptr) {
        task.is_turned[i] =
            IsTurned(problem, i) && FastestOf(problem, i) == other;
      }
    }
    for (size_t m = 1; m < problem.modes.size(); ++m) {
      if (m != other) {
        task.outer.Add(problem.modes[m].extent, problem.modes[m].strides);
      }
    }
    task.tile_count = tiles_in * tiles_out * task.outer.count;
    return QueueElementwiseTiled(task, stream);
  }
};

}  // namespace

std::unique_ptr<const ElementwiseKernel> CreateTiledElementwise(
    const GpuModel& model) {
  return std::make_unique<TiledElementwise>(model);
}

std::unique_ptr<const ElementwiseKernel> CreateFusedElementwise(
    const GpuModel& model) {
  return std::make_unique<FusedElementwise>(model);
}

std::unique_ptr<const ElementwiseKernel> CreateReferenceElementwise(
    const GpuModel& model) {
  return std::make_unique<ReferenceElementwise>(model);
}

}  // namespace tensord::core::cuda
