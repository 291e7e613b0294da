// Many records as bytes, to be kept in a file or sent.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tensord::core {

/// Makes a snapshot: Add() each record, then Finish().
class SnapshotWriter {
 public:
  /// `writer`: who writes it, with its version; for people.
  explicit SnapshotWriter(absl::string_view writer);

  /// Requires  at most kMaxRecordBytes bytes.
  void Add(absl::string_view record);

  /// The snapshot. Once.
  std::string Finish() &&;

 private:
  std::string bytes_;
  uint64_t count_ = 0;
};

struct SnapshotInfo {
  std::string writer;
  int64_t record_count = 0;
};

/// Calls `visit` with each record, an encoded PlanRecord that nobody has looked
/// at. Which device a record is for is in its key.
///
/// Lifetime  a record lives as long as `bytes`.
/// Errors  INVALID_ARGUMENT, reasons SNAPSHOT_FOREIGN: it is something else,
///         SNAPSHOT_NEWER: of a format that is not known yet. DATA_LOSS, reason
///         SNAPSHOT_CORRUPT: cut off or changed; the records before the damage
///         have been visited, each as it was written.
absl::StatusOr<SnapshotInfo> ReadSnapshot(
    absl::string_view bytes,
    absl::FunctionRef<void(absl::string_view record)> visit);

}  // namespace tensord::core
