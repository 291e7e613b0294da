// Programs that were prepared before.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "core/notation/program/lower.h"
#include "server/execution/program/prepared_program.h"
#include "server/execution/program/program_request.h"

namespace tensord::server {

/// All that decides how a program is prepared but for the values of scalars, as
/// bytes: equal exactly when all of it is equal.
std::string ProgramKeyOf(const ProgramSource& source,
                         absl::Span<const core::NamedOperand> operands,
                         absl::Span<const ProgramOutputRequest> outputs,
                         const ProgramOptions& options,
                         absl::string_view device);

/// Keeps the programs used last, whoever asked for them.
///
/// Threads  safe for concurrent use.
class ProgramCache {
 public:
  using Ref = std::shared_ptr<const PreparedProgram>;

  /// Keeps programs of `byte_limit` bytes together, with their keys.
  explicit ProgramCache(int64_t byte_limit) : byte_limit_(byte_limit) {}

  /// Null when it is not known.
  Ref Find(const std::string& key);
  /// Keeps `program`, unless it is larger than the cache or known.
  void Add(std::string key, Ref program);

  int64_t byte_count() const;

 private:
  using Entries = std::list<std::pair<std::string, Ref>>;  // used last in front

  void DropLast() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t byte_limit_;
  mutable absl::Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<absl::string_view, Entries::iterator> by_key_
      ABSL_GUARDED_BY(mutex_);  // keys of entries_
  int64_t byte_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tensord::server
