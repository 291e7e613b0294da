// How much longer work takes than was predicted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"

namespace tensord::server {

/// What the work of each owner lately took over what had been predicted:
/// kernels that are predicted badly say nothing of what others ask for.
///
/// Threads  none of its own: guard it.
class Slowness {
 public:
  /// Between 1 / kMost and kMost; 1 of those of whom nothing is known.
  static constexpr double kMost = 10;
  /// Who has learned nothing for longest is forgotten when there are more.
  static constexpr size_t kMostOwners = 1024;

  double Of(const std::string& owner) const;
  /// A piece of the owner's work, predicted to take more than no time.
  void Learn(const std::string& owner, absl::Duration predicted,
             absl::Duration took);

 private:
  struct Known {
    double slowness = 1;
    uint64_t learned = 0;  // when, counted in pieces of work
  };

  std::map<std::string, Known> owners_;
  uint64_t count_ = 0;
};

}  // namespace tensord::server
