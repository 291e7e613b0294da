// What every memory resource must do.
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/memory/host_resource.h"
#include "core/memory/limiting_resource.h"
#include "core/memory/memory_resource.h"
#include "core/memory/pool_resource.h"
#include "core/memory/tracking_resource.h"
#include "gtest/gtest.h"

namespace tensord::core {
namespace {

/// A resource with everything below it.
struct Stack {
  std::vector<std::unique_ptr<MemoryResource>> parts;  // upstream first
  Stack() = default;
  Stack(Stack&&) = default;
  ~Stack() {
    while (!parts.empty()) parts.pop_back();
  }
  MemoryResource& top() const { return *parts.back(); }

  template <typename Resource, typename... Arguments>
  Stack On(Arguments&&... arguments) && {
    parts.push_back(std::make_unique<Resource>(
        top(), std::forward<Arguments>(arguments)...));
    return std::move(*this);
  }
};

Stack Host() {
  Stack stack;
  stack.parts.push_back(std::make_unique<HostResource>());
  return stack;
}

struct Subject {
  std::string name;
  std::function<Stack()> make;
};

constexpr int64_t kOneMiB = int64_t{1} << 20;
constexpr PoolOptions kSmallSlabs = {.slab_bytes = 4 * kOneMiB};

class ResourceConformance : public ::testing::TestWithParam<Subject> {
 protected:
  const Stack stack_ = GetParam().make();
  MemoryResource& resource_ = stack_.top();
};

INSTANTIATE_TEST_SUITE_P(
    Resources, ResourceConformance,
    ::testing::Values(
        Subject{"Host", [] { return Host(); }},
        Subject{"Pool", [] { return Host().On<PoolResource>(kSmallSlabs); }},
        Subject{"Limiting",
                [] {
                  return Host().On<LimitingResource>(256 * kOneMiB,
                                                     "test limit");
                }},
        Subject{"Tracking", [] { return Host().On<TrackingResource>(); }},
        Subject{"PoolOnLimit",
                [] {
                  return Host()
                      .On<LimitingResource>(256 * kOneMiB, "test limit")
                      .On<PoolResource>(kSmallSlabs);
                }},
        Subject{"LimitOnPool",
                [] {
                  return Host()
                      .On<PoolResource>(kSmallSlabs)
                      .On<LimitingResource>(256 * kOneMiB, "test limit");
                }}),
    [](const auto& info) { return info.param.name; });

TEST_P(ResourceConformance, MemoryIsAlignedAndWritable) {
  for (const int64_t bytes : {int64_t{1}, int64_t{255}, int64_t{4097},
                              2 * kOneMiB, 2 * kOneMiB + 1, 5 * kOneMiB}) {
    SCOPED_TRACE(bytes);
    const auto buffer = Buffer::Allocate(resource_, bytes);
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % kBufferAlignment,
              0u);
    EXPECT_EQ(buffer->bytes(), bytes);
    std::memset(buffer->data(), 0x5a, static_cast<size_t>(bytes));
  }
}

TEST_P(ResourceConformance, NothingIsAnEmptyBuffer) {
  const auto buffer = Buffer::Allocate(resource_, 0);
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ(buffer->data(), nullptr);
}

TEST_P(ResourceConformance, TooMuchIsRefusedAndChangesNothing) {
  for (const int64_t bytes :
       {std::numeric_limits<int64_t>::max(),
        std::numeric_limits<int64_t>::max() - 4096, int64_t{1} << 62}) {
    const auto buffer = Buffer::Allocate(resource_, bytes);
    EXPECT_EQ(buffer.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_NE(buffer.status().message().find(std::to_string(bytes)),
              absl::string_view::npos)
        << buffer.status();
  }
  EXPECT_TRUE(Buffer::Allocate(resource_, kOneMiB).ok());
}

/// A buffer whose every byte is `mark`.
struct Marked {
  Buffer buffer;
  unsigned char mark;

  bool IsIntact() const {
    for (int64_t i = 0; i < buffer.bytes(); ++i) {
      if (buffer.data()[i] != std::byte{mark}) return false;
    }
    return true;
  }
};

/// Allocates and frees at random and checks that no two buffers overlap.
void Churn(MemoryResource& resource, uint32_t seed) {
  std::mt19937 rng(seed);
  std::vector<Marked> held;
  for (int step = 0; step < 600; ++step) {
    if (held.size() < 20 && rng() % 5 < 3) {
      const int64_t bytes = 1 + rng() % (rng() % 10 == 0 ? 3 * kOneMiB : 5000);
      auto buffer = Buffer::Allocate(resource, bytes);
      ASSERT_TRUE(buffer.ok()) << buffer.status();
      const auto mark = static_cast<unsigned char>(rng());
      std::memset(buffer->data(), mark, static_cast<size_t>(bytes));
      held.push_back({*std::move(buffer), mark});
    } else if (!held.empty()) {
      std::swap(held[rng() % held.size()], held.back());
      ASSERT_TRUE(held.back().IsIntact()) << "step " << step;
      held.pop_back();
    }
  }
  for (const Marked& marked : held) EXPECT_TRUE(marked.IsIntact());
}

TEST_P(ResourceConformance, BuffersNeverOverlap) {
  for (uint32_t seed = 0; seed < 3; ++seed) {
    SCOPED_TRACE(seed);
    Churn(resource_, seed);
  }
}

TEST_P(ResourceConformance, ThreadsMayShareIt) {
  std::vector<std::thread> threads;
  for (uint32_t seed = 10; seed < 14; ++seed) {
    threads.emplace_back([this, seed] { Churn(resource_, seed); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tensord::core
