#include "server/execution/program/replays.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/base/status.h"

namespace tensord::server {
namespace {

// Streams that steps are spread over: kernels that are large enough to matter
// fill a device when a few run.
constexpr int32_t kStreamCount = 4;

// A client that replaces its results in turn has two sets of addresses; more
// than a few never come back.
constexpr size_t kMostReplays = 4;

template <typename T>
bool AreEqual(const std::vector<T>& kept, absl::Span<const T> now) {
  return std::ranges::equal(kept, now);
}

}  // namespace

absl::StatusOr<bool> Replays::Queue(const PlacedProgram& placed,
                                    size_t first_block, core::Stream& stream) {
  absl::MutexLock lock(&mutex_);
  // No turn is left in here: others may wait for the lock in theirs.
  core::Interruption* const interruption = stream.interruption();
  stream.set_interruption(nullptr);
  const absl::Cleanup set_again = [&] {
    stream.set_interruption(interruption);
  };
  std::vector<std::byte*> addresses(placed.addresses.begin(),
                                    placed.addresses.end());
  addresses.push_back(placed.runner.scratch().data());
  const auto known = std::ranges::find_if(replays_, [&](const Replay& replay) {
    return replay.first_block == first_block && replay.addresses == addresses &&
           AreEqual(replay.plans, placed.runner.plans());
  });
  if (known == replays_.end()) {
    if (replays_.size() == kMostReplays) replays_.pop_back();
    replays_.push_front(
        {.addresses = std::move(addresses),
         .plans = {placed.runner.plans().begin(), placed.runner.plans().end()},
         .first_block = first_block});
    TENSORD_RETURN_IF_ERROR(QueueSteps(placed, first_block, stream));
    return false;
  }
  replays_.splice(replays_.begin(), replays_, known);
  Replay& replay = replays_.front();
  if (replay.recording == nullptr && !replay.cannot_be_recorded) {
    TENSORD_RETURN_IF_ERROR(Record(placed, stream, replay));
  }
  if (replay.recording == nullptr) {
    TENSORD_RETURN_IF_ERROR(QueueSteps(placed, first_block, stream));
    return false;
  }
  TENSORD_RETURN_IF_ERROR(replay.recording->Launch(stream));
  return true;
}

absl::Status Replays::Record(const PlacedProgram& placed, core::Stream& stream,
                             Replay& replay) {
  replay.cannot_be_recorded = true;
  // What cannot be recorded is queued without, which tells whether it fails.
  const auto unless_internal = [](const absl::Status& status) {
    return absl::IsInternal(status) ? absl::OkStatus() : status;
  };
  const absl::StatusOr<bool> has_begun = stream.BeginRecording();
  if (!has_begun.ok()) return unless_internal(has_begun.status());
  if (!*has_begun) return absl::OkStatus();
  const absl::Status queued = QueueSteps(placed, replay.first_block, stream);
  absl::StatusOr<std::unique_ptr<core::Recording>> recording =
      stream.EndRecording();
  if (!queued.ok()) return unless_internal(queued);
  if (!recording.ok()) return unless_internal(recording.status());
  replay.recording = *std::move(recording);
  return absl::OkStatus();
}

absl::Status Replays::QueueSteps(const PlacedProgram& placed,
                                 size_t first_block, core::Stream& stream) {
  const size_t block_count = placed.program().blocks.size();
  if (!AreEqual(spread_.plans, placed.runner.plans())) {
    spread_.plans.assign(placed.runner.plans().begin(),
                         placed.runner.plans().end());
    spread_.lanes.clear();
    for (size_t block = 0; block < block_count; ++block) {
      spread_.lanes.push_back(LanesOf(placed, block, kStreamCount));
    }
  }
  for (size_t block = first_block; block < block_count; ++block) {
    TENSORD_RETURN_IF_ERROR(
        QueueBlock(placed, block, spread_.lanes[block], stream));
  }
  return absl::OkStatus();
}

}  // namespace tensord::server
