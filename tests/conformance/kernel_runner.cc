#include "tests/conformance/kernel_runner.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <sstream>
#include <type_traits>
#include <utility>

#include "gtest/gtest.h"
#include "tests/conformance/edge_memory.h"

namespace tensord::test {
namespace {

using core::OperandDesc;

constexpr int64_t kWorkspaceGuardBytes = core::kBufferAlignment;
constexpr int kMismatchesShown = 3;

/// The problem of `c`, with all that is known of its factors.
template <typename Desc>
auto ProblemOf(const Case<Desc>& c) {
  Desc desc = c.desc;
  if constexpr (requires { desc.alpha_is_one; }) {
    desc.alpha_is_one = c.alpha.IsOne();
  }
  return Canonicalize(desc);
}

const auto& KernelsFor(const core::KernelLists& lists,
                       const core::PermutationDesc&) {
  return lists.permutation;
}
const auto& KernelsFor(const core::KernelLists& lists,
                       const core::ElementwiseDesc&) {
  return lists.elementwise;
}
const auto& KernelsFor(const core::KernelLists& lists,
                       const core::ReductionDesc&) {
  return lists.reduction;
}
const auto& KernelsFor(const core::KernelLists& lists,
                       const core::ContractionDesc&) {
  return lists.contraction;
}

struct Pointers {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  void* d = nullptr;
};

core::PermutationOperands OperandsOf(const Case<core::PermutationDesc>& c,
                                     const Pointers& at) {
  return {at.a, at.d, c.alpha};
}
core::ElementwiseOperands OperandsOf(const Case<core::ElementwiseDesc>& c,
                                     const Pointers& at) {
  return {at.a, at.b, at.c, at.d, c.alpha, c.beta, c.gamma};
}
core::ReductionOperands OperandsOf(const Case<core::ReductionDesc>& c,
                                   const Pointers& at) {
  return {at.a, at.c, at.d, c.alpha, c.beta};
}
core::ContractionOperands OperandsOf(const Case<core::ContractionDesc>& c,
                                     const Pointers& at) {
  return {at.a, at.b, at.c, at.d, c.alpha, c.beta};
}

const OperandDesc* AsPointer(const std::optional<OperandDesc>& operand) {
  return operand ? &*operand : nullptr;
}

/// An operand of a case and whether its factor lets it be read.
struct Input {
  const OperandDesc* operand = nullptr;
  bool is_used = false;
  DataKind data = DataKind::kUniform;
};

template <typename Desc>
Input InputA(const Case<Desc>& c) {
  return {&c.desc.a, !c.alpha.IsZero(), c.data_a};
}
template <typename Desc>
Input InputB(const Case<Desc>& c) {
  if constexpr (std::is_same_v<Desc, core::ContractionDesc>) {
    return {&c.desc.b, !c.alpha.IsZero(), c.data_b};
  } else if constexpr (requires { c.desc.b; }) {
    return {AsPointer(c.desc.b), !c.beta.IsZero(), c.data_b};
  } else {
    return {};
  }
}
template <typename Desc>
Input InputC(const Case<Desc>& c) {
  if constexpr (std::is_same_v<Desc, core::ElementwiseDesc>) {
    return {&c.desc.c, !c.gamma.IsZero(), c.data_c};
  } else if constexpr (requires { c.desc.c; }) {
    return {AsPointer(c.desc.c), !c.beta.IsZero(), c.data_c};
  } else {
    return {};
  }
}

/// Memory that a kernel works on: the backend's, or up to a page that faults.
class Block {
 public:
  Block(core::MemoryResource& memory, size_t bytes, bool at_edge)
      : bytes_(bytes) {
    if (at_edge) {
      edge_ = std::make_unique<EdgeMemory>(bytes);
    } else {
      buffer_ =
          core::Buffer::Allocate(memory, static_cast<int64_t>(bytes)).value();
    }
  }
  std::byte* data() const { return edge_ ? edge_->data() : buffer_.data(); }
  size_t size() const { return bytes_; }

 private:
  size_t bytes_;
  core::Buffer buffer_;
  std::unique_ptr<EdgeMemory> edge_;
};

/// In less than float32, or of elements of less.
bool MayUseTensorCores(const core::ContractionDesc& desc) {
  switch (desc.compute_type) {
    case core::ComputeType::kTf32:
    case core::ComputeType::kThreeTf32:
    case core::ComputeType::kFloat16:
    case core::ComputeType::kBfloat16: return true;
    case core::ComputeType::kFloat32:
      return core::SizeOf(desc.a.element_type) == 2;
    default: return false;
  }
}

std::string Show(core::ElementType type, const Number& x) {
  std::ostringstream text;
  text.precision(20);
  text << x.real();
  if (HasParts(type)) text << " + " << x.imag() << "i";
  return text.str();
}

}  // namespace

/// Operands in host memory.
template <typename Desc>
struct KernelRunner::Prepared {
  const Case<Desc>& c;
  std::optional<TensorStorage> a, b, c_input;  // absent: the kernel gets null
  std::optional<TensorStorage> d;

  const std::optional<TensorStorage>* Aliased() const {
    switch (c.alias) {
      case Alias::kDIsA: return &a;
      case Alias::kDIsB: return &b;
      case Alias::kDIsC: return &c_input;
      case Alias::kNone: return nullptr;
    }
    __builtin_unreachable();
  }

  Inputs inputs() const {
    Inputs inputs{.alpha = c.alpha, .beta = c.beta, .gamma = c.gamma};
    if (a) inputs.a = a->data();
    if (b) inputs.b = b->data();
    if (c_input) inputs.c = c_input->data();
    return inputs;
  }
};

template <typename Desc>
KernelRunner::Prepared<Desc> KernelRunner::Prepare(const Case<Desc>& c) {
  std::mt19937 rng(c.seed);
  const auto store = [&](const Input& input) -> std::optional<TensorStorage> {
    if (input.operand == nullptr) return std::nullopt;
    if (!input.is_used && c.omits_unused) return std::nullopt;
    const int64_t shift = rng() & 1 ? 0 : rng() % 4;
    return TensorStorage(*input.operand,
                         input.is_used ? input.data : DataKind::kNan, shift,
                         rng);
  };
  Prepared<Desc> prepared{.c = c,
                          .a = store(InputA(c)),
                          .b = store(InputB(c)),
                          .c_input = store(InputC(c)),
                          .d = std::nullopt};
  if (prepared.a && !c.bits_of_a.empty()) {
    std::copy(c.bits_of_a.begin(), c.bits_of_a.end(),
              prepared.a->image().begin() + prepared.a->data_offset());
  }
  const auto* const aliased = prepared.Aliased();
  prepared.d = aliased != nullptr && aliased->has_value()
                   ? *aliased
                   : store({&c.desc.d, true, DataKind::kNan});
  return prepared;
}

KernelRunner::KernelRunner(const ConformanceTarget& target, int thread_count)
    : target_(target),
      backend_(target.create(thread_count)),
      stream_(backend_->CreateStream().value()) {}

bool KernelRunner::TakesNextCase() {
  // Multiples of the golden ratio: no loop of a sweep is in step with them.
  const uint64_t scattered =
      static_cast<uint64_t>(offered_count_++) * 0x9E3779B97F4A7C15u >> 33;
  return scattered % static_cast<uint64_t>(target_.case_stride) == 0;
}

template <typename Desc, typename Solution>
std::vector<std::byte> KernelRunner::Launch(const Prepared<Desc>& prepared,
                                            const Solution& solution) {
  using Image = std::vector<std::byte>;
  const bool at_edge = target_.uses_host_memory && taken_count_ % 3 != 0;
  const auto upload = [&](const Image& image, size_t guard_bytes) {
    // At the edge the guard after the last element is a page that faults.
    Block block(backend_->memory(), image.size() - (at_edge ? guard_bytes : 0),
                at_edge);
    target_.copy(block.data(), image.data(), block.size());
    return block;
  };
  const auto download = [&](const Block& block, Image image) {
    target_.copy(image.data(), block.data(), block.size());
    return image;
  };

  std::vector<std::pair<const TensorStorage*, Block>> inputs;
  const Block d = upload(prepared.d->image(), TensorStorage::kGuardBytes);
  const auto pointer_to =
      [&](const std::optional<TensorStorage>& input) -> const std::byte* {
    if (!input) return nullptr;
    if (&input == prepared.Aliased()) {
      return d.data() + prepared.d->data_offset();
    }
    inputs.emplace_back(&*input,
                        upload(input->image(), TensorStorage::kGuardBytes));
    return inputs.back().second.data() + input->data_offset();
  };
  Pointers at;
  at.a = pointer_to(prepared.a);
  at.b = pointer_to(prepared.b);
  at.c = pointer_to(prepared.c_input);
  at.d = d.data() + prepared.d->data_offset();

  // All bits set: NaN to a kernel that reads what it did not write.
  const int64_t workspace_bytes = solution.workspace_bytes();
  EXPECT_GE(workspace_bytes, 0);
  const std::vector<std::byte> scratch(
      static_cast<size_t>(workspace_bytes + 2 * kWorkspaceGuardBytes),
      std::byte{0xff});
  const Block scratch_block = upload(scratch, 0);
  core::Workspace workspace(
      std::span(scratch_block.data() + kWorkspaceGuardBytes,
                static_cast<size_t>(workspace_bytes)));

  EXPECT_GE(solution.predicted_nanoseconds(), 0);
  EXPECT_NE(solution.decision(), "");
  EXPECT_GE(solution.bytes(), static_cast<int64_t>(sizeof(solution)));
  EXPECT_EQ(solution.Launch(OperandsOf(prepared.c, at), workspace, *stream_),
            absl::OkStatus());
  EXPECT_EQ(stream_->Synchronize(), absl::OkStatus());

  const std::vector<std::byte> scratch_after = download(scratch_block, scratch);
  const auto is_untouched = [](std::byte x) { return x == std::byte{0xff}; };
  EXPECT_TRUE(std::all_of(scratch_after.begin(),
                          scratch_after.begin() + kWorkspaceGuardBytes,
                          is_untouched))
      << "wrote before its workspace";
  EXPECT_TRUE(std::all_of(scratch_after.end() - kWorkspaceGuardBytes,
                          scratch_after.end(), is_untouched))
      << "wrote beyond its workspace of " << workspace_bytes << " bytes";
  for (const auto& [storage, block] : inputs) {
    EXPECT_TRUE(download(block, storage->image()) == storage->image())
        << "wrote to an input";
  }
  return download(d, prepared.d->image());
}

template <typename Desc>
void KernelRunner::Judge(const Prepared<Desc>& prepared,
                         const std::vector<Expected>& elements,
                         const std::vector<std::byte>& image,
                         const std::string& kernel) {
  const TensorStorage& d = *prepared.d;
  const core::ElementType type = prepared.c.desc.d.element_type;
  if (const auto guard = d.FirstTouchedGuard(image)) {
    ADD_FAILURE() << "touched byte " << *guard - d.data_offset()
                  << " from d's first element, which is none of d's elements";
  }
  KernelRecord& record = records_[kernel];
  const int64_t bytes_each = core::SizeOf(type);
  int mismatches = 0;
  int unbounded = 0;
  for (const Expected& expected : elements) {
    const std::byte* const at =
        image.data() + d.data_offset() + expected.offset * bytes_each;
    if (IsWhole(type)) {
      const int64_t actual = LoadInteger(type, at);
      if (actual != expected.integer && actual != expected.also &&
          ++mismatches <= kMismatchesShown) {
        ADD_FAILURE() << "element at offset " << expected.offset << " is "
                      << actual << ", wanted " << expected.integer;
      }
      continue;
    }
    unbounded += std::isinf(expected.estimate.error);
    const Number actual = LoadNumber(type, at);
    const Real ratio = ErrorRatio(actual, expected.estimate, type);
    record.worst_error = std::max(record.worst_error, ratio);
    if (!Agrees(actual, expected.estimate, type) &&
        ++mismatches <= kMismatchesShown) {
      ADD_FAILURE() << "element at offset " << expected.offset << " is "
                    << Show(type, actual) << ", wanted "
                    << Show(type, expected.estimate.value) << " +- "
                    << expected.estimate.error << "; error is " << ratio
                    << " of what is allowed";
    }
  }
  if (unbounded > 0 && prepared.c.unbounded.empty()) {
    ADD_FAILURE() << unbounded << " of " << elements.size()
                  << " elements may be anything, and the case does not say why";
  }
  if (mismatches > kMismatchesShown) {
    ADD_FAILURE() << mismatches << " of " << elements.size()
                  << " elements are wrong";
  }
}

template <typename Desc>
void KernelRunner::CheckCase(const Case<Desc>& c) {
  SCOPED_TRACE(Describe(c));
  const absl::Status valid = Validate(c.desc);
  ASSERT_TRUE(valid.ok()) << valid;
  if (core::ElementCount(c.desc.d.layout) == 0) return;
  if (!TakesNextCase()) return;
  const auto problem = ProblemOf(c);
  ++taken_count_;
  const Prepared<Desc> prepared = Prepare(c);
  const std::vector<Expected> expected = Evaluate(c.desc, prepared.inputs());
  std::optional<std::vector<Expected>> by_tensor_cores;
  if constexpr (std::is_same_v<Desc, core::ContractionDesc>) {
    if (target_.has_tensor_cores && MayUseTensorCores(c.desc)) {
      by_tensor_cores =
          Evaluate(c.desc, prepared.inputs(), Adder::kTensorCores);
    }
  }
  const auto& kernels = KernelsFor(backend_->kernels(), c.desc);
  ASSERT_FALSE(kernels.empty());
  for (const auto& kernel : kernels) {
    const std::string name(kernel->name());
    SCOPED_TRACE(name);
    const auto solution = kernel->Solve(problem);
    if (!solution.ok()) {
      ++records_[name].declines;
      EXPECT_EQ(solution.status().code(), absl::StatusCode::kUnimplemented);
      EXPECT_NE(solution.status().message(), "") << "declined without a reason";
      EXPECT_NE(kernel, kernels.back())
          << "the reference kernel declined: " << solution.status();
      continue;
    }
    ++records_[name].runs;
    const bool cuts =
        by_tensor_cores.has_value() && name.find("gemm") != std::string::npos;
    Judge(prepared, cuts ? *by_tensor_cores : expected,
          Launch(prepared, **solution), name);
  }
}

template <typename Desc>
void KernelRunner::OfferCase(const Case<Desc>& c) {
  if (core::ElementCount(c.desc.d.layout) == 0) return;
  const auto problem = ProblemOf(c);
  for (const auto& kernel : KernelsFor(backend_->kernels(), c.desc)) {
    KernelRecord& record = records_[std::string(kernel->name())];
    ++(kernel->Solve(problem).ok() ? record.solved : record.declines);
  }
}

template <typename Desc>
KernelRunner::Images KernelRunner::RunCase(const Case<Desc>& c) {
  Images images;
  const auto problem = ProblemOf(c);
  const Prepared<Desc> prepared = Prepare(c);
  for (const auto& kernel : KernelsFor(backend_->kernels(), c.desc)) {
    const auto solution = kernel->Solve(problem);
    if (!solution.ok()) continue;
    const auto image = Launch(prepared, **solution);
    const auto first = image.begin() + prepared.d->data_offset();
    images.emplace(
        kernel->name(),
        std::vector(first, first + core::SpanElements(c.desc.d.layout) *
                                       core::SizeOf(c.desc.d.element_type)));
  }
  return images;
}

void KernelRunner::Check(const Case<core::PermutationDesc>& c) { CheckCase(c); }
void KernelRunner::Check(const Case<core::ElementwiseDesc>& c) { CheckCase(c); }
void KernelRunner::Check(const Case<core::ReductionDesc>& c) { CheckCase(c); }
void KernelRunner::Check(const Case<core::ContractionDesc>& c) { CheckCase(c); }

void KernelRunner::Offer(const Case<core::PermutationDesc>& c) { OfferCase(c); }
void KernelRunner::Offer(const Case<core::ElementwiseDesc>& c) { OfferCase(c); }
void KernelRunner::Offer(const Case<core::ReductionDesc>& c) { OfferCase(c); }
void KernelRunner::Offer(const Case<core::ContractionDesc>& c) { OfferCase(c); }

KernelRunner::Images KernelRunner::Run(const Case<core::PermutationDesc>& c) {
  return RunCase(c);
}
KernelRunner::Images KernelRunner::Run(const Case<core::ElementwiseDesc>& c) {
  return RunCase(c);
}
KernelRunner::Images KernelRunner::Run(const Case<core::ReductionDesc>& c) {
  return RunCase(c);
}
KernelRunner::Images KernelRunner::Run(const Case<core::ContractionDesc>& c) {
  return RunCase(c);
}

}  // namespace tensord::test
