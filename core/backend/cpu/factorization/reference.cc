#include "core/backend/cpu/factorization/reference.h"

#include <algorithm>
#include <cstdint>

#include "core/backend/cpu/factorization/decomposition_reference.h"
#include "core/backend/cpu/factorization/qr_reference.h"
#include "core/base/status.h"

namespace tensord::core {

std::unique_ptr<const FactorizationKernel> CreateReferenceFactorization(
    ThreadPool& threads) {
  return std::make_unique<SimpleFactorization>(
      "cpu.factorize.reference",
      [&threads](
          const FactorizationProblem& problem) -> SimpleFactorization::Solved {
        if (problem.method == FactorizationMethod::kQr) {
          return SolveReferenceQr(problem);
        }
        // Larger ones would take it hours.
        constexpr int64_t kMost = 2048;
        const int64_t rows = ElementCount(problem.rows);
        const int64_t columns = ElementCount(problem.columns);
        if (std::min(rows, columns) > kMost) {
          return Unimplemented(
              "MATRIX_TOO_LARGE", "the matrix has ", rows, " x ", columns,
              " elements, wanted a shorter side of at most ", kMost);
        }
        return SolveReferenceDecomposition(problem, threads);
      });
}

}  // namespace tensord::core
