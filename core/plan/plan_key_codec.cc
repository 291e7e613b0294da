#include "core/plan/plan_key_codec.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <variant>

#include "absl/strings/str_format.h"
#include "core/base/layout.h"
#include "core/base/status.h"
#include "core/plan/byte_codec.h"
#include "core/plan/check_problem.h"

namespace tensord::core {
namespace {

// version | problem's index | problem | device | flags | limit? | kernel |
// selection
constexpr uint8_t kKeyVersion = 1;
constexpr uint8_t kDeterministic = 1;
constexpr uint8_t kHasLimit = 2;

/// Most bytes of a field.
struct SizeBound {
  template <size_t n>
  size_t operator()(const LoopModes<n>& modes) const {
    return kMaxVarintBytes * (1 + modes.size() * (1 + n));
  }
  template <size_t n>
  size_t operator()(const LoopMode<n>&) const {
    return kMaxVarintBytes * (1 + n);
  }
  template <typename Number>
  size_t operator()(const Number&) const {
    return kMaxVarintBytes;
  }
};

size_t BytesBound(const PlanKey& key) {
  size_t bytes = 8 * kMaxVarintBytes + key.device.size() + key.kernel.size();
  std::visit(
      [&]<typename Problem>(const Problem& problem) {
        Problem::VisitFields(problem, [&](const auto&... fields) {
          bytes += (0 + ... + SizeBound{}(fields));
        });
      },
      key.problem);
  return bytes;
}

struct Writer {
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void operator()(Enum value) { to.Byte(value); }
  void operator()(bool value) { to.Byte(value ? 1 : 0); }
  void operator()(int64_t value) { to.Varint(static_cast<uint64_t>(value)); }
  template <size_t n>
  void operator()(const LoopMode<n>& mode) {
    (*this)(mode.extent);
    for (const int64_t stride : mode.strides) (*this)(stride);
  }
  template <size_t n>
  void operator()(const LoopModes<n>& modes) {
    to.Varint(modes.size());
    for (const auto& mode : modes) (*this)(mode);
  }

  ByteWriter& to;
};

struct Reader {
  void operator()(ElementType& value) { Read(value, kElementTypeCount); }
  void operator()(ComputeType& value) { Read(value, kComputeTypeCount); }
  void operator()(UnaryOperator& value) { Read(value, kUnaryOperatorCount); }
  void operator()(BinaryOperator& value) { Read(value, kBinaryOperatorCount); }
  void operator()(FactorizationMethod& value) {
    Read(value, kFactorizationMethodCount);
  }
  void operator()(MatrixStructure& value) {
    Read(value, kMatrixStructureCount);
  }
  void operator()(MatrixFunction& value) { Read(value, kMatrixFunctionCount); }
  void operator()(Sorting& value) { Read(value, kSortingCount); }
  void operator()(bool& value) { Read(value, 2); }
  void operator()(int64_t& value) {
    value = static_cast<int64_t>(from.Varint(INT64_MAX));
  }
  template <size_t n>
  void operator()(LoopMode<n>& mode) {
    (*this)(mode.extent);
    for (int64_t& stride : mode.strides) (*this)(stride);
  }
  template <size_t n>
  void operator()(LoopModes<n>& modes) {
    const uint64_t count = from.Varint(kMaxModes);
    for (uint64_t i = 0; i < count && from.ok(); ++i) {
      LoopMode<n> mode;
      (*this)(mode);
      modes.push_back(mode);
    }
  }

  template <typename Value>
  void Read(Value& value, int count) {
    value = from.Enumerator<Value>(count);
  }

  ByteReader& from;
};

/// Before there were other methods than QR, a factorization had these fields,
/// and QR keeps them: stored plans of it stay good.
struct QrFields {
  using P = FactorizationProblem;

  static bool Suffice(const P& p) {
    return p.method == FactorizationMethod::kQr;
  }
  template <typename Visit>
  static void VisitFields(const P& p, const Visit& visit) {
    const LoopModes<3> batch = Without<P::kBatchValues>(p.batch);
    visit(p.method, p.type, batch, p.rows, p.columns, p.inner_extent,
          p.inner_stride_left, p.inner_stride_right);
  }
  static AnyProblem Read(ByteReader& from) {
    P p;
    LoopModes<3> batch;
    const auto read = [&](auto&... fields) { (Reader{from}(fields), ...); };
    read(p.method, p.type, batch, p.rows, p.columns, p.inner_extent,
         p.inner_stride_left, p.inner_stride_right);
    if (!Suffice(p)) from.Fail();
    p.batch = Spread<4, 3>(batch, {P::kBatchA, P::kBatchLeft, P::kBatchRight});
    return p;
  }

 private:
  template <size_t last>
  static LoopModes<last> Without(const LoopModes<last + 1>& modes) {
    LoopModes<last> fewer;
    for (const auto& mode : modes) {
      LoopMode<last>& to = fewer.emplace_back(LoopMode<last>{mode.extent, {}});
      std::copy_n(mode.strides.begin(), last, to.strides.begin());
    }
    return fewer;
  }
};

// Numbers of problems in encoded keys: the first have their index.
constexpr uint8_t kQrIndex = 4, kFactorizationIndex = 5, kLinearSolveIndex = 6,
                  kAlongIndex = 7, kExponentialIndex = 8, kSampledIndex = 9;

uint8_t EncodedIndexOf(const AnyProblem& problem) {
  const auto* const reduction = std::get_if<ReductionProblem>(&problem);
  if (reduction != nullptr && (reduction->is_along() || reduction->sorts())) {
    return kAlongIndex;
  }
  if (const auto* const p = std::get_if<LinearSolveProblem>(&problem)) {
    return p->is_exponential() ? kExponentialIndex : kLinearSolveIndex;
  }
  const auto* const factorization = std::get_if<FactorizationProblem>(&problem);
  if (factorization == nullptr) return static_cast<uint8_t>(problem.index());
  if (factorization->sampled > 0) return kSampledIndex;
  return QrFields::Suffice(*factorization) ? kQrIndex : kFactorizationIndex;
}

/// Whether a problem of that index has the fields that were added later.
bool HasAllFields(uint8_t index) { return index >= kAlongIndex; }

template <typename Problem>
concept HasPlainFields = requires(Problem& p) {
  Problem::VisitPlainFields(p, [](const auto&...) {});
};

void WriteProblem(const AnyProblem& problem, ByteWriter& to) {
  const uint8_t index = EncodedIndexOf(problem);
  to.Byte(index);
  const auto write = [&](const auto&... fields) { (Writer{to}(fields), ...); };
  std::visit(
      [&]<typename Problem>(const Problem& one) {
        if constexpr (std::is_same_v<Problem, FactorizationProblem>) {
          if (index == kQrIndex) return QrFields::VisitFields(one, write);
        }
        if constexpr (HasPlainFields<Problem>) {
          if (!HasAllFields(index)) {
            return Problem::VisitPlainFields(one, write);
          }
        }
        Problem::VisitFields(one, write);
        if constexpr (std::is_same_v<Problem, ElementwiseProblem>) {
          if (one.is_take()) write(one.taken);
        }
      },
      problem);
}

template <typename Problem>
AnyProblem ReadProblem(ByteReader& from) {
  Problem problem;
  Problem::VisitFields(problem,
                       [&](auto&... fields) { (Reader{from}(fields), ...); });
  if constexpr (std::is_same_v<Problem, ElementwiseProblem>) {
    // Stored plans of others stay good.
    if (problem.is_take()) Reader{from}(problem.taken);
  }
  return problem;
}

template <typename Problem>
AnyProblem ReadPlainProblem(ByteReader& from) {
  Problem problem;
  Problem::VisitPlainFields(
      problem, [&](auto&... fields) { (Reader{from}(fields), ...); });
  return problem;
}

AnyProblem ReadProblemOf(uint8_t index, ByteReader& from) {
  switch (index) {
    case 0: return ReadProblem<PermutationProblem>(from);
    case 1: return ReadProblem<ElementwiseProblem>(from);
    case 2: return ReadPlainProblem<ReductionProblem>(from);
    case 3: return ReadProblem<ContractionProblem>(from);
    case kQrIndex: return QrFields::Read(from);
    case kFactorizationIndex:
      return ReadPlainProblem<FactorizationProblem>(from);
    case kLinearSolveIndex: return ReadPlainProblem<LinearSolveProblem>(from);
    case kAlongIndex: return ReadProblem<ReductionProblem>(from);
    case kExponentialIndex: return ReadProblem<LinearSolveProblem>(from);
    case kSampledIndex: return ReadProblem<FactorizationProblem>(from);
    default: from.Fail(); return {};
  }
}

/// Equal keys are equal bytes, so each problem has but one form.
AnyProblem ReadAnyProblem(ByteReader& from) {
  const uint8_t index = from.Byte();
  AnyProblem read = ReadProblemOf(index, from);
  if (EncodedIndexOf(read) != index) from.Fail();
  return read;
}
static_assert(std::variant_size_v<AnyProblem> == 6);

constexpr absl::string_view kMalformedReason = "PLAN_KEY_MALFORMED";

}  // namespace

EncodedPlanKey::EncodedPlanKey(const PlanKey& key) : memory_(BytesBound(key)) {
  ByteWriter to(memory_.data());
  to.Byte(kKeyVersion);
  WriteProblem(key.problem, to);
  to.Text(key.device);
  const bool has_limit = key.workspace_limit_bytes != kNoWorkspaceLimit;
  to.Byte(static_cast<uint8_t>((key.deterministic ? kDeterministic : 0) |
                               (has_limit ? kHasLimit : 0)));
  if (has_limit) to.Varint(static_cast<uint64_t>(key.workspace_limit_bytes));
  to.Text(key.kernel);
  to.Byte(key.selection);
  size_ = static_cast<size_t>(to.end() - memory_.data());
}

std::string EncodePlanKey(const PlanKey& key) {
  return std::string(EncodedPlanKey(key).bytes());
}

absl::StatusOr<PlanKey> DecodePlanKey(absl::string_view bytes) {
  ByteReader from(bytes);
  const uint8_t version = from.Byte();
  if (version != kKeyVersion) {
    return InvalidArgument(kMalformedReason, "encoded key has version ",
                           version, ", wanted ", kKeyVersion);
  }
  PlanKey key;
  key.problem = ReadAnyProblem(from);
  key.device = std::string(from.Text(kMaxKeyNameBytes));
  const uint8_t flags = from.Byte();
  if (flags > (kDeterministic | kHasLimit)) from.Fail();
  key.deterministic = (flags & kDeterministic) != 0;
  if ((flags & kHasLimit) != 0) {
    key.workspace_limit_bytes =
        static_cast<int64_t>(from.Varint(kNoWorkspaceLimit - 1));
  }
  key.kernel = std::string(from.Text(kMaxKeyNameBytes));
  key.selection = from.Enumerator<Selection>(kSelectionCount);
  if (!from.AtEnd()) {
    return InvalidArgument(kMalformedReason, "encoded key of ", bytes.size(),
                           " bytes is cut off, overlong or out of range");
  }
  if (const absl::Status status = CheckProblem(key.problem); !status.ok()) {
    return InvalidArgument(kMalformedReason,
                           "encoded key's problem: ", status.message());
  }
  return key;
}

uint64_t PlanIdOf(absl::string_view encoded_key) {
  // Words are folded in by multiplication to 128 bits, whose halves are added
  // without carry. The numbers are digits of the golden ratio, pi and e.
  static_assert(std::endian::native == std::endian::little);
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
  const auto mix = [](uint64_t x, uint64_t y) {
    const auto product = static_cast<unsigned __int128>(x) * y;
    return static_cast<uint64_t>(product) ^
           static_cast<uint64_t>(product >> 64);
  };
  uint64_t id = 0x243f6a8885a308d3 ^ encoded_key.size();
  const char* next = encoded_key.data();
  size_t left = encoded_key.size();
  uint64_t word = 0;
  for (; left >= sizeof(word); left -= sizeof(word), next += sizeof(word)) {
    std::memcpy(&word, next, sizeof(word));
    id = mix(id ^ word, kFactor) + kFactor;
  }
  word = 0;
  if (left > 0) std::memcpy(&word, next, left);
  return mix(id ^ word ^ 0xb7e151628aed2a6b, kFactor);
}

std::string PlanIdText(uint64_t id) { return absl::StrFormat("%016x", id); }

std::optional<uint64_t> PlanIdFromText(absl::string_view text) {
  if (text.size() != 16) return std::nullopt;
  uint64_t id = 0;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && (c < 'a' || c > 'f')) return std::nullopt;
    id = id << 4 | static_cast<uint64_t>(is_digit ? c - '0' : c - 'a' + 10);
  }
  return id;
}

}  // namespace tensord::core
