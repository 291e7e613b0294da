// How much of their work tests do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace tensord::test {

/// Whether each build tests what is else tested in one of them, and as much as
/// without sanitizers: tests/run --all.
inline bool TestsAll() { return std::getenv("ALL_TESTS") != nullptr; }

/// How many of `count` random cases a test takes that computes much, and with
/// most cases what it computes with others: under sanitizers a fifth.
inline uint32_t CaseShare(uint32_t count) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return TestsAll() ? count : count / 5;
#else
  return count;
#endif
}

/// `all` cases of a list; under ThreadSanitizer `count` of them, evenly spread
/// from the first to the last, as threads meet in all of them alike.
template <typename Case>
std::vector<Case> SomeOf(std::vector<Case> all, [[maybe_unused]] size_t count) {
#if defined(__SANITIZE_THREAD__)
  if (!TestsAll() && count < all.size()) {
    for (size_t i = 1; i < count; ++i) {
      all[i] = all[i * (all.size() - 1) / (count - 1)];
    }
    all.resize(count);
  }
#endif
  return all;
}

}  // namespace tensord::test
