// A contraction in canonical form.
#pragma once

#include <cstdint>
#include <utility>

#include "core/base/element_type.h"
#include "core/ops/contraction.h"
#include "core/problem/loop_modes.h"

namespace tensord::core {

/// d[batch,m,n] = alpha * sum_k a[batch,m,k] * b[batch,k,n] + beta * c, as mode
/// groups:
///   batch  in a, b and d        m  in a and d        n  in b and d
///   k      in a and b           a_only, b_only  in one input, summed there
///
/// Invariant  batch, m and n are Canonical() led by d, k and a_only led by a,
///            b_only led by b. conj_x is false for real types. Without c its
///            strides are those of d. d has elements; a summed group may have
///            none (one mode of extent 0): then the sum is 0.
struct ContractionProblem {
  static constexpr size_t kBatchA = 0, kBatchB = 1, kBatchC = 2, kBatchD = 3;
  static constexpr size_t kFreeInput = 0, kFreeC = 1, kFreeD = 2;  // m, n
  static constexpr size_t kSumA = 0, kSumB = 1;                    // k

  ElementType type_a = ElementType::kFloat32;
  ElementType type_b = ElementType::kFloat32;
  ElementType type_d = ElementType::kFloat32;  // of c, too
  ComputeType compute_type = ComputeType::kFloat32;
  bool conj_a = false;
  bool conj_b = false;
  bool conj_c = false;
  /// What all operands' addresses are multiples of; at most kWidestAccess.
  int64_t alignment_bytes = 1;
  LoopModes<4> batch;
  LoopModes<3> m;
  LoopModes<3> n;
  LoopModes<2> k;
  LoopModes<1> a_only;
  LoopModes<1> b_only;

  /// Wider accesses do not exist on any device.
  static constexpr int64_t kWidestAccess = 16;

  bool operator==(const ContractionProblem&) const = default;

  template <typename Self, typename Visit>
  static decltype(auto) VisitFields(Self& p, Visit&& visit) {
    return visit(p.type_a, p.type_b, p.type_d, p.compute_type, p.conj_a,
                 p.conj_b, p.conj_c, p.alignment_bytes, p.batch, p.m, p.n, p.k,
                 p.a_only, p.b_only);
  }
};

/// Requires Validate(desc).ok().
ContractionProblem Canonicalize(const ContractionDesc& desc);

/// The modes of d, those of m, of n and of batch, with their strides in a, b, c
/// and d.
LoopModes<4> KeptModesOf(const ContractionProblem& problem);

}  // namespace tensord::core
