// Tells ThreadSanitizer what Abseil orders: absl::Mutex, CondVar and
// Notification, and the counts of those who share an absl::Status or a Cord.
//
// The system's Abseil is built without the sanitizer, so that every access it
// orders would look like a race. The functions below stand in front of the
// library's, call them unseen, and report what they establish. What the library
// does to its own memory (the graph in which it looks for deadlocks) is ordered
// by locks of its own that the sanitizer cannot see either. Linked into tests
// of builds with -fsanitize=thread only. tsan_abseil_test proves each of them,
// and that no test uses another.
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/base/config.h"
#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}

#define TENSORD_STRING_OF_INNER(x) #x
#define TENSORD_STRING_OF(x) TENSORD_STRING_OF_INNER(x)

namespace {

/// The library's own function by the part of its mangled name that follows the
/// namespace.
template <typename Function>
Function* Real(const std::string& name, bool is_const = false) {
  const std::string space =
      TENSORD_STRING_OF(ABSL_OPTION_INLINE_NAMESPACE_NAME);
  const std::string mangled = (is_const ? "_ZNK4absl" : "_ZN4absl") +
                              std::to_string(space.size()) + space + name;
  void* const found = dlsym(RTLD_NEXT, mangled.c_str());
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function*>(found);
}

/// Calls the library's function; its reads and writes are not looked at.
template <typename Result, typename... Parameters, typename... Arguments>
Result CallUnseen(Result (*function)(Parameters...), Arguments&&... arguments) {
  struct Unseen {
    Unseen() {
      AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
      AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    }
    ~Unseen() {
      AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
      AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    }
  };
  const Unseen unseen;
  return function(std::forward<Arguments>(arguments)...);
}

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

// Takes it out of the graph.
Mutex::~Mutex() {
  static const auto real = Real<void(Mutex*)>("5MutexD1Ev");
  CallUnseen(real, this);
}

void Mutex::Lock() {
  static const auto real = Real<void(Mutex*)>("5Mutex4LockEv");
  CallUnseen(real, this);
  __tsan_acquire(this);
}

void Mutex::Unlock() {
  static const auto real = Real<void(Mutex*)>("5Mutex6UnlockEv");
  __tsan_release(this);
  CallUnseen(real, this);
}

bool Mutex::TryLock() {
  static const auto real = Real<bool(Mutex*)>("5Mutex7TryLockEv");
  const bool locked = CallUnseen(real, this);
  if (locked) __tsan_acquire(this);
  return locked;
}

void Mutex::ReaderLock() {
  static const auto real = Real<void(Mutex*)>("5Mutex10ReaderLockEv");
  CallUnseen(real, this);
  __tsan_acquire(this);
}

void Mutex::ReaderUnlock() {
  static const auto real = Real<void(Mutex*)>("5Mutex12ReaderUnlockEv");
  __tsan_release(this);
  CallUnseen(real, this);
}

void CondVar::Wait(Mutex* mutex) {
  static const auto real =
      Real<void(CondVar*, Mutex*)>("7CondVar4WaitEPNS0_5MutexE");
  __tsan_release(mutex);
  CallUnseen(real, this, mutex);
  __tsan_acquire(mutex);
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static const auto real = Real<bool(CondVar*, Mutex*, Duration)>(
      "7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  __tsan_release(mutex);
  const bool is_late = CallUnseen(real, this, mutex, timeout);
  __tsan_acquire(mutex);
  return is_late;
}

void Mutex::Await(const Condition& condition) {
  static const auto real =
      Real<void(Mutex*, const Condition&)>("5Mutex5AwaitERKNS0_9ConditionE");
  __tsan_release(this);
  CallUnseen(real, this, condition);
  __tsan_acquire(this);
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  static const auto real = Real<bool(Mutex*, const Condition&, Time)>(
      "5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  __tsan_release(this);
  const bool holds = CallUnseen(real, this, condition, deadline);
  __tsan_acquire(this);
  return holds;
}

void Mutex::LockWhen(const Condition& condition) {
  static const auto real =
      Real<void(Mutex*, const Condition&)>("5Mutex8LockWhenERKNS0_9ConditionE");
  CallUnseen(real, this, condition);
  __tsan_acquire(this);
}

// Whoever unlocks evaluates the conditions of those who wait, after it has
// reported its release: under the lock, but not so that the sanitizer can see.
bool Condition::Eval() const {
  static const auto real = Real<bool(const Condition*)>("9Condition4EvalEv",
                                                        /*is_const=*/true);
  return CallUnseen(real, this);
}

// Waits for what has been notified take no lock. HasBeenNotified() is a load
// that the sanitizer sees.
void Notification::Notify() {
  static const auto real = Real<void(Notification*)>("12Notification6NotifyEv");
  __tsan_release(&notified_yet_);
  CallUnseen(real, this);
}

void Notification::WaitForNotification() const {
  static const auto real = Real<void(const Notification*)>(
      "12Notification19WaitForNotificationEv", /*is_const=*/true);
  CallUnseen(real, this);
  __tsan_acquire(const_cast<std::atomic<bool>*>(&notified_yet_));
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static const auto real = Real<bool(const Notification*, Duration)>(
      "12Notification30WaitForNotificationWithTimeoutENS0_8DurationE",
      /*is_const=*/true);
  const bool is_notified = CallUnseen(real, this, timeout);
  if (is_notified) {
    __tsan_acquire(const_cast<std::atomic<bool>*>(&notified_yet_));
  }
  return is_notified;
}

// Who lets go of what is shared is ordered before all who do so later, the last
// of whom destroys it. The library's call is seen: it frees memory.
void Status::UnrefNonInlined(uintptr_t rep) {
  static const auto real = Real<void(uintptr_t)>("6Status15UnrefNonInlinedEm");
  __tsan_release(RepToPointer(rep));
  __tsan_acquire(RepToPointer(rep));
  real(rep);
}

// Changes in place what nobody else holds any more.
void Status::PrepareToModify() {
  static const auto real = Real<void(Status*)>("6Status15PrepareToModifyEv");
  if (!IsInlined(rep_)) __tsan_acquire(RepToPointer(rep_));
  real(this);
}

void Cord::DestroyCordSlow() {
  static const auto real = Real<void(Cord*)>("4Cord15DestroyCordSlowEv");
  __tsan_release(contents_.as_tree());
  __tsan_acquire(contents_.as_tree());
  real(this);
}

ABSL_NAMESPACE_END
}  // namespace absl
