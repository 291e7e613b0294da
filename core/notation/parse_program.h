// Statements of index notation, read.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/notation/syntax.h"

namespace tensord::core {

/// Reads statements, each on a line of its own or behind a `;`:
///
///   D[a,b,c] := 2*A[a,e,f,c,f,g]*B[g,b,e] - conj(C[c,a,b])/3   # comment
///   E[:] = D[-1,1,2]*(A[2,3] + alpha*B[3,2])*C[1,3,-2]
///
/// A line goes on behind an operator, a comma and inside brackets. A name or
/// label begins with a letter of any alphabet or `_`, goes on with digits, too,
/// and may end with primes; labels may also be integers and quoted characters.
/// Numbers are decimal; `2.5im` and `2.5j` are imaginary. `conj` is no name.
/// Signs before factors are the term's, and conjugates of conjugates cancel.
///
/// Functions of elements, at equal values of their arguments' labels:
///
///   E[i,j] := exp(A[i,j]/2) + max(B[j], 0)
///   D[i,j] = where(A[i,j] < B[j], A[i,j]^2, -1)/C[i,j]
///
/// abs, acos, acosh, asin, asinh, atan, atanh, ceil, cos, cosh, exp, floor,
/// imag, log, mish, real, relu, sigmoid, sin, sinh, softplus, softsign, sqrt,
/// swish, tan, tanh; max or maximum and min or minimum of two; where of a
/// condition and two; `^` or `**`, which binds more than a sign and to the
/// right; comparisons `==`, `!=`, `<`, `<=`, `>`, `>=`, which stand in
/// parentheses, as an argument, or are all of a statement. What an argument
/// sums is its own, and labels that it lacks repeat it; so are terms without
/// labels repeated in sums of others, or in all of an output that is there.
/// Division by a tensor is one, too.
///
/// Functions of whole tensors, each all that a statement assigns:
///
///   U[i,k], S[k], V[k,j] := svd(A[i,l]*B[l,j]; cutoff=1e-10, rank=64)
///   X[j,r] = solve(A[i,j], B[i,r]; structure=lower_triangular)
///
/// svd, qr, lq, eigh, cholesky; solve and inv. FactorizationDesc and
/// LinearSolveDesc say what they compute, with labels in place of modes; but
/// rows and columns are in the order in which the first argument has them
/// first, and batches of eigh are those of its values. Functions along a label
/// are such, too, see ReductionDesc:
///
///   D[i,j] := cumsum(A[i,j]; along=j)
///   I[i,j] := argsort(A[i,j]; along=j, descending=true)
///
/// cumsum, cumprod, cummax, cummin; argsort. The label may be left out where
/// there is but one. A label that occurs once in an argument is not summed.
/// Options are numbers, names of scalars, labels, and words.
///
/// Also what TensorOperations.jl takes: `≔` for `:=`. Blanks between labels in
/// place of commas, and a `;` between two groups of them, with or without
/// parentheses: `A[a b; c]`, `A[(a,b);(c,)]`, `A[();a b]`; `[1 -2]` are two. A
/// prime right behind `]` or `)`, and `adjoint`, conjugate. `a*b \ c*d` is
/// `c/a/b*d`. `tensorscalar(...)`, also `scalar(...)`, is a group that
/// sums all its labels, which are other ones than outside, as is a divisor in
/// parentheses that has each of them twice; `Diagonal(B)[i,j]` the matrix with
/// the vector B on its diagonal. All functions but `conj` are names where no
/// `(` follows.
///
/// Post    labels fit together as Sum says, an output's labels are distinct and
///         are those of the sum. A text without statements is a program.
/// Errors  INVALID_ARGUMENT, message with line and column, the label and what
///         was wanted; reasons SYNTAX_ERROR; LABEL_UNMATCHED: once on one side
///         only, or open where a scalar is wanted; LABEL_REPEATED: three times
///         or more in a term, twice in the output, a negative one twice in a
///         term for `[:]`; LABEL_REUSED: outside a group that has it twice;
///         LABELS_DIFFER: of the terms of a group or an argument;
///         RESULT_COUNT_MISMATCH: of a function of whole tensors;
///         OUTPUT_REPEATED; PROGRAM_TOO_LONG; PROGRAM_TOO_DEEP.
absl::StatusOr<ProgramSyntax> ParseProgram(absl::string_view text,
                                           const NotationLimits& limits = {});

}  // namespace tensord::core
