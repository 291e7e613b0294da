#include "core/base/element_type.h"

#include <set>
#include <string>
#include <type_traits>

#include "gtest/gtest.h"

namespace tensord::core {
namespace {

template <typename Visitor>
void ForEveryType(Visitor&& visit) {
  for (int i = 0; i < kElementTypeCount; ++i) {
    const auto type = static_cast<ElementType>(i);
    SCOPED_TRACE(NameOf(type));
    visit(type);
  }
}

TEST(ElementTypeTest, SizeIsThatOfTheVisitedType) {
  ForEveryType([](ElementType type) {
    VisitElementType(type, [&](auto zero) {
      EXPECT_EQ(SizeOf(type), static_cast<int64_t>(sizeof(zero)));
    });
  });
}

TEST(ElementTypeTest, NamesAreUniqueAndLeadBack) {
  std::set<std::string> names;
  ForEveryType([&](ElementType type) {
    EXPECT_TRUE(names.insert(std::string(NameOf(type))).second);
    EXPECT_EQ(ElementTypeFromName(NameOf(type)), type);
  });
  EXPECT_EQ(NameOf(ElementType::kComplex64), "complex64");
  EXPECT_EQ(ElementTypeFromName("float8"), std::nullopt);
  EXPECT_EQ(ElementTypeFromName(""), std::nullopt);
}

TEST(ElementTypeTest, ComputeTypesHaveUniqueNames) {
  std::set<std::string> names;
  for (int i = 0; i < kComputeTypeCount; ++i) {
    EXPECT_TRUE(
        names.insert(std::string(NameOf(static_cast<ComputeType>(i)))).second);
  }
}

TEST(ElementTypeTest, ClassesFollowTheVisitedType) {
  ForEveryType([](ElementType type) {
    VisitElementType(type, [&]<typename T>(T) {
      EXPECT_EQ(IsInteger(type), std::is_integral_v<T>);
      constexpr bool kIsComplex = requires(T x) { x.imag(); };
      EXPECT_EQ(IsComplex(type), kIsComplex);
      EXPECT_EQ(SizeOf(RealPartOf(type)) * (kIsComplex ? 2 : 1), SizeOf(type));
    });
  });
}

}  // namespace
}  // namespace tensord::core
