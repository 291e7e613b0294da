#include "core/backend/cpu/contraction_copy.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/backend/cpu/block/block_convert.h"
#include "core/backend/cpu/block/tile_space.h"

namespace tensord::core {
namespace {

/// A tile is `kRows` rows of `kColumns` neighbours, in the first cache.
constexpr int64_t kRows = 16;
constexpr int64_t kColumns = 64;
/// Terms added one after another; longer sums are split in halves.
constexpr int64_t kLongestRun = 16;

/// Position of the mode with the smallest stride of `operand`.
template <size_t operand_count>
size_t Fastest(const LoopModes<operand_count>& modes, size_t operand) {
  return std::min_element(modes.begin(), modes.end(),
                          [&](const auto& x, const auto& y) {
                            return x.strides[operand] < y.strides[operand];
                          }) -
         modes.begin();
}

/// The modes as tiles: `columns` and `rows` innermost; one mode alone, or none,
/// has rows of one element.
template <size_t operand_count>
struct Tiling {
  TileSpace<operand_count> space;
  LoopMode<operand_count> columns = {1, {}};
  LoopMode<operand_count> rows = {1, {}};

  Tiling(const LoopModes<operand_count>& modes, size_t columns_by,
         size_t rows_by) {
    const size_t column_mode = Fastest(modes, columns_by);
    const size_t row_mode = Fastest(modes, rows_by);
    if (!modes.empty()) columns = modes[column_mode];
    if (row_mode != column_mode) rows = modes[row_mode];
    space.Add(columns, kColumns);
    space.Add(rows, kRows);
    for (size_t i = 0; i < modes.size(); ++i) {
      if (i != column_mode && i != row_mode) space.Add(modes[i]);
    }
  }
};

template <typename T>
void AddTo(T* sum, const T* terms, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    sum[i] = ApplyBinary(BinaryOperator::kAdd, sum[i], terms[i]);
  }
}

/// Rounds the `count` parts (real or imaginary) of a block.
void RoundParts(OperandRounding rounding, float* parts, int64_t count) {
  if (rounding == OperandRounding::kTf32) {
    for (int64_t i = 0; i < count; ++i) parts[i] = RoundToTf32(parts[i]);
  }
  if (rounding != OperandRounding::kFloat16 &&
      rounding != OperandRounding::kBfloat16) {
    return;
  }
  const ElementType narrow = rounding == OperandRounding::kFloat16
                                 ? ElementType::kFloat16
                                 : ElementType::kBfloat16;
  uint16_t rounded[2 * kColumns];
  FindStore(ElementType::kFloat32, narrow)(parts, count, rounded, 1);
  FindLoad(narrow, ElementType::kFloat32)(rounded, 1, count, parts);
}

/// Reads rows of the tensor.
template <typename T>
class RowReader {
 public:
  explicit RowReader(const OperandCopy& request)
      : load_(FindLoad(request.from, request.to)),
        element_bytes_(SizeOf(request.from)),
        rounding_(request.rounding),
        summed_(request.summed),
        sum_count_(ElementCount(request.summed)) {}

  /// row[i] = the sum of the elements at offset + i * stride.
  void Read(const void* tensor, int64_t offset, int64_t stride, int64_t count,
            T* row) const {
    const Row source{
        static_cast<const std::byte*>(tensor) + offset * element_bytes_, stride,
        count};
    Sum(source, 0, sum_count_, row);
  }

 private:
  struct Row {
    const std::byte* data;
    int64_t stride;
    int64_t count;
  };

  void Load(const Row& source, int64_t term, T* row) const {
    int64_t offset = 0;
    for (const auto& mode : summed_) {
      offset += term % mode.extent * mode.strides[0];
      term /= mode.extent;
    }
    load_(source.data + offset * element_bytes_, source.stride, source.count,
          row);
    if constexpr (std::is_same_v<T, float>) {
      RoundParts(rounding_, row, source.count);
    } else if constexpr (std::is_same_v<T, std::complex<float>>) {
      RoundParts(rounding_, reinterpret_cast<float*>(row), 2 * source.count);
    }
  }

  void Sum(const Row& source, int64_t begin, int64_t end, T* row) const {
    T terms[kColumns];
    if (end - begin > kLongestRun) {
      if (CurrentWork::ShouldStop()) return;
      const int64_t middle = begin + (end - begin) / 2;
      Sum(source, begin, middle, row);
      Sum(source, middle, end, terms);
      AddTo(row, terms, source.count);
      return;
    }
    Load(source, begin, row);
    for (int64_t term = begin + 1; term < end; ++term) {
      Load(source, term, terms);
      AddTo(row, terms, source.count);
    }
  }

  const LoadBlock load_;
  const int64_t element_bytes_;
  const OperandRounding rounding_;
  const LoopModes<1>& summed_;
  const int64_t sum_count_;
};

template <typename T>
void CopyOperandAs(ThreadPool& threads, const OperandCopy& request,
                   const void* tensor, T* copy) {
  constexpr size_t kTensor = OperandCopy::kTensor, kCopy = OperandCopy::kCopy;
  const Tiling<2> tiling(request.modes, kTensor, kCopy);
  const LoopMode<2>&columns = tiling.columns, &rows = tiling.rows;
  const RowReader<T> reader(request);
  const int64_t tile_bytes = kRows * kColumns *
                             static_cast<int64_t>(sizeof(T)) *
                             ElementCount(request.summed);
  const auto tile = [&](const auto& offsets, const auto& sizes) {
    T block[kRows * kColumns];
    const int64_t column_count = sizes[0], row_count = sizes[1];
    for (int64_t row = 0; row < row_count; ++row) {
      reader.Read(tensor, offsets[kTensor] + row * rows.strides[kTensor],
                  columns.strides[kTensor], column_count,
                  block + row * kColumns);
    }
    T* const target = copy + offsets[kCopy];
    for (int64_t column = 0; column < column_count; ++column) {
      for (int64_t row = 0; row < row_count; ++row) {
        target[column * columns.strides[kCopy] + row * rows.strides[kCopy]] =
            block[row * kColumns + column];
      }
    }
  };
  ParallelRanges(threads, tiling.space.tile_count(), tile_bytes,
                 [&](int64_t begin, int64_t end) {
                   tiling.space.ForEach(begin, end, tile);
                 });
}

template <typename T>
void CopyResultAs(ThreadPool& threads, const ResultCopy& request,
                  const Scalar& beta, const T* result, const void* c, void* d) {
  using R = ResultCopy;
  const Tiling<3> tiling(request.modes, R::kD,
                         result == nullptr ? R::kD : R::kResult);
  const LoopMode<3>&columns = tiling.columns, &rows = tiling.rows;
  const LoadBlock load_result = FindLoad(request.from, request.from);
  const LoadBlock load_c = FindLoad(request.to, request.from);
  const StoreBlock store_d = FindStore(request.from, request.to);
  const int64_t element_bytes = SizeOf(request.to);
  const bool reads_c = !beta.IsZero();
  const auto at = [&](size_t operand, const auto& offsets, int64_t row) {
    return offsets[operand] + row * rows.strides[operand];
  };
  const auto tile = [&](const auto& offsets, const auto& sizes) {
    T values[kColumns], addends[kColumns];
    const int64_t column_count = sizes[0], row_count = sizes[1];
    for (int64_t row = 0; row < row_count; ++row) {
      if (result == nullptr) {
        std::fill_n(values, column_count, T(0));
      } else {
        load_result(result + at(R::kResult, offsets, row),
                    columns.strides[R::kResult], column_count, values);
      }
      if (reads_c) {
        load_c(static_cast<const std::byte*>(c) +
                   at(R::kC, offsets, row) * element_bytes,
               columns.strides[R::kC], column_count, addends);
        for (int64_t i = 0; i < column_count; ++i) {
          addends[i] = Multiply(FactorAs<T>(beta),
                                ConjugatedIf(request.conj_c, addends[i]));
        }
        AddTo(values, addends, column_count);
      }
      store_d(
          values, column_count,
          static_cast<std::byte*>(d) + at(R::kD, offsets, row) * element_bytes,
          columns.strides[R::kD]);
    }
  };
  ParallelRanges(threads, tiling.space.tile_count(),
                 kRows * kColumns * element_bytes,
                 [&](int64_t begin, int64_t end) {
                   tiling.space.ForEach(begin, end, tile);
                 });
}

}  // namespace

void CopyOperand(ThreadPool& threads, const OperandCopy& request,
                 const void* tensor, void* copy) {
  VisitComputeElement(request.to, [&]<typename T>(T) {
    CopyOperandAs(threads, request, tensor, static_cast<T*>(copy));
  });
}

void CopyResult(ThreadPool& threads, const ResultCopy& request,
                const Scalar& beta, const void* result, const void* c,
                void* d) {
  VisitComputeElement(request.from, [&]<typename T>(T) {
    CopyResultAs(threads, request, beta, static_cast<const T*>(result), c, d);
  });
}

}  // namespace tensord::core
