// The functions of a library that is loaded at run time.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tensord::core::cuda {

/// Finds functions by name, and remembers what is missing.
///
/// Lifetime  a library stays loaded once Check() was OK.
class LibraryFunctions {
 public:
  /// Loads the library of that file name; the dynamic linker looks for it.
  /// `name` is what people call it, `reason` why there is none.
  ///
  /// Errors  UNAVAILABLE with that reason: there is no such library.
  static absl::StatusOr<LibraryFunctions> Load(const std::string& file,
                                               absl::string_view name,
                                               absl::string_view reason);

  template <typename Function>
  void Find(const std::string& symbol, Function& function) {
    function = reinterpret_cast<Function>(Find(symbol));
  }

  /// OK when all were found. The library is closed otherwise.
  /// Errors  as Load(): it lacks a function.
  absl::Status Check() const;

 private:
  LibraryFunctions(void* library, const std::string& file,
                   absl::string_view reason)
      : library_(library), file_(file), reason_(reason) {}

  void* Find(const std::string& symbol);

  void* library_;
  std::string file_;
  std::string reason_;
  std::string missing_;
};

}  // namespace tensord::core::cuda
