// The client against the server itself, in a process of its own.
#include "tensord/session.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <complex>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/testing/places.h"
#include "tests/testing/server_process.h"

namespace tensord {
namespace {

using testing::ServerProcess;
using Code = absl::StatusCode;

std::vector<double> Counting(size_t size, double first = 0) {
  std::vector<double> values(size);
  std::iota(values.begin(), values.end(), first);
  return values;
}

class SessionTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_.emplace(testing::Built("tensord")); }
  static void TearDownTestSuite() { server_.reset(); }

  static Session Open(const SessionOptions& options = {}) {
    return Session::Connect(server_->address(), options).value();
  }

  static RemoteTensor Upload(Session& session,
                             const std::vector<double>& values,
                             std::vector<int64_t> extents) {
    return session.Upload(HostView<double>{values.data(), std::move(extents)})
        .value();
  }

  static std::optional<ServerProcess> server_;
};

std::optional<ServerProcess> SessionTest::server_;

TEST_F(SessionTest, ContractsAsTheFrontDoorSays) {
  auto session = Open();
  const std::vector<double> values_of_a = Counting(2 * 3 * 4);
  const std::vector<double> values_of_b = Counting(4 * 3 * 5, 7);
  const HostView<double> view_of_a{values_of_a.data(), {2, 3, 4}};
  const HostView<double> view_of_b{values_of_b.data(), {4, 3, 5}};
  auto a = session.Upload(view_of_a).value();
  auto b = session.Upload(view_of_b).value();
  auto c = session.Einsum("ijk,kjl->il", {a, b}).value();

  EXPECT_EQ(c.extents(), (std::vector<int64_t>{2, 5}));
  EXPECT_EQ(c.element_type(), ElementType::kFloat64);
  const std::vector<double> result = c.Download<double>().value();
  for (int i = 0; i < 2; ++i) {
    for (int l = 0; l < 5; ++l) {
      double sum = 0;  // of small integers: exact in any order
      for (int j = 0; j < 3; ++j) {
        for (int k = 0; k < 4; ++k) {
          sum += values_of_a[(i * 3 + j) * 4 + k] *
                 values_of_b[(k * 3 + j) * 5 + l];
        }
      }
      EXPECT_EQ(result[i * 5 + l], sum) << i << " " << l;
    }
  }
}

TEST_F(SessionTest, DownloadsInTheOrderAskedFor) {
  auto session = Open();
  const std::vector<double> values = Counting(6);
  const auto a = Upload(session, values, {2, 3});
  EXPECT_EQ(a.Download<double>().value(), values);
  EXPECT_EQ(a.Download<double>({.order = Order::kFirstModeFastest}).value(),
            (std::vector<double>{0, 3, 1, 4, 2, 5}));
}

TEST_F(SessionTest, UploadsViewsWithStrides) {
  auto session = Open();
  const std::vector<double> values = Counting(12);
  const auto a =
      session
          .Upload(HostView<double>{
              .data = values.data(), .extents = {3, 2}, .strides = {4, 1}})
          .value();
  EXPECT_EQ(a.Download<double>().value(),
            (std::vector<double>{0, 1, 4, 5, 8, 9}));
}

TEST_F(SessionTest, TypedOperationsTakeFactorsAndOperators) {
  auto session = Open();
  const auto a = Upload(session, {1, 4, 9, 16}, {2, 2});
  const auto v = Upload(session, {10, 20}, {2});
  const auto permuted =
      session.Permute({a, "ij", UnaryOperator::kSqrt}, "ji", {.alpha = 2});
  EXPECT_EQ(permuted.value().Download<double>().value(),
            (std::vector<double>{2, 6, 4, 8}));
  const auto summed = session.Elementwise({a, "ij"}, BinaryOperator::kAdd,
                                          {v, "j"}, "ij", {.gamma = 0.5});
  EXPECT_EQ(summed.value().Download<double>().value(),
            (std::vector<double>{6, 14, 14, 26}));
  const std::vector<int32_t> indices = {1, -2, -1};
  const HostView<int32_t> rows{indices.data(), {3}};
  const auto taken = session.Elementwise({a, "zj"}, BinaryOperator::kTake,
                                         {rows, "i"}, "ij", {.gamma = -1});
  EXPECT_EQ(taken.status().code(), absl::StatusCode::kInvalidArgument);
  const auto columns = session.Elementwise({a, "zj"}, BinaryOperator::kTake,
                                           {rows, "i"}, "ij", {.alpha = 2});
  EXPECT_EQ(columns.value().Download<double>().value(),
            (std::vector<double>{18, 32, 2, 8, 18, 32}));
  const auto largest = session.Reduce(BinaryOperator::kMax, {a, "ij"}, "j");
  EXPECT_EQ(largest.value().Download<double>().value(),
            (std::vector<double>{9, 16}));
  const auto sums = session.Reduce(BinaryOperator::kAdd, {a, "ij"}, "ij",
                                   {.along = Along{'i'}});
  EXPECT_EQ(sums.value().Download<double>().value(),
            (std::vector<double>{1, 4, 10, 20}));
  const auto order =
      session.Reduce(BinaryOperator::kAdd, {a, "ij"}, "ij",
                     {.along = Along{'j', Sorting::kDescending}});
  EXPECT_EQ(order.value().Download<int64_t>().value(),
            (std::vector<int64_t>{1, 0, 1, 0}));
  const auto contracted = session.Contract({a, "ij"}, {v, "j"}, "i",
                                           {.beta = -1, .c = Operand(v, "i")});
  EXPECT_EQ(contracted.value().Download<double>().value(),
            (std::vector<double>{80, 390}));
}

TEST_F(SessionTest, InlineOperandsNeedNoUpload) {
  auto session = Open();
  const std::vector<double> values = {1, 2, 3};
  const HostView<double> view{values.data(), {3}};
  const auto product = session.Contract({view, "i"}, {view, "j"}, "ij").value();
  EXPECT_EQ(product.Download<double>().value(),
            (std::vector<double>{1, 2, 3, 2, 4, 6, 3, 6, 9}));
}

TEST_F(SessionTest, ResultsGoWhereTheyAreToldTo) {
  auto session = Open();
  const auto a = Upload(session, {1, 2}, {2});
  const auto d =
      session.Create(ElementType::kFloat64, {{2}}, {.name = "mine"}).value();
  const auto result =
      session.Permute({a, "i"}, "i", {.alpha = 3, .execution = {.output = &d}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->owns());
  EXPECT_EQ(result->name(), d.name());
  EXPECT_EQ(d.Download<double>().value(), (std::vector<double>{3, 6}));
}

TEST_F(SessionTest, TensorsLeaveWithTheirLastHandle) {
  auto session = Open();
  EXPECT_EQ(session.List().value().size(), 0);
  {
    const auto a = Upload(session, {1, 2}, {2});
    auto b = Upload(session, {1, 2}, {2});
    const auto c = std::move(b);
    EXPECT_EQ(session.List().value().size(), 2);
    const auto borrowed = session.Borrow(a.name()).value();
  }
  EXPECT_EQ(session.List().value().size(), 0);
  Upload(session, {1, 2}, {2}).Release();
  EXPECT_EQ(session.List().value().size(), 1);
}

TEST_F(SessionTest, TensorsKeepTheirSessionOpen) {
  std::optional<RemoteTensor> a;
  {
    auto session = Open();
    a = Upload(session, {1, 2}, {2});
  }
  EXPECT_EQ(a->Download<double>().value(), (std::vector<double>{1, 2}));
  const std::string name = a->name();
  a.reset();
  const Server server(server_->address());
  EXPECT_EQ(server.Describe(name).status().code(), Code::kNotFound);
}

TEST_F(SessionTest, LeaseIsKeptAlive) {
  auto session = Open({.lease = absl::Seconds(4)});
  const auto a = Upload(session, {1, 2}, {2});
  absl::SleepFor(absl::Seconds(6));
  EXPECT_TRUE(a.Download<double>().ok());
}

TEST_F(SessionTest, ErrorsHaveReasons) {
  auto session = Open();
  const auto a = Upload(session, {1, 2, 3, 4, 5, 6}, {2, 3});
  const auto result = session.Einsum("ij,jk->ik", {a, a});
  EXPECT_EQ(result.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(ReasonOf(result.status()), "MODE_EXTENT_MISMATCH");
  EXPECT_EQ(CutensorStatusOf(result.status()), "INVALID_VALUE");
  EXPECT_NE(RequestIdOf(result.status()), "");

  const auto empty = session.Create(ElementType::kFloat64, {{2}}).value();
  EXPECT_EQ(ReasonOf(empty.Download<double>().status()), "TENSOR_NOT_READY");
  EXPECT_EQ(ReasonOf(a.Download<float>().status()), "ELEMENT_TYPE_MISMATCH");
}

TEST_F(SessionTest, HeadersGoWithEachCall) {
  // A call that is to be carried out once needs an id, which this has not.
  std::atomic<bool> is_once = false;
  SessionOptions options;
  options.headers = [&] {
    return is_once ? Headers{{"x-request-once", "1"}} : Headers{};
  };
  auto session = Open(options);
  EXPECT_TRUE(session.List().ok());
  is_once = true;
  EXPECT_EQ(ReasonOf(session.List().status()), "REQUEST_ID_MALFORMED");
  EXPECT_EQ(
      ReasonOf(
          session.Upload(HostView<double>{Counting(2).data(), {2}}).status()),
      "REQUEST_ID_MALFORMED");
  is_once = false;
  EXPECT_TRUE(session.List().ok());
}

TEST_F(SessionTest, ExplainRunsNothing) {
  auto session = Open();
  const auto a = session.Create(ElementType::kFloat32, {{30, 40}}).value();
  const auto b = session.Create(ElementType::kFloat32, {{40, 50}}).value();
  const auto explained = session.ExplainContract({a, "ij"}, {b, "jk"}, "ik");
  ASSERT_TRUE(explained.ok()) << explained.status();
  EXPECT_EQ(explained->flops, 2.0 * 30 * 40 * 50);
  EXPECT_GT(explained->candidates.size(), 1);
  EXPECT_EQ(session.Describe(a).value().state, TensorState::kEmpty);
}

TEST_F(SessionTest, CopiesIntoAnotherLayout) {
  auto session = Open();
  const std::vector<double> values = Counting(6);
  const auto a = Upload(session, values, {2, 3});
  const auto copy =
      session.Copy(a, {.layout = Layout{{2, 3}, {}, Order::kFirstModeFastest}})
          .value();
  EXPECT_EQ(copy.info().layout.strides, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(copy.Download<double>().value(), values);
}

TEST_F(SessionTest, EmptyTensorsAndScalarsTravel) {
  auto session = Open();
  const auto empty = Upload(session, {}, {0, 3});
  EXPECT_EQ(empty.info().state, TensorState::kReady);
  EXPECT_TRUE(empty.Download<double>().value().empty());
  const auto scalar = Upload(session, {42}, {});
  EXPECT_EQ(scalar.Download<double>().value(), (std::vector<double>{42}));
  const auto sum = session.Einsum("ij->", {empty}).value();
  EXPECT_EQ(sum.Download<double>().value(), (std::vector<double>{0}));
}

TEST_F(SessionTest, EveryElementTypeComesBackBitForBit) {
  auto session = Open();
  for (int i = 1; i <= static_cast<int>(ElementType::kBool); ++i) {
    const auto element_type = static_cast<ElementType>(i);
    std::vector<std::byte> bytes(6 * ElementBytes(element_type));
    for (size_t at = 0; at < bytes.size(); ++at) {
      bytes[at] = static_cast<std::byte>(at % 2);
    }
    const auto tensor =
        session.Upload(UntypedHostView{element_type, bytes.data(), {{6}}});
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    std::vector<std::byte> back(bytes.size());
    ASSERT_TRUE(tensor->DownloadTo(element_type, back).ok());
    EXPECT_EQ(back, bytes) << ToString(element_type);
  }
}

TEST_F(SessionTest, RefillReplacesContents) {
  auto session = Open();
  const auto a = Upload(session, {1, 2}, {2});
  const std::vector<double> values = {3, 4};
  ASSERT_TRUE(session.Refill(a, std::as_bytes(std::span(values))).ok());
  EXPECT_EQ(a.Download<double>().value(), values);
}

TEST_F(SessionTest, ThreadsShareASession) {
  auto session = Open();
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<double> values = Counting(200'000, t);
      for (int i = 0; i < 5; ++i) {
        const auto a = Upload(session, values, {200'000});
        if (a.Download<double>().value() == values) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 40);
  EXPECT_EQ(session.List().value().size(), 0);
}

TEST_F(SessionTest, ManyTensorsAreDeletedAtOnce) {
  auto session = Open();
  const auto kept = Upload(session, {1, 2}, {2});
  std::vector<RemoteTensor> many;
  for (int i = 0; i < 1200; ++i) {
    many.push_back(session.Create(ElementType::kFloat32, {{0}}).value());
  }
  EXPECT_TRUE(session.Delete(std::move(many)).ok());
  EXPECT_EQ(session.List().value().size(), 1);
  std::vector<RemoteTensor> gone;
  gone.push_back(Upload(session, {1, 2}, {2}));
  const std::vector<std::string> names = {gone[0].name()};
  EXPECT_EQ(Server(server_->address()).Delete(names).value(), 1);
  gone.push_back(Upload(session, {1, 2}, {2}));
  EXPECT_EQ(session.Delete(std::move(gone)).code(), Code::kNotFound);
  EXPECT_EQ(session.List().value().size(), 1);
}

TEST_F(SessionTest, ClosedSessionsKnowNoTensors) {
  auto session = Open();
  const auto a = Upload(session, {1, 2}, {2});
  EXPECT_TRUE(session.Close().ok());
  EXPECT_TRUE(session.Close().ok());
  EXPECT_EQ(a.Download<double>().status().code(), Code::kNotFound);
}

TEST_F(SessionTest, ServerTellsHowItIs) {
  auto session = Open({.job = "test"});
  const Server server(server_->address());
  EXPECT_EQ(server.CheckHealth().value(), Health::kServing);
  EXPECT_FALSE(server.Info().value().devices.empty());
  EXPECT_GE(server.Stats().value().session_count, 1);
  EXPECT_EQ(session.DescribeSession().value().job, "test");
  EXPECT_TRUE(server.List(session.name()).value().empty());
}

TEST(StoppedServerTest, UploadReturnsAtItsDeadlineAndLetsGoOfMemory) {
  ServerProcess server(testing::Built("tensord"));
  {
    auto session =
        Session::Connect(server.address(), {.deadline = absl::Seconds(2),
                                            .transport = Transport::kGrpc})
            .value();
    std::vector<double> values(16 << 20);
    const absl::Time start = absl::Now();
    UploadOptions options{.deadline = absl::Seconds(2)};
    options.progress = [&](int64_t done, int64_t total) {
      if (done > total / 2) server.Signal(SIGSTOP);
    };
    const auto sent =
        session.Upload(HostView<double>{values.data(), {16 << 20}}, options);
    EXPECT_EQ(sent.status().code(), Code::kDeadlineExceeded);
    EXPECT_LT(absl::Now() - start, absl::Seconds(30));
    server.Signal(SIGCONT);
  }
}

TEST(KilledServerTest, UploadEndsAsUnavailable) {
  ServerProcess server(testing::Built("tensord"));
  auto session =
      Session::Connect(server.address(), {.deadline = absl::Seconds(5),
                                          .transport = Transport::kGrpc})
          .value();
  std::vector<double> values(16 << 20);
  UploadOptions options;
  options.progress = [&](int64_t done, int64_t total) {
    if (done > total / 2) server.Signal(SIGKILL);
  };
  const auto sent =
      session.Upload(HostView<double>{values.data(), {16 << 20}}, options);
  EXPECT_EQ(sent.status().code(), Code::kUnavailable) << sent.status();
}

}  // namespace
}  // namespace tensord
