// Host memory for one operand, surrounded by bytes that nobody may touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "core/ops/operand.h"
#include "tests/testing/oracle/number.h"

namespace tensord::test {

/// What the elements are. Integers: kUniform gives any bits, the others small
/// values.
enum class DataKind {
  kUniform,        // in [-1, 1]
  kWide,           // in [-8, 8], halves as often as not
  kPositive,       // in [1/4, 4]
  kAboveOne,       // in [1, 4]
  kNearOne,        // modulus in [3/4, 5/4]
  kSmallIntegers,  // whole numbers in [-9, 9]
  kSparseNan,      // one in forty NaN, the rest in [-1, 1]
  kNan,            // quiet NaN; of integers all bits set
};

/// The bytes of one tensor with guards before, after and in its gaps.
///
///   guard | element gap element ... | guard
class TensorStorage {
 public:
  /// Before the first element at least, after the last exactly.
  static constexpr int64_t kGuardBytes = 256;

  /// Fills the elements with data of `kind` and all else with a pattern. The
  /// first element lies `shift` elements beyond an aligned address.
  TensorStorage(const core::OperandDesc& operand, DataKind kind, int64_t shift,
                std::mt19937& rng);

  /// Every byte, guards included.
  const std::vector<std::byte>& image() const { return image_; }
  std::vector<std::byte>& image() { return image_; }

  /// Where in the image the first element lies.
  int64_t data_offset() const { return data_offset_; }
  const std::byte* data() const { return image_.data() + data_offset_; }

  /// Overwrites the element `offset` elements from the first.
  void Store(int64_t offset, const Number& value);
  void StoreBits(int64_t offset, const void* bits);

  /// The first byte outside the elements, as an index into the image, that
  /// differs in `after`.
  std::optional<int64_t> FirstTouchedGuard(
      const std::vector<std::byte>& after) const;

 private:
  core::ElementType type_;
  int64_t element_bytes_;
  int64_t data_offset_;
  std::vector<std::byte> image_;
  std::vector<bool> is_element_;  // (byte of the image)
};

}  // namespace tensord::test
