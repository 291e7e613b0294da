#include "server/rpc/coroutine/task.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace tensord::rpc {
namespace {

Task<int> Count(Signal& go, std::string& trace) {
  trace += "a";
  co_await go;
  trace += "b";
  co_return 7;
}

Task<std::unique_ptr<int>> AtOnce() { co_return std::make_unique<int>(3); }

TEST(TaskTest, RunsWhenItIsAwaited) {
  Signal go;
  std::string trace;
  int result = 0;
  [](Signal& signal, std::string& seen, int& value) -> Detached {
    Task<int> task = Count(signal, seen);
    seen += "0";
    value = co_await task;
  }(go, trace, result);
  EXPECT_EQ(trace, "0a");
  go.Notify();
  EXPECT_EQ(trace, "0ab");
  EXPECT_EQ(result, 7);
}

TEST(TaskTest, StartedOnesGoOnSideBySide) {
  Signal first, second;
  std::string trace;
  int sum = 0;
  [](Signal& one, Signal& two, std::string& seen, int& value) -> Detached {
    Task<int> a = Count(one, seen);
    Task<int> b = Count(two, seen);
    a.Start();
    b.Start();
    seen += "0";
    value += co_await a;
    value += co_await b;
  }(first, second, trace, sum);
  EXPECT_EQ(trace, "aa0");
  second.Notify();  // It ends before anyone awaits it.
  EXPECT_EQ(trace, "aa0b");
  EXPECT_EQ(sum, 0);
  first.Notify();
  EXPECT_EQ(trace, "aa0bb");
  EXPECT_EQ(sum, 14);
}

TEST(TaskTest, StartedOneThatNeverWaitsIsDone) {
  int result = 0;
  [](int& value) -> Detached {
    Task<std::unique_ptr<int>> task = AtOnce();
    task.Start();
    const auto three = co_await task;
    value = *three;
  }(result);
  EXPECT_EQ(result, 3);
}

TEST(SignalTest, NotifyWithoutAnyoneWaitingDoesNothing) {
  Signal signal;
  signal.Notify();
  int passed = 0;
  [](Signal& go, int& count) -> Detached {
    while (count < 2) {
      co_await go;
      ++count;
    }
  }(signal, passed);
  EXPECT_EQ(passed, 0);
  for (int i = 0; i < 3; ++i) signal.Notify();
  EXPECT_EQ(passed, 2);
}

}  // namespace
}  // namespace tensord::rpc
