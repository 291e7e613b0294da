// Who had memory last that goes from hand to hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace tensord::core {

/// Remembers of every byte whose it was last, so that what changes hands can be
/// cleared.
///
/// Threads  none of its own: guard it. O(log pieces) unless hands change.
class LastOwners {
 public:
  struct Range {
    std::byte* start;
    int64_t bytes;

    bool operator==(const Range&) const = default;
  };

  /// `new_is_clean`: bytes that were nobody's yet have nothing in them.
  explicit LastOwners(bool new_is_clean) : new_is_clean_(new_is_clean) {}

  /// The range is `owner`'s now. Returns what of it has to be cleared first.
  std::vector<Range> Take(std::byte* start, int64_t bytes, uint64_t owner);
  /// The range is nobody's, and will be new when it comes again.
  void Forget(std::byte* start, int64_t bytes);

 private:
  struct Piece {
    std::byte* end;
    uint64_t owner;
  };

  /// Sees to it that no piece has `at` inside.
  void Cut(std::byte* at);
  /// Takes out the pieces in a range.
  void Erase(std::byte* start, std::byte* end);

  const bool new_is_clean_;
  std::map<std::byte*, Piece> pieces_;  // by first byte; neighbours differ
};

}  // namespace tensord::core
