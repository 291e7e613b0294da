#include "core/base/pooled.h"

#include <cstddef>
#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace tensord::core {
namespace {

template <size_t kBytes>
struct Object : Pooled {
  std::byte bytes[kBytes] = {};
};

// Sanitizers look at each object by itself.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__has_feature)
TEST(PooledTest, ObjectsOfAboutOneSizeShareTheirMemory) {
  auto first = std::make_unique<Object<2000>>();
  const void* const place = first.get();
  first.reset();
  const auto other = std::make_unique<Object<1980>>();
  EXPECT_EQ(other.get(), place);
  const auto third = std::make_unique<Object<2000>>();
  EXPECT_NE(third.get(), place);
}
#endif

TEST(PooledTest, DerivedObjectsGoWithTheirOwnSize) {
  struct Base {
    virtual ~Base() = default;
  };
  struct Derived final : Base, Pooled {
    std::byte bytes[3000] = {};
  };
  for (int i = 0; i < 3; ++i) {
    const std::unique_ptr<Base> object = std::make_unique<Derived>();
    const auto large = std::make_unique<Object<9000>>();
    const auto small = std::make_unique<Object<1>>();
    static_cast<Derived&>(*object).bytes[2999] = std::byte{1};
    large->bytes[8999] = std::byte{2};
    small->bytes[0] = std::byte{3};
    EXPECT_EQ(static_cast<Derived&>(*object).bytes[2999], std::byte{1});
  }
}

TEST(PooledTest, TakesWhatManyLeave) {
  std::vector<std::unique_ptr<Object<4000>>> objects;
  for (int i = 0; i < 500; ++i) {
    objects.push_back(std::make_unique<Object<4000>>());
  }
  objects.clear();
  for (int i = 0; i < 500; ++i) {
    objects.push_back(std::make_unique<Object<4000>>());
    EXPECT_EQ(objects.back()->bytes[3999], std::byte{0});
  }
}

}  // namespace
}  // namespace tensord::core
