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
    if (pool.bytes >= kMostLeft || !IsKept()) return ::operator delete(object);
    pool.bytes += RoundedUp(bytes);
    pool.first = new (object) Left{pool.first};
  }

 private:
  struct Left {
    Left* next;
  };
  /// Of one size.
  struct Pool {
    Left* first;
    size_t bytes;
  };

  static constexpr size_t kStep = 128;
  static constexpr size_t kMostBytes = 8192;
#if defined(__has_feature)
  static constexpr bool kIsSanitized = __has_feature(address_sanitizer) ||
                                       __has_feature(thread_sanitizer) ||
                                       __has_feature(memory_sanitizer);
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr bool kIsSanitized = true;
#else
  static constexpr bool kIsSanitized = false;
#endif
  // Sanitizers look at each object by itself.
  static constexpr size_t kMostLeft = kIsSanitized ? 0 : size_t{1} << 18;

  static constexpr size_t RoundedUp(size_t bytes) {
    return (bytes + kStep - 1) / kStep * kStep;
  }
  static Pool& PoolFor(size_t bytes) {
    return pools_[RoundedUp(bytes) / kStep];
  }

  /// False once the thread ends, when what is left goes.
  static bool IsKept() {
    thread_local const struct Emptying {
      ~Emptying() {
        is_ending_ = true;
        for (Pool& pool : pools_) {
          while (pool.first != nullptr) {
            ::operator delete(std::exchange(pool.first, pool.first->next));
          }
        }
      }
    } emptying;
    return !is_ending_;
  }

  // Without destructors, so that they are there to the thread's very end.
  static inline constinit thread_local std::array<Pool, kMostBytes / kStep + 1>
      pools_ = {};
  static inline constinit thread_local bool is_ending_ = false;
};

}  // namespace tensord::core
