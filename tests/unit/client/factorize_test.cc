// Factorizations through the client, against the server in a process of its
// own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "client/cpp/src/subscripts.h"
#include "tensord/session.h"
#include "tests/testing/places.h"
#include "tests/testing/server_process.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;
using testing::ServerProcess;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Wide = std::complex<double>;

template <typename T>
std::vector<T> Random(size_t count) {
  std::mt19937 rng(count);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(uniform(rng));
    } else {
      value = {static_cast<typename T::value_type>(uniform(rng)),
               static_cast<typename T::value_type>(uniform(rng))};
    }
  }
  return values;
}

/// Judges a thin QR of row-major matrices. Bounds are those of Higham, Accuracy
/// and Stability of Numerical Algorithms, theorem 19.4 and (19.13), with 8 for
/// what a reflection of complex numbers rounds an element, and 13 for making
/// the diagonal positive
/// (tests/conformance/matrix/factorization_conformance_test.cc).
template <typename T>
void ExpectIsQr(const std::vector<T>& a, int64_t rows, int64_t columns,
                const std::vector<T>& q, const std::vector<T>& r) {
  using Real = decltype(std::abs(T()));
  const int64_t inner = std::min(rows, columns);
  ASSERT_THAT(q, SizeIs(rows * inner));
  ASSERT_THAT(r, SizeIs(inner * columns));
  const double bound = (8.0 * rows * inner + 13) * std::sqrt(inner) *
                       std::numeric_limits<Real>::epsilon() / 2;
  for (int64_t j = 0; j < columns; ++j) {
    double of_a = 0, of_error = 0;
    for (int64_t i = 0; i < rows; ++i) {
      Wide error(a[i * columns + j]);
      of_a += std::norm(error);
      for (int64_t k = 0; k < inner; ++k) {
        error -= Wide(q[i * inner + k]) * Wide(r[k * columns + j]);
      }
      of_error += std::norm(error);
    }
    EXPECT_LE(std::sqrt(of_error), bound * std::sqrt(of_a)) << "column " << j;
  }
  double of_deviation = 0;
  for (int64_t x = 0; x < inner; ++x) {
    for (int64_t y = 0; y < inner; ++y) {
      Wide product = x == y ? -1 : 0;
      for (int64_t i = 0; i < rows; ++i) {
        product += std::conj(Wide(q[i * inner + x])) * Wide(q[i * inner + y]);
      }
      of_deviation += std::norm(product);
    }
    const Wide diagonal(r[x * columns + x]);
    EXPECT_EQ(diagonal.imag(), 0) << "diagonal " << x;
    EXPECT_GE(diagonal.real(), 0) << "diagonal " << x;
    for (int64_t j = 0; j < x; ++j) EXPECT_EQ(r[x * columns + j], T(0));
  }
  EXPECT_LE(std::sqrt(of_deviation), 2 * bound);
}

class FactorizeTest : public ::testing::Test {
 protected:
  RemoteTensor Upload(const std::vector<double>& values,
                      std::vector<int64_t> extents) {
    return session_.Upload(HostView<double>{values.data(), std::move(extents)})
        .value();
  }

  ServerProcess server_{testing::Built("tensord")};
  Session session_ = Session::Connect(server_.address()).value();
};

TEST(ModesTest, AreCodePointsOfUtf8) {
  EXPECT_EQ(Modes("i\u00d7\u03b2"), (Modes{'i', 0xd7, 0x3b2}));
  EXPECT_EQ(Modes("\U0001d4aa"), Modes{0x1d4aa});
  EXPECT_EQ(Modes(""), Modes());
}

TEST(FactorModesTest, HasOneOperandAndTwoResults) {
  using internal::FactorModes;
  using internal::ParseFactorModes;
  EXPECT_EQ(ParseFactorModes("abcd->abk,kcd").value(),
            (FactorModes{"abcd", {"abk", "kcd"}}));
  EXPECT_EQ(ParseFactorModes(" a b -> a k , k b ").value(),
            (FactorModes{"ab", {"ak", "kb"}}));
  EXPECT_EQ(
      ParseFactorModes("\u03b2\u00c3->\u03b2\u00d7,\U0001d4aa\u00b5").value(),
      (FactorModes{{0x3b2, 0xc3}, {{0x3b2, 0xd7}, {0x1d4aa, 0xb5}}}));
  EXPECT_EQ(ParseFactorModes("->,").value(), (FactorModes{"", {"", ""}}));
  for (const char* text : {"", "ab,c->ak,kb", "ab->ak->kb", "ab,ak,kb"}) {
    const absl::Status status = ParseFactorModes(text).status();
    EXPECT_EQ(ReasonOf(status), "SUBSCRIPTS_MALFORMED");
    EXPECT_THAT(status.message(),
                HasSubstr("wanted one operand, '->' and results"));
  }
  EXPECT_THAT(ParseFactorModes("ab->a1,1b").status().message(),
              HasSubstr("column 6: got '1', wanted letters"));
  EXPECT_THAT(ParseFactorModes("\u03b2-a").status().message(),
              HasSubstr("column 2: got '-'"));
  EXPECT_THAT(ParseFactorModes("a\u00a0->a,a").status().message(),
              HasSubstr("column 2: got U+00a0"));
}

TEST_F(FactorizeTest, IsPreparedOnceAndRunOften) {
  const RemoteTensor a = Upload({3, -10.4, 4, 7.8}, {2, 2});
  const RemoteTensor b = Upload({1, 0, 0, 2}, {2, 2});
  const Plan plan = session_.PlanFactorize("ij->ik,kj", a).value();
  EXPECT_EQ(plan.info().operation, "factorize");
  const Factors first = plan.ExecuteFactorize(a).value();
  const Factors at_once = session_.Factorize("ij->ik,kj", a).value();
  EXPECT_EQ(first.q.Download<double>().value(),
            at_once.q.Download<double>().value());
  EXPECT_EQ(first.r.Download<double>().value(),
            at_once.r.Download<double>().value());
  const Factors second = plan.ExecuteFactorize(b, {.q = {.output_name = "q"},
                                                   .r = {.output = &first.r}})
                             .value();
  EXPECT_THAT(second.q.name(), ::testing::EndsWith("/q"));
  EXPECT_EQ(second.r.name(), first.r.name());
  EXPECT_EQ(first.r.Download<double>().value(),
            (std::vector<double>{1, 0, 0, 2}));
  EXPECT_EQ(ReasonOf(plan.Execute({.a = &a}).status()), "PLAN_RESULT_COUNT");
  EXPECT_EQ(
      ReasonOf(
          session_.PlanPermute({a, "ij"}, "ji")->ExecuteFactorize(a).status()),
      "PLAN_RESULT_COUNT");
}

template <typename T>
void ExpectTallAndWideFactorize(Session& session) {
  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
           {7, 4}, {4, 7}, {5, 5}, {1, 3}, {40, 30}}) {
    const std::vector<T> a = Random<T>(rows * columns);
    const HostView<T> view{a.data(), {rows, columns}};
    auto made = session.Factorize("ij->ik,kj", session.Upload(view).value());
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_THAT(made->q.report().kernel, StartsWith("cpu.factorize."));
    EXPECT_EQ(made->r.report().kernel, made->q.report().kernel);
    ExpectIsQr(a, rows, columns, made->q.template Download<T>().value(),
               made->r.template Download<T>().value());
    const auto inlined = session.Factorize("ij->ik,kj", view);
    ASSERT_TRUE(inlined.ok()) << inlined.status();
    EXPECT_EQ(inlined->r.template Download<T>().value(),
              made->r.template Download<T>().value());
  }
}

TEST_F(FactorizeTest, TallAndWideMatricesAreProducts) {
  ExpectTallAndWideFactorize<float>(session_);
  ExpectTallAndWideFactorize<double>(session_);
  ExpectTallAndWideFactorize<std::complex<float>>(session_);
  ExpectTallAndWideFactorize<std::complex<double>>(session_);
}

TEST_F(FactorizeTest, ModesOfBothResultsAreBatchModes) {
  const std::vector<double> a = Random<double>(3 * 4 * 2);
  auto [q, r] =
      session_.Factorize("bij->bik,bkj", Upload(a, {3, 4, 2})).value();
  EXPECT_EQ(q.extents(), (std::vector<int64_t>{3, 4, 2}));
  EXPECT_EQ(r.extents(), (std::vector<int64_t>{3, 2, 2}));
  const std::vector<double> of_q = q.Download<double>().value();
  const std::vector<double> of_r = r.Download<double>().value();
  const auto part = [](const std::vector<double>& all, int at, int size) {
    return std::vector<double>(all.begin() + at * size,
                               all.begin() + (at + 1) * size);
  };
  for (int b = 0; b < 3; ++b) {
    ExpectIsQr(part(a, b, 8), 4, 2, part(of_q, b, 8), part(of_r, b, 4));
  }
}

TEST_F(FactorizeTest, ResultsGoWhereTheOptionsSay) {
  const RemoteTensor a = Upload(Random<double>(6), {3, 2});
  const RemoteTensor r = Upload({0, 0, 0, 0}, {2, 2});
  const auto made = session_.Factorize(
      "ij->ik,kj", a,
      {.q = {.output_name = "q", .output_order = Order::kFirstModeFastest},
       .r = {.output = &r},
       .kernel = "cpu.factorize.reference",
       .workspace_limit_bytes = 1 << 20,
       .deterministic = true,
       .deadline = absl::Seconds(30)});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->q.name(), session_.name() + "/tensors/q");
  EXPECT_EQ(made->q.info().layout.strides, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(made->r.name(), r.name());
  EXPECT_FALSE(made->r.owns());
  EXPECT_EQ(made->q.report().kernel, "cpu.factorize.reference");
  ExpectIsQr(
      Random<double>(6), 3, 2,
      made->q.Download<double>({.order = Order::kLastModeFastest}).value(),
      r.Download<double>().value());
}

TEST_F(FactorizeTest, ResultsLeaveTheServerWithTheirHandles) {
  const RemoteTensor a = Upload(Random<double>(6), {3, 2});
  {
    auto made =
        session_.Factorize("ij->ik,kj", a, {.selection = Selection::kMeasure});
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_THAT(session_.List().value(), SizeIs(3));
    const RemoteTensor q = std::move(made->q);
  }
  EXPECT_THAT(session_.List().value(), SizeIs(1));
}

TEST_F(FactorizeTest, IsExplainedWithoutContents) {
  const RemoteTensor a =
      session_.Create(ElementType::kFloat32, {.extents = {30, 20}}).value();
  const auto explained = session_.ExplainFactorize("ij->ik,kj", a);
  ASSERT_TRUE(explained.ok()) << explained.status();
  EXPECT_THAT(explained->kernel, StartsWith("cpu.factorize."));
  EXPECT_GT(explained->flops, 0);
  EXPECT_EQ(ReasonOf(session_.Factorize("ij->ik,kj", a).status()),
            "TENSOR_NOT_READY");
}

TEST_F(FactorizeTest, AnyNumberOfResultsComesInOrder) {
  // Columns of lengths 5 and 10 that are orthogonal.
  const RemoteTensor a = Upload({3, -8, 4, 6}, {2, 2});
  const auto usv =
      session_.FactorizeAll("ij->ik,k,kj", a,
                            {.method = FactorizationMethod::kSvd,
                             .values = {.output_name = "s"},
                             .truncation = {.rank = 1, .cutoff = 1e-3}});
  ASSERT_TRUE(usv.ok()) << usv.status();
  ASSERT_THAT(*usv, SizeIs(3));
  EXPECT_EQ((*usv)[1].name(), session_.name() + "/tensors/s");
  EXPECT_EQ((*usv)[0].extents(), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ((*usv)[2].report().kept_extent, 1);
  EXPECT_NEAR((*usv)[1].Download<double>().value()[0], 10, 1e-13);
  const auto eigh = session_.Factorize("ij->k,ik", Upload({2, 9, 0, 3}, {2, 2}),
                                       {.method = FactorizationMethod::kEigh});
  ASSERT_TRUE(eigh.ok()) << eigh.status();
  EXPECT_EQ(eigh->q.Download<double>().value(), (std::vector<double>{2, 3}));
  const auto l =
      session_.FactorizeAll("ij->ik", Upload({4, 9, 0, 9}, {2, 2}),
                            {.method = FactorizationMethod::kCholesky});
  ASSERT_TRUE(l.ok()) << l.status();
  EXPECT_EQ((*l)[0].Download<double>().value(),
            (std::vector<double>{2, 0, 0, 3}));
  EXPECT_EQ(ReasonOf(session_
                         .Factorize("ij->ik,k,kj", a,
                                    {.method = FactorizationMethod::kSvd})
                         .status()),
            "RESULT_COUNT_MISMATCH");
  EXPECT_EQ(ReasonOf(session_
                         .FactorizeAll("ij->k,ik", a,
                                       {.method = FactorizationMethod::kEigh,
                                        .truncation = {.rank = 1}})
                         .status()),
            "TRUNCATION_WITHOUT_SVD");
}

TEST_F(FactorizeTest, WhatDoesNotFitIsRefused) {
  const RemoteTensor a = Upload(Random<double>(6), {3, 2});
  const auto reason = [&](std::string_view subscripts) {
    return ReasonOf(session_.Factorize(subscripts, a).status());
  };
  EXPECT_EQ(reason("ij->ik"), "SUBSCRIPTS_MALFORMED");
  EXPECT_EQ(reason("ij->i,j"), "INNER_MODE_COUNT");
  EXPECT_EQ(reason("ij->ik,kjj"), "MODE_REPEATED");
  EXPECT_EQ(reason("i->ik,k"), "MODE_COUNT_MISMATCH");
  EXPECT_EQ(
      ReasonOf(
          session_.Factorize("ij->ik,kj", a, {.q = {.output = &a}}).status()),
      "OUTPUT_OVERLAPS_INPUT");
  EXPECT_THAT(session_.List().value(), SizeIs(1));
}

}  // namespace
}  // namespace tensord
