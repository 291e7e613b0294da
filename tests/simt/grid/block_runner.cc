#include "tests/simt/grid/block_runner.h"

#include <algorithm>
#include <bit>
#include <map>
#include <sstream>
#include <utility>

constinit thread_local uint3 threadIdx{};
constinit thread_local uint3 blockIdx{};
constinit thread_local dim3 blockDim;
constinit thread_local dim3 gridDim;
const int warpSize = 32;

namespace tensord::simt {
namespace {

/// How many fibers take turns under ThreadSanitizer if a block does not need
/// more, so that a thread is not taken for the same one of an earlier block.
/// Each costs it 0.8 MB and 0.6 ms once, and it knows 8128 threads at most.
constexpr size_t kRingFibers = 512;

thread_local BlockRunner* current_runner = nullptr;

std::ostream& operator<<(std::ostream& out, const uint3& index) {
  return out << '(' << index.x << ',' << index.y << ',' << index.z << ')';
}

std::ostream& operator<<(std::ostream& out, const Location& where) {
  return out << where.file << ':' << where.line;
}

unsigned LaneBit(unsigned number) { return 1u << (number % 32); }

}  // namespace

BlockRunner::BlockRunner()
    : threads_(new Thread[kMaxThreads]), copies_(new CopyQueue[kMaxThreads]) {
  idle_fibers_.reserve(kMaxThreads);
}

BlockRunner& BlockRunner::Current() { return *current_runner; }

std::optional<Violation> BlockRunner::Run(const GridLaunch& launch,
                                          uint3 index) {
  current_runner = this;
  {
    const tsan::Ignore ignore;
    Begin(launch, index);
  }
  main_.Adopt();
  main_.SwitchTo(FiberOf(TakeNext()));
  const tsan::Ignore ignore;
  std::optional<Violation> violation = End();
  if (violation.has_value()) {  // threads are stuck somewhere on their stacks
    idle_fibers_.clear();
    fibers_.clear();
  }
  return violation;
}

void BlockRunner::Begin(const GridLaunch& launch, uint3 index) {
  launch_ = &launch;
  block_index_ = index;
  blockIdx = index;
  blockDim = launch.block;
  gridDim = launch.grid;
  const dim3 block = launch.block;
  thread_count_ = block.x * block.y * block.z;
  warp_count_ = (thread_count_ + kWarpSize - 1) / kWarpSize;
  ended_count_ = barrier_count_ = barrier_true_count_ = barrier_turn_ = 0;
  fault_.reset();
  uint3 place{0, 0, 0};
  for (unsigned i = 0; i < thread_count_; ++i) {
    threads_[i] = Thread{.index = place, .number = i};
    if (++place.x == block.x) {
      place.x = 0;
      if (++place.y == block.y) {
        place.y = 0;
        ++place.z;
      }
    }
  }
  for (unsigned warp = 0; warp < warp_count_; ++warp) {
    const unsigned lanes = std::min(thread_count_ - warp * kWarpSize, 32u);
    const unsigned alive = lanes == 32 ? ~0u : (1u << lanes) - 1;
    warps_[warp] = Warp{.ready = alive, .alive = alive};
  }
  const Schedule& schedule = launch.schedule;
  const uint64_t block_number =
      index.x +
      uint64_t{launch.grid.x} * (index.y + uint64_t{launch.grid.y} * index.z);
  random_ = Random(Random(schedule.seed + launch.launch_number).Next() +
                   block_number);
  OrderWarps();
  shared_memory_.Prepare(
      launch.shared_bytes,
      schedule.fill_shared_memory
          ? std::optional<unsigned char>(schedule.shared_memory_fill)
          : std::nullopt);
  if (tsan::kIsOn) {
    sync_ = std::make_unique<SyncPoints>();
    ring_fibers_ = std::max<size_t>(thread_count_, kRingFibers);
    const bool has_room = 2 * thread_count_ <= ring_fibers_;
    first_fiber_ += has_room ? thread_count_ : thread_count_ / 2 + 1;
    first_fiber_ %= ring_fibers_;
    const size_t end = first_fiber_ + thread_count_;
    while (fibers_.size() < std::min(end, ring_fibers_)) NewFiber();
  }
}

std::optional<Violation> BlockRunner::End() {
  if (fault_.has_value()) {
    std::ostringstream text;
    text << fault_->thread->where << ": " << fault_->what << ", thread "
         << fault_->thread->index << " of block " << block_index_;
    return Violation{text.str(), fault_->error};
  }
  if (ended_count_ != thread_count_) {
    return Violation{Deadlock(), cudaErrorLaunchTimeout};
  }
  if (shared_memory_.IsOverrun()) {
    std::ostringstream text;
    text << "block " << block_index_ << " wrote beside its "
         << shared_memory_.bytes() << " bytes of shared memory";
    return Violation{text.str(), cudaErrorIllegalAddress};
  }
  return std::nullopt;
}

void BlockRunner::RunFiber() {
  BlockRunner& runner = Current();
  Fiber& fiber = Fiber::Running();
  tsan::AcquireOsThread();  // its thread-local variables exist
  while (true) {
    auto& thread = *static_cast<Thread*>(fiber.occupant);
    runner.SetRunning(thread);
    tsan::Acquire(&runner.launch_->begin);
    runner.launch_->thread();
    tsan::Release(&runner.launch_->end);
    runner.EndThread(thread);
    Thread* const next = runner.TakeNext();
    if (!tsan::kIsOn && next != nullptr && next->fiber == nullptr) {
      // A thread that has not started goes on where this one ended.
      fiber.occupant = next;
      next->fiber = &fiber;
      continue;
    }
    if (!tsan::kIsOn) runner.idle_fibers_.push_back(&fiber);
    fiber.SwitchTo(runner.FiberOf(next));
  }
}

void BlockRunner::SetRunning(Thread& thread) {
  current_ = &thread;
  threadIdx = thread.index;
}

void BlockRunner::EndThread(Thread& thread) {
  thread.state = State::kEnded;
  ++ended_count_;
  const unsigned warp = thread.number / kWarpSize;
  warps_[warp].alive &= ~LaneBit(thread.number);
  // Those that wait for this lane no longer do.
  if (warps_[warp].waiting != 0) CompleteCollectives(warp);
}

void BlockRunner::OrderWarps() {
  for (unsigned i = 0; i < warp_count_; ++i) {
    const bool reverse = launch_->schedule.order == Order::kReverse;
    warp_order_[i] = static_cast<uint8_t>(reverse ? warp_count_ - 1 - i : i);
  }
  if (launch_->schedule.order == Order::kRandom) {
    for (unsigned i = warp_count_; i > 1; --i) {
      std::swap(warp_order_[i - 1], warp_order_[random_.Below(i)]);
    }
  }
  ready_warps_ = 0;
  for (unsigned i = 0; i < warp_count_; ++i) {
    Warp& warp = warps_[warp_order_[i]];
    warp.place = i;
    if (warp.ready != 0) ready_warps_ |= 1u << i;
  }
}

void BlockRunner::MakeReady(Thread& thread) {
  thread.state = State::kReady;
  Warp& warp = warps_[thread.number / kWarpSize];
  warp.ready |= LaneBit(thread.number);
  ready_warps_ |= 1u << warp.place;
}

/// The thread to go on with: of the first warp that can. Null if none can.
BlockRunner::Thread* BlockRunner::TakeNext() {
  if (ready_warps_ == 0) return nullptr;
  const unsigned warp_number =
      warp_order_[static_cast<unsigned>(std::countr_zero(ready_warps_))];
  Warp& warp = warps_[warp_number];
  int lane = std::countr_zero(warp.ready);
  if (launch_->schedule.order == Order::kReverse) {
    lane = 31 - std::countl_zero(warp.ready);
  } else if (launch_->schedule.order == Order::kRandom) {
    unsigned candidates = warp.ready;
    const auto count = static_cast<unsigned>(std::popcount(candidates));
    for (uint64_t skip = random_.Below(count); skip > 0; --skip) {
      candidates &= candidates - 1;
    }
    lane = std::countr_zero(candidates);
  }
  warp.ready &= ~(1u << lane);
  if (warp.ready == 0) ready_warps_ &= ~(1u << warp.place);
  return &threads_[warp_number * kWarpSize + static_cast<unsigned>(lane)];
}

Fiber& BlockRunner::NewFiber() {
  fibers_.push_back(std::make_unique<Fiber>(&RunFiber, fibers_.size()));
  return *fibers_.back();
}

Fiber& BlockRunner::FiberOf(Thread* thread) {
  if (thread == nullptr) return main_;
  if (thread->fiber == nullptr) {
    if (tsan::kIsOn) {
      thread->fiber =
          fibers_[(first_fiber_ + thread->number) % ring_fibers_].get();
    } else if (idle_fibers_.empty()) {
      thread->fiber = &NewFiber();
    } else {
      thread->fiber = idle_fibers_.back();
      idle_fibers_.pop_back();
    }
    thread->fiber->occupant = thread;
  }
  return *thread->fiber;
}

void BlockRunner::Suspend() {
  Thread& thread = *current_;
  thread.fiber->SwitchTo(FiberOf(TakeNext()));
  SetRunning(thread);
}

void BlockRunner::Fail(const char* what, Location where, cudaError_t error) {
  current_->where = where;
  FailThread(*current_, what, error);
}

void BlockRunner::FailThread(const Thread& thread, const char* what,
                             cudaError_t error) {
  fault_ = Fault{&thread, what, error};
  Fiber::Running().SwitchTo(main_);
  __builtin_unreachable();
}

int BlockRunner::Synchronize(Barrier kind, int predicate, Location where) {
  Thread& thread = *current_;
  thread.where = where;
  thread.barrier = kind;
  thread.state = State::kAtBarrier;
  thread.has_fenced = false;
  const void* const sync =
      tsan::kIsOn ? sync_->barrier[barrier_turn_ % 2] : nullptr;
  tsan::Release(sync);
  barrier_true_count_ += predicate != 0;
  if (++barrier_count_ == thread_count_) CompleteBarrier(kind, where);
  Suspend();
  tsan::Acquire(sync);
  return barrier_result_;
}

void BlockRunner::CompleteBarrier(Barrier kind, Location where) {
  for (unsigned i = 0; i < thread_count_; ++i) {
    if (threads_[i].barrier != kind || !(threads_[i].where == where)) {
      FailThread(threads_[i], "threads of the block are at different barriers");
    }
  }
  switch (kind) {
    case Barrier::kPlain: barrier_result_ = 0; break;
    case Barrier::kOr: barrier_result_ = barrier_true_count_ != 0; break;
    case Barrier::kAnd:
      barrier_result_ = barrier_true_count_ == thread_count_;
      break;
    case Barrier::kCount:
      barrier_result_ = static_cast<int>(barrier_true_count_);
      break;
  }
  barrier_count_ = barrier_true_count_ = 0;
  ++barrier_turn_;
  for (unsigned i = 0; i < thread_count_; ++i) MakeReady(threads_[i]);
  OrderWarps();
}

uint64_t BlockRunner::Collect(Collective collective, unsigned mask,
                              uint64_t value, int source_lane, Location where) {
  Thread& thread = *current_;
  const unsigned warp = thread.number / kWarpSize;
  if ((mask & LaneBit(thread.number)) == 0) {
    Fail("lane is not in its own mask", where);
  }
  thread.collective = collective;
  thread.mask = mask;
  thread.value = value;
  thread.source_lane = source_lane;
  thread.where = where;
  thread.state = State::kInCollective;
  warps_[warp].waiting |= LaneBit(thread.number);
  const unsigned members = mask & warps_[warp].alive;
  if ((warps_[warp].waiting & members) == members) {
    CompleteCollective(warp, members);
  } else if (warps_[warp].ready == 0) {
    CompleteCollectives(warp);
  }
  Suspend();
  return thread.result;
}

/// Completes each collective of the warp that waits for nobody any more: after
/// a lane has ended, or when none can go on, perhaps for want of equal masks.
void BlockRunner::CompleteCollectives(unsigned warp) {
  const unsigned alive = warps_[warp].alive;
  for (unsigned left = warps_[warp].waiting; left != 0;) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const unsigned members = threads_[warp * kWarpSize + lane].mask & alive;
    if ((warps_[warp].waiting & members) == members) {
      CompleteCollective(warp, members);
      left &= ~members;
    } else {
      left &= left - 1;
    }
  }
}

void BlockRunner::CompleteCollective(unsigned warp, unsigned members) {
  Thread* const lanes = &threads_[warp * kWarpSize];
  const auto lowest = static_cast<unsigned>(std::countr_zero(members));
  const Thread& first = lanes[lowest];
  uint64_t ballot = 0;
  for (unsigned rest = members; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    Thread& thread = lanes[lane];
    if (thread.mask != first.mask || thread.collective != first.collective ||
        !(thread.where == first.where)) {
      FailThread(thread,
                 "lanes of one mask are in different collectives or with "
                 "different masks");
    }
    ballot |= (thread.value & 1) << lane;
  }
  for (unsigned rest = members; rest != 0; rest &= rest - 1) {
    Thread& thread = lanes[std::countr_zero(rest)];
    const unsigned source = static_cast<unsigned>(thread.source_lane) % 32;
    const bool is_member = (members >> source & 1) != 0;
    constexpr uint64_t kJunk = 0xBADBADBADBADBADB;
    thread.result = thread.collective == Collective::kBallot ? ballot
                    : is_member ? lanes[source].value
                                : kJunk;
    MakeReady(thread);
  }
  warps_[warp].waiting &= ~members;
  if (tsan::kIsOn && first.collective == Collective::kSync) {
    // On behalf of every member: all have arrived, none has gone on.
    void* const self = tsan::CurrentFiber();
    const void* const sync = sync_->collective[warp * kWarpSize + lowest];
    for (const bool arrive : {true, false}) {
      for (unsigned rest = members; rest != 0; rest &= rest - 1) {
        lanes[std::countr_zero(rest)].fiber->ActAs();
        arrive ? tsan::Release(sync) : tsan::Acquire(sync);
      }
    }
    tsan::SwitchTo(self);
  }
}

void BlockRunner::QueueCopy(const AsyncCopy& copy, Location where) {
  Thread& thread = *current_;
  if (copy.bytes != 4 && copy.bytes != 8 && copy.bytes != 16) {
    Fail("an asynchronous copy is of 4, 8 or 16 bytes", where);
  }
  if (copy.zero_bytes > copy.bytes) {
    Fail("an asynchronous copy clears more than it writes", where);
  }
  CheckAligned(copy.destination, copy.bytes, where);
  CheckAligned(copy.source, copy.bytes, where);
  const auto is_shared = [this](const void* address, size_t bytes) {
    const auto* const begin = static_cast<const unsigned char*>(address);
    const unsigned char* const data = shared_memory_.data();
    return begin >= data && begin + bytes <= data + shared_memory_.bytes();
  };
  if (!is_shared(copy.destination, copy.bytes)) {
    Fail("an asynchronous copy goes beside the block's shared memory", where);
  }
  if (is_shared(copy.source, 1)) {
    Fail("an asynchronous copy comes from shared memory", where);
  }
  if (thread.copy_count == kMaxQueuedCopies) {
    Fail("more asynchronous copies of one thread than can be kept", where);
  }
  const unsigned slot =
      (thread.first_copy + thread.copy_count++) % kMaxQueuedCopies;
  copies_[thread.number].copies[slot] = copy;
  copies_[thread.number].copies[slot].batch = thread.batch;
}

void BlockRunner::CommitCopies() { ++current_->batch; }

bool BlockRunner::TakeCopy(size_t prior, AsyncCopy& copy) {
  Thread& thread = *current_;
  if (thread.copy_count == 0) return false;
  const AsyncCopy& oldest = copies_[thread.number].copies[thread.first_copy];
  if (oldest.batch + prior >= thread.batch) return false;
  copy = oldest;
  thread.first_copy = (thread.first_copy + 1) % kMaxQueuedCopies;
  --thread.copy_count;
  return true;
}

std::string BlockRunner::Deadlock() const {
  std::map<std::string, int> counts;
  for (unsigned i = 0; i < thread_count_; ++i) {
    const Thread& thread = threads_[i];
    std::ostringstream place;
    switch (thread.state) {
      case State::kReady: place << "can go on"; break;
      case State::kAtBarrier: place << "at barrier " << thread.where; break;
      case State::kInCollective:
        place << "at warp collective " << thread.where;
        break;
      case State::kEnded: place << "ended"; break;
    }
    ++counts[place.str()];
  }
  std::ostringstream text;
  text << "deadlock in block " << block_index_ << " of " << thread_count_
       << " threads:";
  const char* separator = " ";
  for (const auto& [place, count] : counts) {
    text << std::exchange(separator, ", ") << count << ' ' << place;
  }
  return text.str();
}

}  // namespace tensord::simt
