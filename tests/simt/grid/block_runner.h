// Runs the threads of one block on one OS thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda_pipeline_primitives.h"
#include "cuda_runtime.h"
#include "tests/simt/grid/fiber.h"
#include "tests/simt/grid/shared_block_memory.h"
#include "tests/simt/random.h"
#include "tests/simt/report.h"
#include "tests/simt/sanitizers.h"
#include "tests/simt/simt.h"

namespace tensord::simt {

/// What the blocks of one launch have in common.
struct GridLaunch {
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;
  std::function<void()> thread;  // called by every GPU thread
  Schedule schedule;
  uint64_t launch_number = 0;  // makes launches of one seed differ

  // What precedes the launch, and its end, for ThreadSanitizer. Between blocks
  // nothing is ordered.
  char begin = 0;
  char end = 0;
};

/// Keeps its stacks from block to block.
///
/// Threads  belongs to one OS thread.
class BlockRunner {
 public:
  BlockRunner();

  /// Runs the block at `index` until all its threads have ended or one broke a
  /// rule; returns what it broke.
  std::optional<Violation> Run(const GridLaunch& launch, uint3 index);

  /// The one whose GPU thread is running on the calling OS thread.
  static BlockRunner& Current();

  // For GPU threads: see tests/simt/include for what they promise.
  int Synchronize(Barrier kind, int predicate, Location where);
  uint64_t Collect(Collective collective, unsigned mask, uint64_t value,
                   int source_lane, Location where);
  void QueueCopy(const AsyncCopy& copy, Location where);
  void CommitCopies();
  bool TakeCopy(size_t prior, AsyncCopy& copy);
  void Fence() { current_->has_fenced = true; }
  bool HasFenced() const { return current_->has_fenced; }
  int lane() const { return static_cast<int>(current_->number % kWarpSize); }
  void* shared_memory() const { return shared_memory_.data(); }

  /// Gives the block up: what the calling thread did at `where` breaks a rule.
  /// `what` must be a literal.
  [[noreturn]] void Fail(const char* what, Location where,
                         cudaError_t error = cudaErrorLaunchFailure);

 private:
  static constexpr unsigned kWarpSize = 32;
  static constexpr unsigned kMaxWarps = 32;
  static constexpr unsigned kMaxThreads = kWarpSize * kMaxWarps;
  static constexpr unsigned kMaxQueuedCopies = 128;  // of a thread

  enum class State : uint8_t { kReady, kAtBarrier, kInCollective, kEnded };

  struct Thread {
    uint3 index{};
    unsigned number = 0;
    State state = State::kReady;
    bool has_fenced = false;  // since the last barrier
    Fiber* fiber = nullptr;   // none before it starts
    Location where;           // it waits
    Barrier barrier{};        // if kAtBarrier
    Collective collective{};  // if kInCollective, with all below
    unsigned mask = 0;
    int source_lane = 0;
    uint64_t value = 0;
    uint64_t result = 0;
    unsigned first_copy = 0, copy_count = 0, batch = 0;
  };

  struct Fault {
    const Thread* thread;
    const char* what;
    cudaError_t error;
  };

  struct Warp {  // one bit a lane
    unsigned ready = 0;
    unsigned waiting = 0;  // in a collective
    unsigned alive = 0;
    unsigned place = 0;  // in the order of warps
  };

  struct CopyQueue {  // a ring
    std::array<AsyncCopy, kMaxQueuedCopies> copies;
  };

  /// Addresses that stand for what a block orders. New for every block.
  struct SyncPoints {
    std::array<char[8], 2> barrier;               // by turns
    std::array<char[8], kMaxThreads> collective;  // by lowest lane
  };

  [[noreturn]] void FailThread(const Thread& thread, const char* what,
                               cudaError_t error = cudaErrorLaunchFailure);
  static void RunFiber();
  void Begin(const GridLaunch& launch, uint3 index);
  std::optional<Violation> End();
  void OrderWarps();
  void SetRunning(Thread& thread);
  void EndThread(Thread& thread);
  void MakeReady(Thread& thread);
  Thread* TakeNext();
  Fiber& FiberOf(Thread* thread);
  Fiber& NewFiber();
  void Suspend();
  void CompleteBarrier(Barrier kind, Location where);
  void CompleteCollectives(unsigned warp);
  void CompleteCollective(unsigned warp, unsigned members);
  std::string Deadlock() const;

  const GridLaunch* launch_ = nullptr;
  uint3 block_index_{};
  Fiber main_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_fibers_;
  // Under ThreadSanitizer a block takes the next fibers of a ring.
  size_t first_fiber_ = 0;
  size_t ring_fibers_ = 1;
  std::unique_ptr<Thread[]> threads_;
  std::unique_ptr<CopyQueue[]> copies_;  // by thread; pages as they are used
  std::array<Warp, kMaxWarps> warps_{};
  std::array<uint8_t, kMaxWarps> warp_order_{};
  unsigned ready_warps_ = 0;  // bit i: warp_order_[i] has a lane that is ready
  unsigned thread_count_ = 0, warp_count_ = 0, ended_count_ = 0;
  unsigned barrier_count_ = 0;  // threads that have arrived
  unsigned barrier_true_count_ = 0;
  int barrier_result_ = 0;
  unsigned barrier_turn_ = 0;
  Thread* current_ = nullptr;
  Random random_{0};
  SharedBlockMemory shared_memory_;
  std::unique_ptr<SyncPoints> sync_;
  std::optional<Fault> fault_;
};

}  // namespace tensord::simt
