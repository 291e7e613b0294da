// Memory of what every operation needs anew.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <utility>

namespace tensord::core {

/// Base of classes whose objects take the memory that others of such classes
/// and about their size have left on their thread. malloc() takes ten times as
/// long for what is longer than 1 KiB, or needed by many at a time.
class Pooled {
 public:
  static void* operator new(size_t bytes) {
    if (bytes > kMostBytes) return ::operator new(bytes);
    Pool& pool = PoolFor(bytes);
    if (pool.first == nullptr) return ::operator new(RoundedUp(bytes));
    pool.bytes -= RoundedUp(bytes);
    return std::exchange(pool.first, pool.first->next);
  }
  static void operator delete(void* object, size_t bytes) noexcept {
    if (bytes > kMostBytes) return ::operator delete(object);
    Pool& pool = PoolFor(bytes);
    if (pool.bytes >= kMostLeft) return ::operator delete(object);
    pool.bytes += RoundedUp(bytes);
    pool.first = new (object) Left{pool.first};
  }

 private:
  struct Left {
    Left* next;
  };
  /// Of one size.
  struct Pool {
    ~Pool() {
      while (first != nullptr) {
        ::operator delete(std::exchange(first, first->next));
      }
      bytes = kMostLeft;  // what comes later is not kept
    }
    Left* first = nullptr;
    size_t bytes = 0;
  };

  static constexpr size_t kStep = 128;
  static constexpr size_t kMostBytes = 8192;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr size_t kMostLeft = 0;  // they look at each by itself
#else
  static constexpr size_t kMostLeft = size_t{1} << 18;
#endif

  static constexpr size_t RoundedUp(size_t bytes) {
    return (bytes + kStep - 1) / kStep * kStep;
  }
  static Pool& PoolFor(size_t bytes) {
    thread_local std::array<Pool, kMostBytes / kStep + 1> pools;
    return pools[RoundedUp(bytes) / kStep];
  }
};

}  // namespace tensord::core
