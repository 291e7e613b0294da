#include "server/engine/plan_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/status.h"
#include "core/ops/permutation.h"
#include "core/plan/plan_key_codec.h"
#include "core/problem/permutation_problem.h"
#include "server/engine/engine.h"

namespace tensord::server {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PlanStoreTest : public ::testing::Test {
 protected:
  PlanStoreTest() { std::filesystem::create_directory(folder_); }
  ~PlanStoreTest() override { std::filesystem::remove_all(folder_); }

  static std::unique_ptr<Engine> NewEngine() {
    EngineOptions options{.cpu_threads = 1};
    options.devices = *ParseDevices("cpu");
    return Engine::Create(options).value();
  }
  /// Plans the transpose of a matrix, or finds the plan.
  static bool IsHit(Engine& engine, int64_t extent) {
    core::PermutationDesc desc{
        .a = {.layout = core::PackedLayout({extent, 3},
                                           core::Order::kLastModeFastest),
              .modes = {0, 1}},
        .d = {.layout = core::PackedLayout({3, extent},
                                           core::Order::kLastModeFastest),
              .modes = {1, 0}}};
    Device& device = *engine.devices().front();
    const core::PlanKey key{.problem = core::Canonicalize(desc),
                            .device = device.plan_device()};
    return engine.PlanFor(device, key, "test")->hit;
  }
  std::unique_ptr<PlanStore> NewStore(
      Engine& engine, absl::Duration interval = absl::Hours(1)) {
    const auto report = [this](absl::string_view event, int64_t entry_count,
                               const absl::Status& status) {
      absl::MutexLock lock(&mutex_);
      events_.push_back(
          absl::StrCat(event, " ", entry_count, " ", core::ReasonOf(status)));
    };
    return std::make_unique<PlanStore>(
        PlanStore::Options{path_, interval, "tensord test"}, engine.plans(),
        report);
  }
  void AwaitEvents(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto have_come = [&] { return events_.size() >= count; };
    mutex_.Await(absl::Condition(&have_come));
  }
  std::string Read() const {
    std::ifstream file(path_, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    return bytes.str();
  }
  void Write(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const std::string folder_ =
      ::testing::TempDir() + "plan_store_test_" + std::to_string(getpid());
  const std::string path_ = folder_ + "/plans";
  absl::Mutex mutex_;
  std::vector<std::string> events_;
};

TEST_F(PlanStoreTest, TheNextRunStartsWithWhatThisOneLearned) {
  const auto first = NewEngine();
  {
    const auto store = NewStore(*first);
    EXPECT_EQ(store->statistics().error, "");
    EXPECT_FALSE(IsHit(*first, 7));
    EXPECT_FALSE(IsHit(*first, 8));
    ASSERT_TRUE(store->Save().ok());
    EXPECT_EQ(store->statistics().saved_count, 2);
    EXPECT_GT(store->statistics().saved_at, absl::Now() - absl::Minutes(1));
  }
  const auto second = NewEngine();
  const auto store = NewStore(*second);
  EXPECT_EQ(store->statistics().loaded_count, 2);
  EXPECT_TRUE(IsHit(*second, 7));
  EXPECT_FALSE(IsHit(*second, 9));
  // What nobody asked for is not forgotten.
  ASSERT_TRUE(store->Save().ok());
  EXPECT_EQ(store->statistics().saved_count, 3);
  EXPECT_THAT(Files(), ::testing::ElementsAre("plans"));
}

TEST_F(PlanStoreTest, IsWrittenOnItsInterval) {
  const auto engine = NewEngine();
  EXPECT_FALSE(IsHit(*engine, 7));
  const auto store = NewStore(*engine, absl::Milliseconds(1));
  AwaitEvents(2);
  EXPECT_EQ(store->statistics().saved_count, 1);
  EXPECT_FALSE(Read().empty());
}

TEST_F(PlanStoreTest, FilesThatAreNotSnapshotsAreKeptAside) {
  std::string good;
  {
    const auto engine = NewEngine();
    const auto store = NewStore(*engine);
    EXPECT_FALSE(IsHit(*engine, 7));
    ASSERT_TRUE(store->Save().ok());
    good = Read();
  }
  struct Case {
    std::string bytes;
    std::string reason;
  };
  std::string newer = good, changed = good;
  newer[8] = 99;
  changed[good.size() / 2] ^= 1;
  const std::vector<Case> cases = {
      {"not a snapshot", "SNAPSHOT_FOREIGN"},
      {"", "SNAPSHOT_FOREIGN"},
      {newer, "SNAPSHOT_NEWER"},
      {changed, "SNAPSHOT_CORRUPT"},
      {good.substr(0, good.size() - 1), "SNAPSHOT_CORRUPT"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.reason);
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    Write(c.bytes);
    const auto engine = NewEngine();
    const auto store = NewStore(*engine);
    EXPECT_EQ(events_.back(), "plan_store_loaded 0 " + c.reason);
    EXPECT_THAT(store->statistics().error, HasSubstr("kept as " + path_));
    EXPECT_FALSE(IsHit(*engine, 7));
    ASSERT_EQ(Files().size(), 1u);
    EXPECT_THAT(Files()[0], HasSubstr("plans.refused-"));
    ASSERT_TRUE(store->Save().ok());
    EXPECT_EQ(store->statistics().error, "");
    EXPECT_EQ(Files().size(), 2u);
  }
}

TEST_F(PlanStoreTest, WithoutItsFolderTheServerIsAsUseful) {
  std::filesystem::remove_all(folder_);
  const auto engine = NewEngine();
  const auto store = NewStore(*engine);
  EXPECT_FALSE(IsHit(*engine, 7));
  const absl::Status saved = store->Save();
  EXPECT_EQ(core::ReasonOf(saved), "PLAN_STORE_FAILED");
  EXPECT_THAT(store->statistics().error, HasSubstr("No such file"));
  EXPECT_TRUE(IsHit(*engine, 7));
  std::filesystem::create_directory(folder_);
  EXPECT_TRUE(store->Save().ok());
}

TEST_F(PlanStoreTest, WhatCannotBeReadIsNotOverwritten) {
  // A folder in the file's place.
  std::filesystem::create_directory(path_);
  std::ofstream(path_ + "/inside") << "x";
  const auto engine = NewEngine();
  const auto store = NewStore(*engine);
  EXPECT_THAT(store->statistics().error, HasSubstr("is not used"));
  EXPECT_EQ(core::ReasonOf(store->Save()), "PLAN_STORE_FAILED");
  EXPECT_THAT(Files(), ::testing::ElementsAre("plans"));
  EXPECT_TRUE(std::filesystem::exists(path_ + "/inside"));
}

TEST_F(PlanStoreTest, PipesAreNotWaitedFor) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const auto engine = NewEngine();
  const auto store = NewStore(*engine);
  EXPECT_THAT(store->statistics().error, HasSubstr("is not a file"));
  EXPECT_EQ(core::ReasonOf(store->Save()), "PLAN_STORE_FAILED");
  EXPECT_TRUE(std::filesystem::is_fifo(path_));
}

TEST_F(PlanStoreTest, EntriesForOtherHardwareWaitAndAreNotUsed) {
  {
    const auto engine = NewEngine();
    const auto store = NewStore(*engine);
    core::PermutationDesc desc{
        .a = {.layout = core::PackedLayout({7}, core::Order::kLastModeFastest),
              .modes = {0}},
        .d = {.layout = core::PackedLayout({7}, core::Order::kLastModeFastest),
              .modes = {0}}};
    Device& device = *engine->devices().front();
    const core::PlanKey key{.problem = core::Canonicalize(desc),
                            .device = "cpu:0 of another kind"};
    ASSERT_TRUE(engine->PlanFor(device, key, "test").ok());
    ASSERT_TRUE(store->Save().ok());
  }
  const auto engine = NewEngine();
  const auto store = NewStore(*engine);
  EXPECT_EQ(store->statistics().loaded_count, 1);
  EXPECT_EQ(engine->plans().statistics().record_count, 1);
  EXPECT_FALSE(IsHit(*engine, 7));
}

}  // namespace
}  // namespace tensord::server
