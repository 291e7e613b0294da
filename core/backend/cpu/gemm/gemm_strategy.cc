#include "core/backend/cpu/gemm/gemm_strategy.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "core/base/checked_math.h"

namespace tensord::core {
namespace {

enum Operand : size_t { kA = 0, kB = 1, kD = 2 };
using Strides = std::array<int64_t, 3>;  // (a, b, d); 0 where there is none
using Flags = std::array<bool, 3>;       // (a, b, d)

/// Most modes of a group that are tried as rows or columns.
constexpr size_t kMaxTried = 4;

/// Longest distance between the lines of a matrix that BLAS takes.
constexpr int64_t kMaxLine = std::numeric_limits<int32_t>::max();

/// A mode of the problem.
struct Axis {
  int64_t extent;
  Strides strides;
  int64_t addend_stride;  // of c
};

/// Modes that the operands that stay in place advance through as one.
struct AxisGroup {
  int64_t extent = 1;
  Strides strides = {};    // of the operands in place; later of the copies, too
  std::vector<Axis> axes;  // fastest first
};

struct Problem {
  std::vector<Axis> batch, m, n, k;
  std::array<int64_t, 3> element_counts;  // (a, b, d)
  int64_t element_bytes;                  // of the arithmetic
  std::array<int64_t, 3> tensor_bytes;    // of one element as stored
  double flops_per_product;
  bool is_real = true;   // floating-point numbers
  bool is_huge = false;  // strides or counts beyond int32
};

template <size_t count>
std::vector<Axis> AxesOf(const LoopModes<count>& modes,
                         const std::array<int, 3>& columns, int addend) {
  std::vector<Axis> axes;
  for (const LoopMode<count>& mode : modes) {
    Axis axis{mode.extent, {}, addend < 0 ? 0 : mode.strides[addend]};
    for (size_t i = 0; i < 3; ++i) {
      if (columns[i] >= 0) axis.strides[i] = mode.strides[columns[i]];
    }
    axes.push_back(axis);
  }
  return axes;
}

Problem Read(const ContractionProblem& p) {
  using P = ContractionProblem;
  Problem problem;
  problem.batch =
      AxesOf(p.batch, {P::kBatchA, P::kBatchB, P::kBatchD}, P::kBatchC);
  problem.m = AxesOf(p.m, {P::kFreeInput, -1, P::kFreeD}, P::kFreeC);
  problem.n = AxesOf(p.n, {-1, P::kFreeInput, P::kFreeD}, P::kFreeC);
  problem.k = AxesOf(p.k, {P::kSumA, P::kSumB, -1}, -1);
  const int64_t batch = ElementCount(p.batch), m = ElementCount(p.m),
                n = ElementCount(p.n), k = ElementCount(p.k);
  problem.element_counts = {batch * m * k, batch * k * n, batch * m * n};
  const ElementType type = GemmTypeOf(p);
  problem.element_bytes = SizeOf(type);
  problem.tensor_bytes = {SizeOf(p.type_a), SizeOf(p.type_b), SizeOf(p.type_d)};
  problem.flops_per_product = IsComplex(type) ? 8 : 2;
  problem.is_real = !IsComplex(type) && !IsInteger(type);
  // Double precision runs at half the speed, plain loops over integers slower.
  if (RealPartOf(type) == ElementType::kFloat64) problem.flops_per_product *= 2;
  if (IsInteger(type)) problem.flops_per_product *= 8;
  for (const auto* axes :
       {&problem.batch, &problem.m, &problem.n, &problem.k}) {
    for (const Axis& axis : *axes) {
      for (const int64_t stride : axis.strides) {
        problem.is_huge |= stride > kMaxLine;
      }
    }
  }
  for (const int64_t count : problem.element_counts) {
    problem.is_huge |= count > kMaxLine;
  }
  return problem;
}

/// Merges the modes of a role as far as the operands in place allow.
std::vector<AxisGroup> Merge(std::vector<Axis> axes,
                             std::array<Operand, 3> by_preference,
                             size_t operand_count, const Flags& copied) {
  const auto first = by_preference.begin();
  const auto last = first + operand_count;
  const auto in_place = std::find_if(
      first, last, [&](Operand operand) { return !copied[operand]; });
  const Operand leading = in_place == last ? *first : *in_place;
  std::stable_sort(axes.begin(), axes.end(), [&](const Axis& x, const Axis& y) {
    return x.strides[leading] < y.strides[leading];
  });
  std::vector<AxisGroup> groups;
  for (const Axis& axis : axes) {
    const bool merges =
        !groups.empty() && std::all_of(first, last, [&](Operand operand) {
          const AxisGroup& group = groups.back();
          return copied[operand] ||
                 axis.strides[operand] == group.extent * group.strides[operand];
        });
    if (merges) {
      groups.back().extent *= axis.extent;
    } else {
      groups.push_back({axis.extent, axis.strides, {}});
    }
    groups.back().axes.push_back(axis);
  }
  return groups;
}

/// One choice of rows and columns, of copies, and of copies that are flipped.
struct Choice {
  int m, n, k;  // groups; the rest is looped over; -1: none
  Flags copied, flipped;
};

int64_t Smallest(const AxisGroup& group, Operand operand) {
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (const Axis& axis : group.axes) {
    smallest = std::min(smallest, axis.strides[operand]);
  }
  return smallest;
}

/// The groups of every role under one choice of copies.
struct Grouping {
  std::vector<AxisGroup> batch, m, n, k;
};

/// Lays out the copy of `operand`: the rows and columns innermost, whichever is
/// faster in the tensor first or, `flipped`, last, then the loops as they lie
/// in the tensor.
GemmCopy LayOutCopy(Operand operand, bool flipped, AxisGroup* rows,
                    AxisGroup* columns, std::vector<AxisGroup*> loops) {
  const auto by_stride = [&](const AxisGroup* x, const AxisGroup* y) {
    return Smallest(*x, operand) < Smallest(*y, operand);
  };
  std::vector<AxisGroup*> order;
  for (AxisGroup* group : {rows, columns}) {
    if (group != nullptr) order.push_back(group);
  }
  std::stable_sort(order.begin(), order.end(), by_stride);
  if (flipped) std::reverse(order.begin(), order.end());
  std::stable_sort(loops.begin(), loops.end(), by_stride);
  order.insert(order.end(), loops.begin(), loops.end());
  GemmCopy copy{.needed = true, .modes = {}, .element_count = 1};
  for (AxisGroup* group : order) {
    group->strides[operand] = copy.element_count;
    for (const Axis& axis : group->axes) {
      copy.modes.push_back({axis.extent,
                            {axis.strides[operand], copy.element_count,
                             operand == kD ? axis.addend_stride : 0}});
      copy.element_count *= axis.extent;
    }
  }
  return copy;
}

/// How a product is cut, and its nanoseconds on one thread.
struct Blocks {
  int64_t m, n;
  double nanoseconds;
};

constexpr double kCallNanoseconds = 40;
/// How much faster the caches are than a copy in memory.
constexpr double kInCache = 3;

/// Bytes that reading or writing a matrix moves.
double Traffic(int64_t rows, int64_t columns, int64_t row_stride,
               int64_t column_stride, int64_t element_bytes) {
  const int64_t run = row_stride == 1 ? rows : columns;
  const int64_t line = row_stride == 1 ? column_stride : row_stride;
  // Short lines far apart: a page and part of a cache line each.
  const bool is_scattered =
      run * element_bytes < 512 && line > run && line * element_bytes >= 4096;
  return static_cast<double>(rows) * static_cast<double>(columns) *
         static_cast<double>(element_bytes) * (is_scattered ? 4 : 1);
}

double Flops(int64_t m, int64_t n, int64_t k, const Problem& problem) {
  return static_cast<double>(m) * static_cast<double>(n) *
         static_cast<double>(k) * problem.flops_per_product;
}

/// The product in one piece: OpenBLAS copies both operands into its own order
/// and reads and writes d; rows shorter than a vector are wasted.
Blocks Whole(const MatrixProduct& p, const Problem& problem,
             const GemmRates& rates) {
  const int64_t bytes = problem.element_bytes;
  const int64_t vector = std::max<int64_t>(1, 32 / bytes);
  const bool by_columns = p.d_m == 1 || p.m == 1;
  const double moved = Traffic(p.m, p.k, p.a_m, p.a_k, bytes) +
                       Traffic(p.k, p.n, p.b_k, p.b_n, bytes) +
                       Traffic(p.m, p.n, p.d_m, p.d_n, bytes);
  const double flops =
      Flops(by_columns ? RoundUp(p.m, vector) : p.m,
            by_columns ? p.n : RoundUp(p.n, vector), p.k, problem);
  return {p.m, p.n,
          kCallNanoseconds + flops / rates.flops_per_ns +
              moved / (kInCache * rates.bytes_per_ns)};
}

/// The product in blocks that OpenBLAS's kernels for small products take. They
/// read the operands in place and fill their vectors along d's columns or, when
/// both operands are transposed, along its rows; with one of a thin product's
/// operands transposed the first way, they do not do well.
Blocks Small(const MatrixProduct& p, const Problem& problem,
             const GemmRates& rates) {
  constexpr int64_t kMostProducts = 1'000'000;
  constexpr int64_t kShort = 96;
  const int64_t bytes = problem.element_bytes;
  const int64_t vector = 64 / bytes;
  const bool by_columns = p.d_m == 1 || p.m == 1;
  const bool transposes_first = by_columns ? p.a_m != 1 : p.b_n != 1;
  const bool transposes_second = by_columns ? p.b_k != 1 : p.a_k != 1;
  const bool along_rows = transposes_first && transposes_second;
  // The extent along the vectors, and the other one.
  const bool m_is_long = by_columns != along_rows;
  const int64_t extent = m_is_long ? p.m : p.n;
  const int64_t other = m_is_long ? p.n : p.m;
  int64_t other_block = std::min(other, kShort);
  int64_t block = std::min(extent, kMostProducts / (other_block * p.k));
  if (block < extent) block = block / vector * vector;
  if (block < 2 * vector && block < extent) {
    return {p.m, p.n, std::numeric_limits<double>::infinity()};
  }
  other_block = std::min(other, kMostProducts / (block * p.k));
  const double calls =
      static_cast<double>((extent + block - 1) / block) *
      static_cast<double>((other + other_block - 1) / other_block);
  const double slowdown = transposes_first && !along_rows ? 1.9 : 1.1;
  const double written = Traffic(p.m, p.n, p.d_m, p.d_n, bytes);
  const double nanoseconds =
      calls * kCallNanoseconds +
      slowdown * Flops(RoundUp(extent, vector), other, p.k, problem) /
          rates.flops_per_ns +
      written / (kInCache * rates.bytes_per_ns);
  return {m_is_long ? block : other_block, m_is_long ? other_block : block,
          nanoseconds};
}

/// The faster way to do the product.
Blocks CutProduct(const MatrixProduct& p, const Problem& problem,
                  const GemmRates& rates) {
  const Blocks whole = Whole(p, problem, rates);
  if (!problem.is_real || !rates.has_small_kernels) return whole;
  const Blocks small = Small(p, problem, rates);
  return small.nanoseconds < whole.nanoseconds ? small : whole;
}

/// Copies move rows against columns: dearer than a plain copy.
double CopyNanoseconds(const Problem& problem, Operand operand,
                       const GemmRates& rates) {
  constexpr double kSlowdown = 1.7;
  constexpr double kCall = 500;
  const int64_t bytes = problem.element_counts[operand] *
                        (problem.tensor_bytes[operand] + problem.element_bytes);
  return kCall +
         kSlowdown * static_cast<double>(bytes) / (2 * rates.bytes_per_ns);
}

AxisGroup* At(std::vector<AxisGroup>& groups, int index) {
  return index < 0 ? nullptr : &groups[index];
}

using Loops = std::vector<AxisGroup*>;

/// All groups but the one at `taken`.
Loops RestOf(std::vector<AxisGroup>& groups, int taken) {
  Loops rest;
  for (int i = 0; i < static_cast<int>(groups.size()); ++i) {
    if (i != taken) rest.push_back(&groups[i]);
  }
  return rest;
}

Loops Joined(Loops loops, const Loops& x, const Loops& y) {
  loops.insert(loops.end(), x.begin(), x.end());
  loops.insert(loops.end(), y.begin(), y.end());
  return loops;
}

/// The product whose rows, columns and terms are these groups; null: one each.
MatrixProduct ProductOf(const AxisGroup* m, const AxisGroup* n,
                        const AxisGroup* k) {
  const AxisGroup single;
  if (m == nullptr) m = &single;
  if (n == nullptr) n = &single;
  if (k == nullptr) k = &single;
  return {.m = m->extent,
          .n = n->extent,
          .k = k->extent,
          .a_m = m->strides[kA],
          .a_k = k->strides[kA],
          .b_k = k->strides[kB],
          .b_n = n->strides[kB],
          .d_m = m->strides[kD],
          .d_n = n->strides[kD]};
}

/// The strategy that one choice leads to; its nanoseconds are infinite when
/// BLAS cannot do it.
GemmStrategy Build(const Problem& problem, Grouping grouping,
                   const Choice& choice, const GemmRates& rates) {
  AxisGroup* const m = At(grouping.m, choice.m);
  AxisGroup* const n = At(grouping.n, choice.n);
  AxisGroup* const k = At(grouping.k, choice.k);
  const Loops batch_loops = RestOf(grouping.batch, -1);
  const Loops m_loops = RestOf(grouping.m, choice.m);
  const Loops n_loops = RestOf(grouping.n, choice.n);
  const Loops k_loops = RestOf(grouping.k, choice.k);

  GemmStrategy s;
  double work = 0;
  const auto copy_of = [&](Operand operand, AxisGroup* rows, AxisGroup* columns,
                           const Loops& x, const Loops& y) {
    work += CopyNanoseconds(problem, operand, rates);
    return LayOutCopy(operand, choice.flipped[operand], rows, columns,
                      Joined(batch_loops, x, y));
  };
  if (choice.copied[kA]) s.a = copy_of(kA, m, k, m_loops, k_loops);
  if (choice.copied[kB]) s.b = copy_of(kB, n, k, n_loops, k_loops);
  if (choice.copied[kD]) s.d = copy_of(kD, m, n, m_loops, n_loops);

  const MatrixProduct& p = s.product = ProductOf(m, n, k);
  if (!IsMatrix(p.m, p.k, p.a_m, p.a_k) || !IsMatrix(p.k, p.n, p.b_k, p.b_n) ||
      !IsMatrix(p.m, p.n, p.d_m, p.d_n)) {
    s.nanoseconds = std::numeric_limits<double>::infinity();
    return s;
  }
  int64_t calls = 1;
  for (const AxisGroup* group : Joined(batch_loops, m_loops, n_loops)) {
    s.loops.push_back({group->extent, group->strides});
    calls *= group->extent;
  }
  std::stable_sort(s.loops.begin(), s.loops.end(),
                   [](const auto& x, const auto& y) {
                     return x.strides[kD] < y.strides[kD];
                   });
  for (const AxisGroup* group : k_loops) {
    s.k_loops.push_back(
        {group->extent, {group->strides[kA], group->strides[kB]}});
    calls *= group->extent;
  }
  const Blocks blocks = CutProduct(p, problem, rates);
  s.m_block = blocks.m;
  s.n_block = blocks.n;
  work += static_cast<double>(calls) * blocks.nanoseconds;
  s.nanoseconds = work / rates.thread_count;
  return s;
}

/// Groups worth trying as rows or columns: the longest, and those that are
/// fastest in some operand; in a huge problem also none, because lines further
/// apart than BLAS can say must be looped over.
std::vector<int> Tried(const std::vector<AxisGroup>& groups, bool is_huge) {
  if (groups.empty()) return {-1};
  std::vector<int> order(groups.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  const auto has_unit_stride = [&](int i) {
    return std::count(groups[i].strides.begin(), groups[i].strides.end(), 1) >
           0;
  };
  std::stable_sort(order.begin(), order.end(), [&](int x, int y) {
    if (has_unit_stride(x) != has_unit_stride(y)) return has_unit_stride(x);
    return groups[x].extent > groups[y].extent;
  });
  if (order.size() > kMaxTried) order.resize(kMaxTried);
  if (is_huge) order.push_back(-1);
  return order;
}

/// The cheapest strategy that copies at least the operands in `forced`.
GemmStrategy Cheapest(const Problem& problem, const Flags& forced,
                      const GemmRates& rates) {
  const auto& counts = problem.element_counts;
  const bool uses_small_kernels = problem.is_real && rates.has_small_kernels;
  GemmStrategy best;
  best.nanoseconds = std::numeric_limits<double>::infinity();
  // Fewest copies first, so that of equals the simplest wins.
  for (const int mask : {0, 1, 2, 4, 3, 5, 6, 7}) {
    const Flags copied = {(mask & 1) != 0, (mask & 2) != 0, (mask & 4) != 0};
    if (forced[kA] > copied[kA] || forced[kB] > copied[kB] ||
        forced[kD] > copied[kD]) {
      continue;
    }
    double copying = 0;
    for (const Operand operand : {kA, kB, kD}) {
      if (copied[operand]) copying += CopyNanoseconds(problem, operand, rates);
    }
    if (copying >= best.nanoseconds * rates.thread_count) continue;
    const auto pair = [&](Operand x, Operand y) {
      return counts[x] >= counts[y] ? std::array{x, y, y} : std::array{y, x, x};
    };
    const Operand larger = counts[kA] >= counts[kB] ? kA : kB;
    const Grouping grouping = {
        .batch = Merge(problem.batch, {kD, larger, larger == kA ? kB : kA}, 3,
                       copied),
        .m =
            Merge(problem.m, copied[kD] ? pair(kA, kD) : std::array{kD, kA, kA},
                  2, copied),
        .n =
            Merge(problem.n, copied[kD] ? pair(kB, kD) : std::array{kD, kB, kB},
                  2, copied),
        .k = Merge(problem.k, pair(kA, kB), 2, copied)};
    for (const int m : Tried(grouping.m, problem.is_huge)) {
      for (const int n : Tried(grouping.n, problem.is_huge)) {
        for (const int k : Tried(grouping.k, problem.is_huge)) {
          for (int flips = 0; flips < 8; ++flips) {
            const Flags flipped = {(flips & 1) != 0, (flips & 2) != 0,
                                   (flips & 4) != 0};
            if ((flips & ~mask) != 0) continue;
            if (flips != 0 && !uses_small_kernels) break;
            GemmStrategy candidate =
                Build(problem, grouping, {m, n, k, copied, flipped}, rates);
            if (candidate.nanoseconds < best.nanoseconds) {
              best = std::move(candidate);
            }
          }
        }
      }
    }
  }
  return best;
}

/// In how many parts to sum: one, unless k is so long against m and n that
/// blocks of d alone would neither use many threads nor stay in the cache.
int64_t PartsOfK(const GemmStrategy& s) {
  constexpr int64_t kShortestPart = 2048;
  constexpr int64_t kMostParts = 32;
  constexpr int64_t kBlock = 64;
  if (!s.k_loops.empty()) return 1;
  const MatrixProduct& p = s.product;
  const int64_t blocks = ElementCount(s.loops) * ((p.m + kBlock - 1) / kBlock) *
                         ((p.n + kBlock - 1) / kBlock);
  if (blocks >= kBlock || p.k < 2 * kShortestPart) return 1;
  // Parts of d should be small beside a and b.
  const double ratio =
      static_cast<double>(p.k) * static_cast<double>(p.m + p.n) /
      (32.0 * static_cast<double>(p.m) * static_cast<double>(p.n));
  const int64_t parts = std::min({p.k / kShortestPart, kMostParts,
                                  static_cast<int64_t>(std::min(ratio, 1e6))});
  if (parts < 4) return 1;
  const int64_t length = (p.k + parts - 1) / parts;
  return (p.k + length - 1) / length;
}

}  // namespace

bool IsMatrix(int64_t rows, int64_t columns, int64_t row_stride,
              int64_t column_stride) {
  const auto stored = [](int64_t fast, int64_t slow, int64_t fast_stride,
                         int64_t slow_stride) {
    return (fast == 1 || fast_stride == 1) &&
           (slow == 1 || (slow_stride >= fast && slow_stride <= kMaxLine));
  };
  return stored(rows, columns, row_stride, column_stride) ||
         stored(columns, rows, column_stride, row_stride);
}

ElementType GemmTypeOf(const ContractionProblem& problem) {
  if (IsInteger(problem.type_d)) return problem.type_d;
  const bool is_double = problem.compute_type == ComputeType::kFloat64;
  if (IsComplex(problem.type_d)) {
    return is_double ? ElementType::kComplex128 : ElementType::kComplex64;
  }
  return is_double ? ElementType::kFloat64 : ElementType::kFloat32;
}

GemmStrategy ChooseGemmStrategy(const ContractionProblem& p,
                                const GemmRates& rates) {
  const Problem problem = Read(p);
  const ElementType type = GemmTypeOf(p);
  const OperandRounding rounding = RoundingOf(p.type_d, p.compute_type);
  const bool rounds = rounding != OperandRounding::kNone;
  const Flags forced = {p.type_a != type || rounds || !p.a_only.empty(),
                        p.type_b != type || rounds || !p.b_only.empty(),
                        p.type_d != type};
  GemmStrategy best = Cheapest(problem, forced, rates);
  if (PartsOfK(best) > 1) {
    // Each part goes into a copy of d.
    const GemmStrategy copying =
        Cheapest(problem, {forced[kA], forced[kB], true}, rates);
    const int64_t parts = PartsOfK(copying);
    if (parts > 1) {
      best = copying;
      best.k_parts = parts;
    }
  }
  best.type = type;
  best.rounding = rounding;
  const auto summed_bytes = [&](const LoopModes<1>& modes, Operand operand) {
    return modes.empty()
               ? 0.0
               : static_cast<double>(ElementCount(modes)) *
                     static_cast<double>(problem.element_counts[operand] *
                                         problem.tensor_bytes[operand]);
  };
  best.nanoseconds +=
      (summed_bytes(p.a_only, kA) + summed_bytes(p.b_only, kB)) /
      rates.bytes_per_ns / rates.thread_count;
  return best;
}

}  // namespace tensord::core
