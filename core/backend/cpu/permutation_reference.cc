#include "core/backend/cpu/permutation_reference.h"

#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "core/backend/cpu/block/element_math.h"
#include "core/backend/cpu/block/tile_space.h"
#include "core/backend/reference_solution.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

constexpr double kNanosecondsPerElement = 10;

/// Reads and writes elements of types that are known when it runs: code for
/// each pair of types would be a hundred times as much.
template <typename T>
using Load = T (*)(const void* elements, int64_t at);
template <typename T>
using Save = void (*)(void* elements, int64_t at, T x);

/// Null where T and elements of `type` do not convert.
template <typename T>
Load<T> LoadOf(ElementType type) {
  return VisitElementType(type, [](auto element) -> Load<T> {
    using Element = decltype(element);
    if constexpr (kConverts<T, Element>) {
      return [](const void* elements, int64_t at) {
        return ConvertElement<T>(static_cast<const Element*>(elements)[at]);
      };
    } else {
      return nullptr;
    }
  });
}

template <typename T>
Save<T> SaveOf(ElementType type) {
  return VisitElementType(type, [](auto element) -> Save<T> {
    using Element = decltype(element);
    if constexpr (kConverts<Element, T>) {
      return [](void* elements, int64_t at, T x) {
        static_cast<Element*>(elements)[at] = ConvertElement<Element>(x);
      };
    } else {
      return nullptr;
    }
  });
}

bool Converts(ElementType type_a, ElementType type_d) {
  return VisitElementType(type_a, [&](auto a) {
    return VisitElementType(type_d, [&](auto d) {
      return kConverts<decltype(d), decltype(a)>;
    });
  });
}

/// Elements that stay what they are.
void Move(const PermutationProblem& problem,
          const PermutationOperands& operands) {
  const int64_t bytes = SizeOf(problem.type_a);
  const char* const a = static_cast<const char*>(operands.a);
  char* const d = static_cast<char*>(operands.d);
  ForEachElement(problem.modes, [&](const auto& at) {
    std::memcpy(d + at[PermutationProblem::kD] * bytes,
                a + at[PermutationProblem::kA] * bytes, bytes);
  });
}

template <typename T>
void Change(const PermutationProblem& problem,
            const PermutationOperands& operands) {
  const ComputeType compute = problem.compute_type;
  const Load<T> load = LoadOf<T>(problem.type_a);
  const Save<T> save = SaveOf<T>(problem.type_d);
  if (load == nullptr || save == nullptr) return;  // Solve() has asked.
  const bool is_zero = operands.alpha.IsZero();
  const bool is_one = operands.alpha.IsOne();
  const T alpha = RoundTo(compute, FactorAs<T>(operands.alpha));
  ForEachElement(problem.modes, [&](const auto& at) {
    T x = T();
    if (!is_zero) {
      x = load(operands.a, at[PermutationProblem::kA]);
      x = RoundTo(compute, ApplyUnary(problem.unary, x));
      if (!is_one) x = RoundTo(compute, Multiply(alpha, x));
    }
    save(operands.d, at[PermutationProblem::kD], x);
  });
}

void Permute(const PermutationProblem& problem,
             const PermutationOperands& operands) {
  if (problem.type_a == problem.type_d && operands.alpha.IsOne() &&
      problem.unary == UnaryOperator::kIdentity) {
    return Move(problem, operands);
  }
  VisitComputeElement(
      ComputeElement(problem.type_a, problem.type_d, problem.compute_type),
      [&](auto zero) { Change<decltype(zero)>(problem, operands); });
}

PermutationKernel::Solved Solve(const PermutationProblem& problem) {
  if (!Converts(problem.type_a, problem.type_d)) {
    return Unimplemented("CONVERSION_NOT_SUPPORTED", "conversion from ",
                         NameOf(problem.type_a), " in a to ",
                         NameOf(problem.type_d), " in d is not supported");
  }
  return SolveByReference<PermutationOperands>(
      kNanosecondsPerElement * static_cast<double>(ElementCount(problem.modes)),
      problem,
      [](const PermutationProblem& p, const PermutationOperands& operands,
         Stream&) {
        Permute(p, operands);
        return absl::OkStatus();
      });
}

}  // namespace

std::unique_ptr<const PermutationKernel> CreateReferencePermutation() {
  return std::make_unique<SimplePermutation>("cpu.permute.reference", Solve);
}

}  // namespace tensord::core
