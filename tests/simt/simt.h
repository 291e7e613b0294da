// CUDA kernels executed on the CPU, for tests: in which order their threads
// run, and what happens when they break a rule.
//
// A kernel is compiled as plain C++ (tests/simt/include stands in for NVIDIA's
// headers). Each GPU thread has its own stack and runs until it waits for
// others, and then another one goes on. The schedule is unfair on purpose: the
// first warp in the order runs ahead as far as its barriers allow. No order
// shows every missing barrier, so run with all three.
//
// Not modelled: speed, bank conflicts, occupancy, registers, launch bounds, the
// device's rounding in functions such as expf(), contraction to fused
// multiply-adds, and threads that spin until another thread does something.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace tensord::simt {

enum class Order { kInOrder, kReverse, kRandom };

inline constexpr Order kAllOrders[] = {Order::kInOrder, Order::kReverse,
                                       Order::kRandom};

/// How work is ordered wherever CUDA leaves the order open.
struct Schedule {
  Order order = Order::kInOrder;  // of threads, warps, blocks and streams
  uint64_t seed = 1;              // of kRandom
  int worker_count = 1;           // OS threads that share the blocks of a grid
  bool fill_shared_memory = true;
  uint8_t shared_memory_fill = 0xCB;  // what it holds before a block starts
};

/// Requires  nothing is queued on any stream.
void SetSchedule(const Schedule& schedule);

/// Collects reports of broken rules while it lives. A kernel that broke one
/// fails as on the device: its launch ends with an error that stays.
///
/// Without one, a report goes to stderr and ends the process.
///
/// Threads  one at a time in the process; reports may come from any thread.
class ReportCapture {
 public:
  ReportCapture();
  ~ReportCapture();
  ReportCapture(const ReportCapture&) = delete;
  ReportCapture& operator=(const ReportCapture&) = delete;

  /// Those since the last call. What, where, by whom:
  /// `kernels.cu:12: lane is not in its own mask, thread (3,0,0) of block ...`.
  std::vector<std::string> Take();

 private:
  friend void Report(const std::string& text);

  std::mutex mutex_;
  std::vector<std::string> reports_;
};

}  // namespace tensord::simt
