// What testing/tsan_abseil.cc tells ThreadSanitizer of Abseil: each way of
// ordering two threads is seen also where nobody has to wait, and a race beside
// it is found all the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/barrier.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tensord {
namespace {

using ::testing::IsEmpty;

/// One thread signals, another waits until it has.
struct Order {
  std::string name;
  std::function<void()> signal;
  std::function<void()> wait;
};

/// All that order by a lock, by its mutex and what it guards.
struct Locked {
  absl::Mutex mutex;
  absl::CondVar changed;
  bool is_set = false;
  int waited_count = 0;

  void Set() {
    const absl::MutexLock lock(&mutex);
    is_set = true;
    ++waited_count;  // races with a wait that does not release
    changed.SignalAll();
  }
};

Order WithLock(const std::string& name,
               const std::function<void(Locked&)>& wait) {
  const auto locked = std::make_shared<Locked>();
  return {name, [=] { locked->Set(); }, [=] { wait(*locked); }};
}

/// The same, which can only look whether it has: again until it has.
Order WithLooks(const std::string& name,
                const std::function<bool(Locked&)>& look) {
  return WithLock(name, [=](Locked& locked) {
    while (!look(locked)) std::this_thread::yield();
  });
}

Order WithNotification(
    const std::string& name,
    const std::function<void(const absl::Notification&)>& wait) {
  const auto done = std::make_shared<absl::Notification>();
  return {name, [=] { done->Notify(); }, [=] { wait(*done); }};
}

/// New ones, each for one use.
std::vector<Order> Orders() {
  const auto is_set = [](Locked* locked) { return locked->is_set; };
  const auto barrier = std::make_shared<absl::Barrier>(2);
  return {
      WithLooks("MutexLock",
                [](Locked& locked) {
                  const absl::MutexLock lock(&locked.mutex);
                  return locked.is_set;
                }),
      WithLooks("ReaderMutexLock",
                [](Locked& locked) {
                  const absl::ReaderMutexLock lock(&locked.mutex);
                  return locked.is_set;
                }),
      WithLooks("ReleasableMutexLock",
                [](Locked& locked) {
                  absl::ReleasableMutexLock lock(&locked.mutex);
                  const bool is_set = locked.is_set;
                  lock.Release();
                  return is_set;
                }),
      WithLooks("TryLock",
                [](Locked& locked) {
                  if (!locked.mutex.TryLock()) return false;
                  const bool is_set = locked.is_set;
                  locked.mutex.Unlock();
                  return is_set;
                }),
      WithLock("LockWhen",
               [=](Locked& locked) {
                 locked.mutex.LockWhen(absl::Condition(+is_set, &locked));
                 locked.mutex.Unlock();
               }),
      WithLock("Await",
               [=](Locked& locked) {
                 const absl::MutexLock lock(&locked.mutex);
                 ++locked.waited_count;
                 locked.mutex.Await(absl::Condition(+is_set, &locked));
               }),
      WithLock("AwaitWithTimeout",
               [=](Locked& locked) {
                 const absl::MutexLock lock(&locked.mutex);
                 ++locked.waited_count;
                 EXPECT_TRUE(locked.mutex.AwaitWithTimeout(
                     absl::Condition(+is_set, &locked), absl::Minutes(1)));
               }),
      WithLock("AwaitWithDeadline",
               [=](Locked& locked) {
                 const absl::MutexLock lock(&locked.mutex);
                 ++locked.waited_count;
                 EXPECT_TRUE(locked.mutex.AwaitWithDeadline(
                     absl::Condition(+is_set, &locked),
                     absl::Now() + absl::Minutes(1)));
               }),
      WithLock("CondVarWait",
               [](Locked& locked) {
                 const absl::MutexLock lock(&locked.mutex);
                 ++locked.waited_count;
                 while (!locked.is_set) locked.changed.Wait(&locked.mutex);
               }),
      WithLock("CondVarWaitWithTimeout",
               [](Locked& locked) {
                 const absl::MutexLock lock(&locked.mutex);
                 ++locked.waited_count;
                 while (!locked.is_set) {
                   locked.changed.WaitWithTimeout(&locked.mutex,
                                                  absl::Minutes(1));
                 }
               }),
      WithNotification(
          "Notification",
          [](const absl::Notification& done) { done.WaitForNotification(); }),
      WithNotification(
          "NotificationWithTimeout",
          [](const absl::Notification& done) {
            EXPECT_TRUE(done.WaitForNotificationWithTimeout(absl::Minutes(1)));
          }),
      WithNotification("HasBeenNotified",
                       [](const absl::Notification& done) {
                         while (!done.HasBeenNotified()) {
                           std::this_thread::yield();
                         }
                       }),
      {"Barrier", [=] { barrier->Block(); }, [=] { barrier->Block(); }},
  };
}

/// The other thread is through meanwhile; if it is not, nothing is tested, and
/// nothing fails.
constexpr absl::Duration kPause = absl::Milliseconds(50);

/// Writes in one thread and reads in another, which waits for it. One of them
/// is late.
int WriteAndRead(const Order& order, bool signals_late) {
  int value = 0;
  std::thread writer([&] {
    if (signals_late) absl::SleepFor(kPause);
    value = 1;
    order.signal();
  });
  if (!signals_late) absl::SleepFor(kPause);
  order.wait();
  const int read = value;
  writer.join();
  return read;
}

/// The same, but it is written once more when nobody waits any more.
void WriteTooLate(const Order& order) {
  int value = 0;
  std::thread writer([&] {
    value = 1;
    order.signal();
    value = 2;
  });
  absl::SleepFor(kPause);
  order.wait();
  const volatile int read = value;
  static_cast<void>(read);
  writer.join();
}

/// Long enough to lie on the heap.
constexpr absl::string_view kText =
    "a text that is too long for the memory of its own object";

absl::Status SharedError() {
  absl::Status error = absl::InternalError(kText);
  error.SetPayload("long", absl::Cord(kText));
  return error;
}

class TsanAbseilTest : public ::testing::Test {
 protected:
  TsanAbseilTest() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    SharedError().IgnoreError();  // the first use orders threads by itself
  }
};

TEST_F(TsanAbseilTest, WhoIsLateIsOrderedToo) {
  for (const Order& order : Orders()) {
    SCOPED_TRACE(order.name);
    EXPECT_EQ(WriteAndRead(order, /*signals_late=*/false), 1);
  }
}

TEST_F(TsanAbseilTest, WhoWaitsIsOrdered) {
  for (const Order& order : Orders()) {
    if (absl::StrContains(order.name, "Lock") && order.name != "LockWhen") {
      continue;  // these wait for nothing but the lock
    }
    SCOPED_TRACE(order.name);
    EXPECT_EQ(WriteAndRead(order, /*signals_late=*/true), 1);
  }
}

/// ThreadSanitizer's status when it has found something.
constexpr int kFound = 66;

TEST_F(TsanAbseilTest, WhoHasReadIsOrderedBeforeWhoeverWrites) {
  Locked locked;
  std::thread reader([&] {
    const absl::ReaderMutexLock lock(&locked.mutex);
    EXPECT_TRUE(!locked.is_set || locked.waited_count == 1);
  });
  absl::SleepFor(kPause);
  locked.Set();
  reader.join();
}

TEST_F(TsanAbseilTest, RacesBesideThemAreFound) {
  const size_t count = Orders().size();
  for (size_t i = 0; i < count; ++i) {
    SCOPED_TRACE(Orders()[i].name);
    EXPECT_EXIT(
        {
          WriteTooLate(Orders()[i]);
          std::exit(0);
        },
        ::testing::ExitedWithCode(kFound), "data race");
  }
}

TEST_F(TsanAbseilTest, WhoeverDestroysAnErrorLastIsOrdered) {
  auto error = std::make_unique<absl::Status>(absl::InternalError(kText));
  std::thread reader([copy = *error]() mutable {
    EXPECT_EQ(copy.message(), kText);
    copy = absl::OkStatus();
  });
  absl::SleepFor(kPause);
  error.reset();
  reader.join();
}

TEST_F(TsanAbseilTest, WhoeverDestroysPartsOfAnErrorLastIsOrdered) {
  auto error = std::make_unique<absl::Status>(SharedError());
  std::thread reader([part = error->GetPayload("long")]() mutable {
    EXPECT_EQ(std::string(*part), kText);
    part.reset();
  });
  absl::SleepFor(kPause);
  error.reset();
  reader.join();
}

TEST_F(TsanAbseilTest, WhoeverChangesAnErrorLastIsOrdered) {
  absl::Status error = SharedError();
  std::thread reader([copy = error]() mutable {
    copy.ForEachPayload([](absl::string_view, const absl::Cord& part) {
      EXPECT_EQ(std::string(part), kText);
    });
    copy = absl::OkStatus();
  });
  absl::SleepFor(kPause);
  for (int i = 0; i < 8; ++i) {
    error.SetPayload(absl::StrCat(i), absl::Cord(kText));
  }
  error.SetPayload("long", absl::Cord("short"));
  reader.join();
}

TEST_F(TsanAbseilTest, AnErrorThatIsReadWhileItIsDestroyedIsFound) {
  EXPECT_EXIT(
      {
        auto error = std::make_unique<absl::Status>(SharedError());
        std::atomic<bool> has_begun = false;  // relaxed: it orders nothing
        std::thread reader([&has_begun, message = error->message()] {
          has_begun.store(true, std::memory_order_relaxed);
          EXPECT_EQ(std::string(message), kText);
        });
        while (!has_begun.load(std::memory_order_relaxed)) {
          std::this_thread::yield();
        }
        absl::SleepFor(kPause);
        error.reset();
        reader.join();
        std::exit(0);
      },
      ::testing::ExitedWithCode(kFound), "data race");
}

/// What `program` takes from libraries, by name.
std::set<std::string> Taken(const std::filesystem::path& program) {
  const std::string command =
      absl::StrCat("nm -uDC '", program.string(), "' 2>&1");
  const std::unique_ptr<FILE, int (*)(FILE*)> output(
      popen(command.c_str(), "r"), &pclose);
  std::set<std::string> names;
  std::array<char, 4096> line;
  while (fgets(line.data(), line.size(), output.get()) != nullptr) {
    absl::string_view name = absl::StripAsciiWhitespace(line.data());
    if (absl::ConsumePrefix(&name, "U ")) names.insert(std::string(name));
  }
  return names;
}

/// Whether a function of Abseil orders threads, as far as its name tells.
bool OrdersThreads(absl::string_view name) {
  for (const absl::string_view part :
       {"::Mutex::", "::CondVar::", "::Notification::", "::Barrier::",
        "::BlockingCounter::", "::CallOnce", "::Status::UnrefNonInlined",
        "::Status::PrepareToModify", "::Cord::DestroyCordSlow", "::Cord::Clear",
        "::Cord::InlineRep::", "::CordRep::Destroy"}) {
    if (absl::StrContains(name, part)) return absl::StrContains(name, "absl::");
  }
  return false;
}

TEST_F(TsanAbseilTest, MutexesMayEndOnAllThreads) {
  // Those that one thread had at a time are neighbours in the library's graph.
  const auto lock_and_destroy = [] {
    for (int round = 0; round < 50; ++round) {
      std::vector<std::unique_ptr<absl::Mutex>> mutexes(20);
      for (auto& mutex : mutexes) mutex = std::make_unique<absl::Mutex>();
      for (const auto& first : mutexes) {
        const absl::MutexLock lock(first.get());
        for (const auto& second : mutexes) {
          if (second > first) const absl::MutexLock inner(second.get());
        }
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(lock_and_destroy);
  for (std::thread& thread : threads) thread.join();
}

TEST_F(TsanAbseilTest, NoTestUsesWhatTheSanitizerIsNotToldOf) {
  // They wake others, who order themselves, or call what is told of.
  const std::set<std::string> harmless = {
      "CondVar::~CondVar()",
      "CondVar::Signal()",
      "CondVar::SignalAll()",
      "Notification::~Notification()",
      "Barrier::Block()",
      "Mutex::AwaitWithTimeout(absl::debian3::Condition const&, "
      "absl::debian3::Duration)"};
  const std::filesystem::path self =
      std::filesystem::read_symlink("/proc/self/exe");
  ASSERT_THAT(Taken(self), ::testing::Contains(
                               ::testing::HasSubstr("::CondVar::SignalAll()")));
  for (const auto& program :
       std::filesystem::directory_iterator(self.parent_path())) {
    if (!absl::EndsWith(program.path().string(), "_test")) continue;
    std::set<std::string> untold;
    for (const std::string& name : Taken(program.path())) {
      const bool is_harmless = std::any_of(
          harmless.begin(), harmless.end(), [&](const std::string& end) {
            return absl::EndsWith(name, absl::StrCat("::", end));
          });
      if (OrdersThreads(name) && !is_harmless) untold.insert(name);
    }
    EXPECT_THAT(untold, IsEmpty()) << program.path();
  }
}

}  // namespace
}  // namespace tensord
