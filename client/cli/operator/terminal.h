// The terminal, for what is drawn in place.
#pragma once

#include <termios.h>

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tensord::cli {

/// A screen of its own on the terminal, until it goes: what was there before is
/// there again. SIGINT and SIGTERM are taken as the wish to end.
///
/// Owner  one at a time in a process.
class Terminal {
 public:
  /// Whether there is one to draw on.
  static bool IsThere();

  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;

  /// Shows what of `lines` there is room for; what is not printable ASCII is
  /// '?'.
  void Draw(const std::vector<std::string>& lines);
  /// Whether somebody wants to end, by `q` or a signal, within `wait`; a
  /// changed size, or any other key, ends the wait.
  bool AwaitsEnd(absl::Duration wait);

 private:
  termios before_;
  bool has_settings_ = false;
};

}  // namespace tensord::cli
