#include "tests/testing/tensor_storage.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace tensord::test {
namespace {

using core::ElementType;

/// Recognisable, different from byte to byte, and no small number as any type.
std::byte GuardByte(int64_t position) {
  return static_cast<std::byte>(0xa5 ^ (position * 29 & 0x3f));
}

Real RandomReal(DataKind kind, std::mt19937& rng) {
  const auto in = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(rng);
  };
  const bool coin = rng() & 1;
  switch (kind) {
    case DataKind::kUniform: return in(-1, 1);
    case DataKind::kWide: return coin ? std::rint(in(-16, 16)) / 2 : in(-8, 8);
    case DataKind::kPositive: return in(0.25, 4);
    case DataKind::kAboveOne: return in(1, 4);
    case DataKind::kNearOne: return coin ? in(0.75, 1.25) : in(-1.25, -0.75);
    case DataKind::kSmallIntegers: return std::rint(in(-9, 9));
    case DataKind::kSparseNan:
      if (rng() % 40 != 0) return in(-1, 1);
      [[fallthrough]];
    case DataKind::kNan: return std::numeric_limits<Real>::quiet_NaN();
  }
  __builtin_unreachable();
}

Number RandomNumber(ElementType type, DataKind kind, std::mt19937& rng) {
  const Real first = RandomReal(kind, rng);
  if (!HasParts(type)) return first;
  if (kind == DataKind::kNearOne) {
    return std::polar(std::abs(first), 3 * RandomReal(DataKind::kUniform, rng));
  }
  return {first, RandomReal(kind, rng)};
}

int64_t RandomInteger(ElementType type, DataKind kind, std::mt19937& rng) {
  if (type == ElementType::kBool) return static_cast<int64_t>(rng() & 1);
  if (kind == DataKind::kNan) return -1;
  if (kind == DataKind::kUniform) {
    return static_cast<int64_t>(uint64_t{rng()} << 32 | rng());
  }
  const auto value = static_cast<int64_t>(rng() % 19) - 9;
  return type == ElementType::kUint8 ? std::abs(value) : value;
}

}  // namespace

TensorStorage::TensorStorage(const core::OperandDesc& operand, DataKind kind,
                             int64_t shift, std::mt19937& rng)
    : type_(operand.element_type), element_bytes_(core::SizeOf(type_)) {
  data_offset_ = kGuardBytes + shift * element_bytes_;
  const int64_t span = core::SpanElements(operand.layout);
  const int64_t bytes = data_offset_ + span * element_bytes_ + kGuardBytes;
  image_.resize(static_cast<size_t>(bytes));
  is_element_.resize(static_cast<size_t>(bytes), false);
  for (int64_t i = 0; i < bytes; ++i) {
    image_[static_cast<size_t>(i)] = GuardByte(i);
  }
  const int64_t count = core::ElementCount(operand.layout);
  for (int64_t ordinal = 0; ordinal < count; ++ordinal) {
    int64_t offset = 0;
    int64_t rest = ordinal;
    for (int i = 0; i < operand.layout.mode_count(); ++i) {
      offset += rest % operand.layout.extents[i] * operand.layout.strides[i];
      rest /= operand.layout.extents[i];
    }
    const auto at = data_offset_ + offset * element_bytes_;
    std::fill_n(is_element_.begin() + at, element_bytes_, true);
    if (IsWhole(type_)) {
      StoreInteger(type_, RandomInteger(type_, kind, rng), &image_[at]);
    } else {
      Store(offset, RandomNumber(type_, kind, rng));
    }
  }
}

void TensorStorage::Store(int64_t offset, const Number& value) {
  StoreNumber(type_, value, &image_[data_offset_ + offset * element_bytes_]);
}

void TensorStorage::StoreBits(int64_t offset, const void* bits) {
  std::memcpy(&image_[data_offset_ + offset * element_bytes_], bits,
              static_cast<size_t>(element_bytes_));
}

std::optional<int64_t> TensorStorage::FirstTouchedGuard(
    const std::vector<std::byte>& after) const {
  for (size_t i = 0; i < image_.size(); ++i) {
    if (!is_element_[i] && after[i] != GuardByte(static_cast<int64_t>(i))) {
      return static_cast<int64_t>(i);
    }
  }
  return std::nullopt;
}

}  // namespace tensord::test
