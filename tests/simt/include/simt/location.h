// Where in a kernel something was called.
#pragma once

namespace tensord::simt {

struct Location {
  const char* file = "";
  int line = 0;

  /// As the default argument of a function: where that function is called.
  static constexpr Location Current(const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE()) {
    return {file, line};
  }

  friend bool operator==(const Location& a, const Location& b) {
    return a.line == b.line &&
           (a.file == b.file || __builtin_strcmp(a.file, b.file) == 0);
  }
};

}  // namespace tensord::simt
