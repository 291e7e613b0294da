// Matrices in memory, of the types that NVIDIA's libraries have.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "cuComplex.h"
#include "tests/simt/cusolver/decompose.h"

namespace tensord::simt {

template <typename T>
Number Read(const T& x) {
  if constexpr (std::is_floating_point_v<T>) {
    return x;
  } else {
    return {x.x, x.y};
  }
}
template <typename T>
void Write(T& to, const Number& x) {
  if constexpr (std::is_floating_point_v<T>) {
    to = static_cast<T>(x.real());
  } else {
    using Real = decltype(to.x);
    to = T{static_cast<Real>(x.real()), static_cast<Real>(x.imag())};
  }
}

/// A matrix by columns; T may be const.
template <typename T>
struct Place {
  int rows, columns;
  T* data;
  int ld;

  bool is_valid() const {
    return rows > 0 && columns > 0 && data != nullptr && ld >= rows;
  }
  T& at(int64_t i, int64_t j) const { return data[i + j * ld]; }

  NumberMatrix Load() const {
    NumberMatrix matrix(rows, columns);
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t i = 0; i < rows; ++i) matrix(i, j) = Read(at(i, j));
    }
    return matrix;
  }
  /// What is on one side of the diagonal, and on it; zeros elsewhere.
  NumberMatrix LoadTriangle(bool is_lower) const {
    NumberMatrix matrix(rows, columns);
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t i = is_lower ? j : 0; i < (is_lower ? rows : j + 1); ++i) {
        matrix(i, j) = Read(at(i, j));
      }
    }
    return matrix;
  }
  void Store(const NumberMatrix& matrix) const {
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t i = 0; i < rows; ++i) Write(at(i, j), matrix(i, j));
    }
  }
  void Spoil(bool above_diagonal_alone = false) const {
    constexpr long double kNan = std::numeric_limits<long double>::quiet_NaN();
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t end = above_diagonal_alone ? j : rows;
      for (int64_t i = 0; i < end; ++i) Write(at(i, j), kNan);
    }
  }
};

}  // namespace tensord::simt
