#include "tests/simt/grid/grid_runner.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>

#include "tests/simt/grid/helper_threads.h"
#include "tests/simt/hidden_lock.h"
#include "tests/simt/random.h"
#include "tests/simt/sanitizers.h"

namespace tensord::simt {
namespace {

/// Which block comes when.
class BlockOrder {
 public:
  explicit BlockOrder(const GridLaunch& launch)
      : grid_(launch.grid),
        order_(launch.schedule.order),
        count_(uint64_t{grid_.x} * grid_.y * grid_.z) {
    if (order_ != Order::kRandom) return;
    // Steps of a length that shares no factor with the count visit every block.
    Random random(launch.schedule.seed + launch.launch_number);
    first_ = random.Below(count_);
    step_ = 1 + random.Below(count_);
    while (std::gcd(step_, count_) != 1) ++step_;
  }

  uint64_t count() const { return count_; }

  uint3 At(uint64_t turn) const {
    const auto block = static_cast<uint64_t>(
        order_ == Order::kReverse
            ? count_ - 1 - turn
            : (first_ + static_cast<unsigned __int128>(turn) * step_) % count_);
    return {static_cast<unsigned>(block % grid_.x),
            static_cast<unsigned>(block / grid_.x % grid_.y),
            static_cast<unsigned>(block / grid_.x / grid_.y)};
  }

 private:
  dim3 grid_;
  Order order_;
  uint64_t count_;
  uint64_t first_ = 0;
  uint64_t step_ = 1;
};

/// Both keep the stacks of GPU threads from launch to launch.
thread_local std::unique_ptr<BlockRunner> runner_of_this_thread;
thread_local HelperThreads helpers_of_this_thread;

}  // namespace

std::optional<Violation> RunGrid(const GridLaunch& launch) {
  const BlockOrder order(launch);
  std::atomic<uint64_t> next_turn = 0;
  HiddenLock violation_lock;
  std::optional<Violation> first_violation;
  tsan::Release(&launch.begin);
  const auto run_blocks = [&] {
    if (runner_of_this_thread == nullptr) {
      runner_of_this_thread = std::make_unique<BlockRunner>();
    }
    BlockRunner& runner = *runner_of_this_thread;
    for (uint64_t turn; (turn = next_turn++) < order.count();) {
      std::optional<Violation> violation = runner.Run(launch, order.At(turn));
      if (!violation.has_value()) continue;
      next_turn = order.count();
      const tsan::Ignore ignore;
      const std::lock_guard lock(violation_lock);
      if (!first_violation.has_value()) first_violation = std::move(violation);
    }
  };
  const auto worker_count = static_cast<int>(std::clamp<uint64_t>(
      order.count(), 1,
      static_cast<uint64_t>(std::max(launch.schedule.worker_count, 1))));
  helpers_of_this_thread.Run(worker_count - 1, run_blocks);
  tsan::Acquire(&launch.end);
  return first_violation;
}

}  // namespace tensord::simt
