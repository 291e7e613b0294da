// What cuSOLVER's routines compute, straight from the textbook and in long
// double: the product's own kernels share none of it.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tensord::simt {

using Number = std::complex<long double>;

/// A matrix by columns.
struct NumberMatrix {
  NumberMatrix(int64_t m, int64_t n)
      : rows(m), columns(n), elements(static_cast<size_t>(m * n)) {}

  Number& operator()(int64_t i, int64_t j) {
    return elements[static_cast<size_t>(i + j * rows)];
  }
  const Number& operator()(int64_t i, int64_t j) const {
    return elements[static_cast<size_t>(i + j * rows)];
  }

  int64_t rows, columns;
  std::vector<Number> elements;
};

/// LAPACK's geqrf: R at and above the diagonal, reflectors below.
/// Returns  tau.
std::vector<Number> FactorQr(NumberMatrix& a);

/// LAPACK's orgqr: the first columns of Q in place of as many reflectors.
void FormQ(NumberMatrix& a, const std::vector<Number>& tau);

/// a = u diag(s) v^H; u and v are square, s descends.
/// Source  one-sided Jacobi: M. Hestenes, "Inversion of matrices by
///         biorthogonalization" (1958).
struct Svd {
  NumberMatrix u, v;
  std::vector<long double> s;
};
Svd Decompose(const NumberMatrix& a);

/// Of a Hermitian matrix whose lower triangle is read: eigenvectors take its
/// place.
/// Returns  eigenvalues, ascending.
/// Source   the cyclic Jacobi method, Golub and Van Loan, 8.5.
std::vector<long double> Diagonalize(NumberMatrix& a);

/// L in the lower triangle of a Hermitian matrix.
/// Returns  0, or the order of the first minor that is not positive.
int FactorCholesky(NumberMatrix& a);

/// LAPACK's getrf: L, whose diagonal is ones, below the diagonal and U above.
/// pivots (row): counted from 1, which row it was exchanged with.
/// Returns  0, or the first pivot that is 0, counted from 1.
int FactorLu(NumberMatrix& a, std::vector<int>& pivots);

/// The triangle of a matrix that is solved by, or its adjoint.
struct TriangleOf {
  bool is_lower = true;
  bool is_adjoint = false;
  bool has_unit_diagonal = false;
};
/// b becomes the triangle's inverse times b.
void SolveTriangle(const NumberMatrix& a, const TriangleOf& triangle,
                   NumberMatrix& b);

/// The same of what FactorLu() has made of a.
void SolveLu(const NumberMatrix& a, const std::vector<int>& pivots,
             NumberMatrix& b);

}  // namespace tensord::simt
