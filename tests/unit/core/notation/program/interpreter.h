// Programs carried out one element at a time, and notation taken at its word.
#pragma once

#include <complex>
#include <map>
#include <string>
#include <vector>

#include "core/base/layout.h"
#include "core/notation/parse_einsum.h"
#include "core/notation/program/lower.h"
#include "core/notation/program/program.h"
#include "core/notation/syntax.h"

namespace tensord::core::test {

using Number = std::complex<double>;

/// A tensor of complex128 and how it lies.
struct Values {
  Layout layout;
  std::vector<Number> data;  // the layout's span

  Number& At(const std::vector<int64_t>& index);
  Number At(const std::vector<int64_t>& index) const;
};
using ValuesByName = std::map<std::string, Values>;

/// Runs `program`, all of whose tensors are complex128, on `operands`, in their
/// order; those that it writes are changed. Temporaries begin as NaN. `kept` is
/// what the program keeps, to be computed when it is empty or null.
/// Returns  the outputs.
std::vector<Values> RunProgram(const Program& program,
                               std::vector<Values>& operands,
                               std::vector<Number>* kept = nullptr);

/// What `syntax` means: statement by statement, every term a loop over all of
/// its labels. `tensors` has the operands before and everything afterwards.
void Evaluate(const ProgramSyntax& syntax,
              const std::map<std::string, Scalar>& scalars,
              ValuesByName& tensors);

/// What `einsum` means, likewise. Extents of 1 repeat.
Values Evaluate(const EinsumSyntax& einsum,
                const std::vector<Values>& operands);

}  // namespace tensord::core::test
