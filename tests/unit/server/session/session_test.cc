#include "server/session/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "core/base/status.h"
#include "server/session/session_manager.h"

namespace tensord::server {
namespace {

core::TensorDesc Vector(int64_t extent) {
  return {core::ElementType::kFloat32,
          core::PackedLayout({extent}, core::Order::kFirstModeFastest)};
}

class SessionTest : public ::testing::Test {
 protected:
  std::unique_ptr<Engine> engine_ =
      Engine::Create({.cpu_threads = 1, .memory_limit_bytes = 1 << 20}).value();
  Session session_{"sessions/s", 1, *engine_->devices().front(),
                   SessionOptions{.job = "job",
                                  .owner = "job",
                                  .lease = absl::Seconds(60),
                                  .memory_quota_bytes = 4096}};
};

TEST_F(SessionTest, NamesTensorsAndFindsThem) {
  const auto named = session_.Add("x", Vector(4));
  ASSERT_TRUE(named.ok());
  EXPECT_EQ((*named)->name(), "sessions/s/tensors/x");
  EXPECT_EQ(*session_.Find("sessions/s/tensors/x"), *named);
  const auto unnamed = session_.Add("", Vector(4));
  ASSERT_TRUE(unnamed.ok());
  EXPECT_NE((*unnamed)->name(), (*named)->name());
}

TEST_F(SessionTest, ChosenNamesAvoidThoseOfTheClient) {
  ASSERT_TRUE(session_.Add("t1", Vector(1)).ok());
  const auto unnamed = session_.Add("", Vector(1));
  ASSERT_TRUE(unnamed.ok());
  EXPECT_NE((*unnamed)->name(), "sessions/s/tensors/t1");
}

TEST_F(SessionTest, RefusesNamesOfOthers) {
  EXPECT_EQ(core::ReasonOf(session_.Find("sessions/o/tensors/x").status()),
            "TENSOR_NOT_FOUND");
  EXPECT_EQ(core::ReasonOf(session_.Find("sessions/s/tensors/x").status()),
            "TENSOR_NOT_FOUND");
  EXPECT_EQ(core::ReasonOf(session_.Find("x").status()),
            "TENSOR_NAME_MALFORMED");
  EXPECT_EQ(core::ReasonOf(session_.Add("a b", Vector(1)).status()),
            "TENSOR_ID_MALFORMED");
}

TEST_F(SessionTest, RemovesThisVeryTensorOnly) {
  const auto first = session_.Add("x", Vector(1));
  ASSERT_TRUE(session_.Remove("sessions/s/tensors/x").ok());
  const auto second = session_.Add("x", Vector(1));
  session_.Remove(**first);
  EXPECT_TRUE(session_.Find("sessions/s/tensors/x").ok());
  session_.Remove(**second);
  EXPECT_FALSE(session_.Find("sessions/s/tensors/x").ok());
}

TEST_F(SessionTest, QuotaBoundsItsTensorsAndComesBack) {
  const auto big = session_.Add("big", Vector(1024));
  ASSERT_TRUE((*big)->Allocate().ok());
  const auto more = session_.Add("more", Vector(1));
  const absl::Status full = (*more)->Allocate();
  EXPECT_EQ(core::ReasonOf(full), "MEMORY_LIMIT");
  EXPECT_THAT(std::string(full.message()),
              ::testing::HasSubstr("session quota"));
  EXPECT_EQ(session_.memory()->used_bytes(), 4096);
}

TEST_F(SessionTest, SessionsOfATenantHaveOneShare) {
  const auto account = std::make_shared<TenantAccount>("red", nullptr);
  account->SetQuotas({.device_bytes = 4096, .tensors = 2});
  const auto session_of_red = [&](std::string name, uint64_t number) {
    return std::make_unique<Session>(
        std::move(name), number, *engine_->devices().front(),
        SessionOptions{.tenant = "red", .memory_quota_bytes = 1 << 20},
        account);
  };
  const auto one = session_of_red("sessions/one", 2);
  auto other = session_of_red("sessions/other", 3);
  ASSERT_TRUE((*one->Add("x", Vector(512)))->Allocate().ok());
  auto large = other->Add("x", Vector(1024));
  EXPECT_EQ(core::ReasonOf((*large)->Allocate()), "TENANT_QUOTA_EXCEEDED");
  EXPECT_EQ(core::ReasonOf(one->Add("y", Vector(1)).status()),
            "TENANT_QUOTA_EXCEEDED");
  ASSERT_TRUE(one->Remove("sessions/one/tensors/x").ok());
  EXPECT_TRUE((*large)->Allocate().ok());
  // A tensor that outlives its session still counts.
  other.reset();
  EXPECT_EQ(account->On(*engine_->devices().front()).memory.used_bytes(), 4096);
}

TEST(TenantMemoryTest, NoTenantFindsWhatAnotherLeft) {
  const auto engine = Engine::Create({.cpu_threads = 1,
                                      .memory_limit_bytes = 1 << 20,
                                      .clears_memory = true})
                          .value();
  SessionManager sessions(*engine, {}, [](const Session&) {});
  const auto fill = [&](const std::string& tenant, int value) {
    const auto session = sessions.Open({.tenant = tenant}).value();
    const auto tensor = session->Add("x", Vector(100'000)).value();
    EXPECT_TRUE(tensor->Allocate().ok());
    std::byte* const first = tensor->first();
    std::vector<std::byte> found(first, first + tensor->desc().span_bytes());
    std::memset(first, value, found.size());
    EXPECT_TRUE(sessions.Close(session->name()).ok());
    return found;
  };
  const std::vector<std::byte> zeros(400'000);
  EXPECT_EQ(fill("red", 0x5a), zeros);
  EXPECT_EQ(fill("blue", 0x5b), zeros);
  EXPECT_EQ(fill("red", 0x5c), zeros);
}

TEST_F(SessionTest, TenantsCannotReserveMoreThanThereIs) {
  SessionManager sessions(*engine_, {}, [](const Session&) {});
  const auto reserving = [](int64_t bytes) {
    return TenantLimits{
        .priority = {}, .sessions = {}, .quotas = {.reserved_bytes = bytes}};
  };
  ASSERT_TRUE(
      sessions
          .SetTenants({{"a", reserving(600'000)}, {"b", reserving(400'000)}})
          .ok());
  const absl::Status refused = sessions.SetTenants(
      {{"a", reserving(600'000)}, {"b", reserving(500'000)}});
  EXPECT_EQ(core::ReasonOf(refused), "RESERVATIONS_TOO_LARGE");
  EXPECT_THAT(std::string(refused.message()),
              ::testing::HasSubstr("tenant b has reserved_bytes of 500000"));
  // What was good stays.
  const auto session = sessions.Open({.tenant = "c"});
  ASSERT_TRUE(session.ok());
  const auto tensor = (*session)->Add("x", Vector(20'000));
  EXPECT_EQ(core::ReasonOf((*tensor)->Allocate()), "MEMORY_LIMIT");
}

TEST_F(SessionTest, ClosedSessionTakesNoTensors) {
  ASSERT_TRUE(session_.Add("x", Vector(1)).ok());
  session_.Close();
  EXPECT_EQ(session_.tensor_count(), 0);
  EXPECT_EQ(core::ReasonOf(session_.Add("y", Vector(1)).status()),
            "SESSION_NOT_FOUND");
}

TEST_F(SessionTest, KeepsABoundedNumberOfViews) {
  const std::vector<ViewStage> stages = {
      std::vector<core::IndexItem>{core::SliceItem{0, 2, 1}}};
  const auto viewed = session_.Add("x", Vector(4));
  std::shared_ptr<StoredTensor> last;
  for (int64_t i = 0; i < Session::kMaxViews; ++i) {
    const auto view = session_.AddView("", **viewed, stages, std::nullopt);
    ASSERT_TRUE(view.ok()) << i << ": " << view.status();
    last = *view;
  }
  EXPECT_EQ(core::ReasonOf(
                session_.AddView("", **viewed, stages, std::nullopt).status()),
            "TOO_MANY_VIEWS");
  EXPECT_TRUE(session_.Add("y", Vector(4)).ok());
  ASSERT_TRUE(session_.Remove(last->name()).ok());
  EXPECT_TRUE(session_.AddView("", **viewed, stages, std::nullopt).ok());
  EXPECT_FALSE(session_.AddView("", **viewed, stages, std::nullopt).ok());
}

TEST_F(SessionTest, LeaseRunsOutUnlessInUse) {
  // The monotonic clock, as its type says: setting the time changes nothing.
  const auto now = std::chrono::steady_clock::now();
  const auto later = now + std::chrono::seconds(61);
  EXPECT_TRUE(session_.IsExpired(later));
  EXPECT_FALSE(session_.IsExpired(now));
  session_.BeginUse();
  EXPECT_FALSE(session_.IsExpired(later));
  session_.EndUse();
  EXPECT_TRUE(session_.IsExpired(later));
}

TEST_F(SessionTest, RecordsTakeNoMoreThanIsCounted) {
  constexpr int kCount = 1000;
  const auto heap = [] { return static_cast<int64_t>(mallinfo2().uordblks); };
  const auto counted = [&] {
    return session_.host_memory()->used(HostUse::kTensors).bytes;
  };
  const std::vector<ViewStage> stages = {
      std::vector<core::IndexItem>{core::SliceItem{0, 2, 1}}};
  for (const int mode_count : {0, 4, 40}) {
    core::ModeVector extents(mode_count, 2);
    if (mode_count > 0) extents[0] = 0;
    const core::TensorDesc empty{
        core::ElementType::kFloat32,
        core::PackedLayout(extents, core::Order::kFirstModeFastest)};
    const int64_t heap_before = heap(), counted_before = counted();
    for (int i = 0; i < kCount; ++i) ASSERT_TRUE(session_.Add("", empty).ok());
    EXPECT_LE(heap() - heap_before, counted() - counted_before) << mode_count;
  }
  const auto viewed = session_.Add("x", Vector(4));
  const int64_t heap_before = heap(), counted_before = counted();
  for (int i = 0; i < kCount; ++i) {
    ASSERT_TRUE(session_.AddView("", **viewed, stages, std::nullopt).ok());
  }
  EXPECT_LE(heap() - heap_before, counted() - counted_before);
  session_.Close();
  EXPECT_EQ(counted(), 0);
}

TEST_F(SessionTest, LimitsTensorsInNumberAndGivesBackWhatGoes) {
  SessionOptions options{
      .job = "job", .lease = absl::Seconds(60), .memory_quota_bytes = 4096};
  options.host_limits[static_cast<int>(HostUse::kTensors)].count = 2;
  Session session("sessions/s", 1, *engine_->devices().front(), options);
  const auto first = session.Add("x", Vector(0));
  ASSERT_TRUE(session.Add("", Vector(0)).ok());
  EXPECT_EQ(core::ReasonOf(session.Add("", Vector(0)).status()),
            "TOO_MANY_TENSORS");
  session.Remove(**first);
  EXPECT_TRUE(session.Add("", Vector(0)).ok());
  ASSERT_TRUE(session.Remove(session.List("", 1)[0]->name()).ok());
  EXPECT_TRUE(session.Add("", Vector(0)).ok());
}

// How soon, tests/benchmarks measure.
TEST_F(SessionTest, LeaseEndsByItselfAndNotBeforeItsTime) {
  absl::Notification expired;
  SessionManager manager(*engine_, {},
                         [&](const Session&) { expired.Notify(); });
  const auto begun = Session::Clock::now();
  const auto session = manager.Open({.job = "", .lease = absl::Seconds(1)});
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE(expired.WaitForNotificationWithTimeout(absl::Minutes(1)));
  const auto lived = Session::Clock::now() - begun;
  EXPECT_GE(lived, std::chrono::seconds(1));
  EXPECT_EQ(manager.session_count(), 0);
}

TEST_F(SessionTest, APeerWhoseSessionsRanOutMayOpenOthers) {
  absl::Notification expired;
  SessionLimits limits;
  limits.max_sessions_per_peer = 1;
  SessionManager manager(*engine_, limits,
                         [&](const Session&) { expired.Notify(); });
  OpenRequest request{.lease = absl::Seconds(3), .holder = "peer 10.0.0.1"};
  ASSERT_TRUE(manager.Open(request).ok());
  EXPECT_EQ(core::ReasonOf(manager.Open(request).status()),
            "TOO_MANY_SESSIONS_OF_PEER");
  EXPECT_TRUE(manager.Open({.holder = "peer 10.0.0.2"}).ok());
  ASSERT_TRUE(expired.WaitForNotificationWithTimeout(absl::Minutes(1)));
  request.lease = absl::Minutes(1);  // one expires, not two
  EXPECT_TRUE(manager.Open(request).ok());
}

TEST_F(SessionTest, NobodyHasMoreThanAQuarterOfAllSessionsByDefault) {
  SessionManager manager(*engine_, {.max_sessions = 12}, [](const Session&) {});
  EXPECT_EQ(manager.limits().max_sessions_per_peer, 3);
  const auto open = [&](const char* tenant, const char* holder) {
    return core::ReasonOf(
        manager.Open({.tenant = tenant, .holder = holder}).status());
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(open("a", "token 1"), "");
  EXPECT_EQ(open("a", "token 1"), "TOO_MANY_SESSIONS_OF_PEER");
  EXPECT_EQ(open("a", "token 2"), "");
  // A file of tenants may give a tenant more, and then says it of the tenant.
  ASSERT_TRUE(manager.SetTenants({{"b", {.sessions = 5}}}).ok());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(open("b", "token 3"), "");
  EXPECT_EQ(open("b", "token 3"), "TOO_MANY_SESSIONS_OF_TENANT");
}

TEST_F(SessionTest, LongLeasesAreForTenantsThatAreNamed) {
  SessionManager manager(*engine_, {}, [](const Session&) {});
  const auto open = [&](absl::Duration lease) {
    return manager.Open({.lease = lease, .tenant = "a"}).status();
  };
  EXPECT_TRUE(open(absl::Hours(1)).ok());
  const absl::Status refused = open(absl::Hours(1) + absl::Seconds(1));
  EXPECT_EQ(core::ReasonOf(refused), "LEASE_OUT_OF_RANGE");
  EXPECT_THAT(refused.message(),
              ::testing::HasSubstr("wanted 1s to 1h, as no file of tenants"));
  EXPECT_EQ(manager.max_lease("a"), absl::Hours(1));
  ASSERT_TRUE(manager.SetTenants({{"a", {}}}).ok());
  EXPECT_TRUE(open(absl::Hours(24)).ok());
  EXPECT_EQ(manager.max_lease("a"), absl::Hours(24));
  // Who runs the server may give everybody more.
  SessionManager patient(*engine_, {.default_lease = absl::Hours(2)},
                         [](const Session&) {});
  EXPECT_TRUE(patient.Open({}).ok());
  EXPECT_EQ(patient.max_lease("a"), absl::Hours(2));
}

// Forgetting a million tensors takes a second.
TEST_F(SessionTest, ASessionIsClosedWithoutItsClosersThread) {
  SessionManager manager(*engine_, {}, [](const Session&) {});
  const auto session = manager.Open({.job = ""}).value();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(session->Add("", Vector(4)).value()->Allocate().ok());
  }
  absl::Notification closed;
  std::thread::id closer;
  const auto close = [&](const std::string& name) {
    return manager.Close(name, [&] {
      closer = std::this_thread::get_id();
      closed.Notify();
    });
  };
  ASSERT_EQ(close(session->name()), absl::OkStatus());
  EXPECT_EQ(
      core::ReasonOf(
          manager.Find(session->name(), std::string(kDefaultTenant)).status()),
      "SESSION_NOT_FOUND");
  closed.WaitForNotification();
  EXPECT_NE(closer, std::this_thread::get_id());
  EXPECT_EQ(session->tensor_count(), 0);
  EXPECT_EQ(session->memory()->used_bytes(), 0);
  EXPECT_EQ(core::ReasonOf(close(session->name())), "SESSION_NOT_FOUND");
}

TEST_F(SessionTest, WhatIsToBeClosedIsWhenItsManagerEnds) {
  std::atomic<int> closed = 0;
  {
    SessionManager manager(*engine_, {}, [](const Session&) {});
    for (int i = 0; i < 20; ++i) {
      const auto session = manager.Open({.job = ""}).value();
      ASSERT_TRUE(manager.Close(session->name(), [&] { ++closed; }).ok());
    }
  }
  EXPECT_EQ(closed, 20);
}

TEST_F(SessionTest, SessionOfTakesTheNameApart) {
  EXPECT_EQ(SessionOf("sessions/s/tensors/x", kTensors), "sessions/s");
  EXPECT_EQ(SessionOf("x", kTensors), "");
}

}  // namespace
}  // namespace tensord::server
