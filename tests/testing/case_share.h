// How much of their work tests do.
#pragma once

#include <cstdint>
#include <cstdlib>

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

}  // namespace tensord::test
