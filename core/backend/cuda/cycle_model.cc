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

TileAccesses::TileAccesses(const std::vector<int64_t>& loads, int load_bytes,
                           std::vector<int64_t> stores, int store_bytes)
    : load_bytes_(load_bytes),
      store_bytes_(store_bytes),
      loads_(WarpRunsOf(RunsOf(loads))),
      sorted_stores_(RunsOf(stores)),
      stores_(WarpRunsOf(sorted_stores_)) {
  if (!std::is_sorted(stores.begin(), stores.end())) {
    std::sort(stores.begin(), stores.end());
    sorted_stores_ = RunsOf(stores);
  }
}

TileAccesses::Runs TileAccesses::RunsOf(const std::vector<int64_t>& words) {
  Runs runs;
  for (size_t begin = 0; begin < words.size();) {
    size_t end = begin + 1;
    while (end < words.size() && words[end] == words[end - 1] + 1) ++end;
    runs.push_back({words[begin], static_cast<int64_t>(end - begin)});
    begin = end;
  }
  return runs;
}

TileAccesses::WarpRuns TileAccesses::WarpRunsOf(const Runs& runs) {
  WarpRuns result;
  int64_t left = kWarp;  // lanes of the warp that have no word yet
  for (Run run : runs) {
    while (run.count > 0) {
      const int64_t count = std::min(run.count, left);
      result.runs.push_back({run.first, count});
      run.first += count;
      run.count -= count;
      left -= count;
      if (left == 0) {
        result.ends.push_back(result.runs.size());
        left = kWarp;
      }
    }
  }
  if (left < kWarp) result.ends.push_back(result.runs.size());
  return result;
}

/// Requests of warps for words at `base` + `words`, and the transactions they
/// take: one for each segment that a warp touches.
void TileAccesses::CountRequests(const WarpRuns& words, int64_t base, int bytes,
                                 double& requests, double& transactions) {
  struct Segments {
    int64_t first, last;
  };
  std::array<Segments, kWarp> touched;
  size_t run = 0;
  for (const size_t end : words.ends) {
    size_t count = 0;
    bool is_sorted = true;
    for (; run < end; ++run) {
      const int64_t first = base + words.runs[run].first;
      const int64_t last = first + words.runs[run].count - 1;
      touched[count] = {first * bytes / kTransactionBytes,
                        last * bytes / kTransactionBytes};
      is_sorted &=
          count == 0 || touched[count - 1].first <= touched[count].first;
      ++count;
    }
    if (!is_sorted) {
      std::sort(touched.begin(), touched.begin() + static_cast<int64_t>(count),
                [](const Segments& x, const Segments& y) {
                  return x.first < y.first;
                });
    }
    int64_t segments = 0;
    int64_t seen = -1;  // up to here
    for (size_t i = 0; i < count; ++i) {
      const int64_t from = std::max(touched[i].first, seen + 1);
      segments += std::max<int64_t>(touched[i].last - from + 1, 0);
      seen = std::max(seen, touched[i].last);
    }
    requests += 1;
    transactions += static_cast<double>(segments);
  }
}

/// Lines that words at `base` + `runs`, which ascend, cover as a whole or in
/// part.
void TileAccesses::CountLines(const Runs& runs, int64_t base, int bytes,
                              double& full, double& partial) {
  int64_t line = -1;  // of which so far so much is covered
  int64_t covered = 0;
  const auto finish = [&] {
    if (line >= 0) (covered >= kLineBytes ? full : partial) += 1;
  };
  for (const Run& run : runs) {
    int64_t at = (base + run.first) * bytes;
    const int64_t end = at + run.count * bytes;
    while (at < end) {
      if (at / kLineBytes != line) {
        finish();
        line = at / kLineBytes;
        covered = 0;
      }
      const int64_t next = std::min(end, (line + 1) * kLineBytes);
      covered += next - at;
      at = next;
      if (at % kLineBytes == 0 && end - at >= kLineBytes) {
        // Whole lines, but for the last one.
        const int64_t whole = (end - at) / kLineBytes;
        finish();
        full += static_cast<double>(whole - 1);
        at += (whole - 1) * kLineBytes;
        line = at / kLineBytes;
        covered = kLineBytes;
        at += kLineBytes;
      }
    }
  }
  finish();
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
