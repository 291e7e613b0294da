// gRPC's threads do not survive a fork: what a process made before is of no use
// to its children.
#pragma once

namespace tensord::native {

/// Remembers the process that made it.
///
/// Threads  safe for concurrent use.
class Origin {
 public:
  /// Requires  the GIL.
  /// Errors    CallError, FAILED_PRECONDITION (FORKED): a process that this one
  ///           was forked from has made one before.
  Origin();

  /// Whether this is a fork of the process that made it.
  bool is_forked() const;

  /// Requires  the GIL.
  /// Errors    CallError, FAILED_PRECONDITION (FORKED): it is.
  void Check() const;

 private:
  const int generation_;
};

}  // namespace tensord::native
