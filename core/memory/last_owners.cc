#include "core/memory/last_owners.h"

#include <iterator>

namespace tensord::core {

std::vector<LastOwners::Range> LastOwners::Take(std::byte* start, int64_t bytes,
                                                uint64_t owner) {
  if (bytes == 0) return {};
  std::byte* const end = start + bytes;
  std::vector<Range> unclean;
  const auto after = pieces_.upper_bound(start);
  if (after != pieces_.begin()) {
    const Piece& before = std::prev(after)->second;
    if (before.end >= end && before.owner == owner) return unclean;
  }
  Cut(start);
  Cut(end);
  const auto add = [&](std::byte* from, std::byte* to) {
    if (from == to) return;
    if (!unclean.empty() &&
        unclean.back().start + unclean.back().bytes == from) {
      unclean.back().bytes += to - from;
    } else {
      unclean.push_back({from, to - from});
    }
  };
  std::byte* at = start;
  for (auto piece = pieces_.lower_bound(start);
       piece != pieces_.end() && piece->first < end; ++piece) {
    if (!new_is_clean_) add(at, piece->first);
    at = piece->second.end;
    if (piece->second.owner != owner) add(piece->first, at);
  }
  if (!new_is_clean_) add(at, end);
  Erase(start, end);
  auto own = pieces_.emplace(start, Piece{end, owner}).first;
  const auto next = std::next(own);
  if (next != pieces_.end() && next->first == end &&
      next->second.owner == owner) {
    own->second.end = next->second.end;
    pieces_.erase(next);
  }
  if (own != pieces_.begin()) {
    const auto before = std::prev(own);
    if (before->second.end == start && before->second.owner == owner) {
      before->second.end = own->second.end;
      pieces_.erase(own);
    }
  }
  return unclean;
}

void LastOwners::Forget(std::byte* start, int64_t bytes) {
  Cut(start);
  Cut(start + bytes);
  Erase(start, start + bytes);
}

void LastOwners::Cut(std::byte* at) {
  const auto after = pieces_.lower_bound(at);
  if (after == pieces_.begin()) return;
  Piece& before = std::prev(after)->second;
  if (before.end <= at) return;
  pieces_.emplace(at, before);
  before.end = at;
}

void LastOwners::Erase(std::byte* start, std::byte* end) {
  pieces_.erase(pieces_.lower_bound(start), pieces_.lower_bound(end));
}

}  // namespace tensord::core
