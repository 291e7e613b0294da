#include "core/backend/cuda/cycle_model.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tensord::core::cuda {
namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kTransactionBytes = 128;
constexpr int64_t kLineBytes = 32;
// Of requests, those that some cache answers.
constexpr double kCacheHits = 0.2;

/// Requests of warps for words at `base` + `words`, and the transactions they
/// take.
void CountRequests(const std::vector<int64_t>& words, int64_t base, int bytes,
                   double& requests, double& transactions) {
  std::array<int64_t, kWarp> segments;
  for (size_t first = 0; first < words.size(); first += kWarp) {
    const size_t count = std::min<size_t>(kWarp, words.size() - first);
    for (size_t i = 0; i < count; ++i) {
      segments[i] = (base + words[first + i]) * bytes / kTransactionBytes;
    }
    const auto end = segments.begin() + static_cast<int64_t>(count);
    if (!std::is_sorted(segments.begin(), end)) {
      std::sort(segments.begin(), end);
    }
    requests += 1;
    transactions += static_cast<double>(std::unique(segments.begin(), end) -
                                        segments.begin());
  }
}

/// Lines that words at `base` + `words`, which ascend, cover as a whole or in
/// part.
void CountLines(const std::vector<int64_t>& words, int64_t base, int bytes,
                double& full, double& partial) {
  for (size_t first = 0; first < words.size();) {
    const int64_t line = (base + words[first]) * bytes / kLineBytes;
    size_t next = first;
    while (next < words.size() &&
           (base + words[next]) * bytes / kLineBytes == line) {
      ++next;
    }
    const int64_t covered = static_cast<int64_t>(next - first) * bytes;
    (covered >= kLineBytes ? full : partial) += 1;
    first = next;
  }
}

}  // namespace

AccessCounts& AccessCounts::operator+=(const AccessCounts& other) {
  load_requests += other.load_requests;
  load_transactions += other.load_transactions;
  store_requests += other.store_requests;
  store_transactions += other.store_transactions;
  full_lines += other.full_lines;
  partial_lines += other.partial_lines;
  return *this;
}

TileAccesses::TileAccesses(std::vector<int64_t> loads, int load_bytes,
                           std::vector<int64_t> stores, int store_bytes)
    : loads_(std::move(loads)),
      stores_(std::move(stores)),
      load_bytes_(load_bytes),
      store_bytes_(store_bytes),
      sorted_stores_(stores_) {
  std::sort(sorted_stores_.begin(), sorted_stores_.end());
}

std::array<int64_t, 2> TileAccesses::AlignmentOf(int64_t load_base,
                                                 int64_t store_base) const {
  return {load_base * load_bytes_ % kTransactionBytes,
          store_base * store_bytes_ % kTransactionBytes};
}

AccessCounts TileAccesses::Count(int64_t load_base, int64_t store_base) const {
  AccessCounts counts;
  CountRequests(loads_, load_base, load_bytes_, counts.load_requests,
                counts.load_transactions);
  CountRequests(stores_, store_base, store_bytes_, counts.store_requests,
                counts.store_transactions);
  CountLines(sorted_stores_, store_base, store_bytes_, counts.full_lines,
             counts.partial_lines);
  return counts;
}

double TurnCycles(const GpuModel& model, const KernelShape& kernel,
                  const AccessCounts& accesses) {
  const CycleParameters& p = model.cycles;
  const double lines = accesses.full_lines + accesses.partial_lines;
  const double partial = lines > 0 ? accesses.partial_lines / lines : 0;
  const double transactions =
      (accesses.load_transactions +
       accesses.store_transactions * (1 + partial)) /
      (accesses.load_requests + accesses.store_requests);  // equation 13
  const double latency = p.base_latency + (transactions - 1) * p.departure;
  const double request_bytes = (transactions * (1 - kCacheHits) + kCacheHits) *
                               static_cast<double>(kTransactionBytes);
  // Warps that memory can serve at once: by the delay between transactions, and
  // by bandwidth.
  const double by_delay = latency / p.departure * kernel.parallel_requests;
  const double by_bandwidth =
      model.memory_bytes_per_ns * latency /
      (model.clock_ghz * request_bytes * model.multiprocessor_count);
  const double parallel_warps =
      std::min({by_delay, by_bandwidth, kernel.warps_per_multiprocessor});
  const double memory = 2 * latency * kernel.parallel_requests *
                        kernel.warps_per_block / parallel_warps;
  const double shared = 2 * kernel.shared_transactions * p.shared_latency *
                        kernel.parallel_requests;
  return memory + shared + p.arithmetic;
}

}  // namespace tensord::core::cuda
