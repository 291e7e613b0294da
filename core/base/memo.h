// Answers that are worked out once.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace tensord::core {

/// Keeps answers by question. Refusals, UNIMPLEMENTED, are answers; other
/// errors are not.
///
/// Threads  safe for concurrent use. Threads that ask the same at the same time
///          may each work it out; all get one answer.
template <typename Question, typename Value>
class Memo {
 public:
  using Answer = absl::StatusOr<std::shared_ptr<const Value>>;

  /// When it has `most` answers it forgets all.
  explicit Memo(size_t most) : most_(most) {}

  /// What is kept, or what work_out() says.
  template <typename WorkOut>
  Answer Get(const Question& question, const WorkOut& work_out) {
    {
      absl::MutexLock lock(&mutex_);
      const auto known = answers_.find(question);
      if (known != answers_.end()) return known->second;
    }
    Answer answer = work_out();
    if (!answer.ok() && !absl::IsUnimplemented(answer.status())) return answer;
    absl::MutexLock lock(&mutex_);
    if (answers_.size() >= most_) answers_.clear();
    return answers_.try_emplace(question, std::move(answer)).first->second;
  }

 private:
  const size_t most_;
  absl::Mutex mutex_;
  absl::node_hash_map<Question, Answer> answers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::core
