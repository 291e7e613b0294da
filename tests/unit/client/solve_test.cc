// Linear equations through the client, against the server in a process of its
// own.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/session.h"
#include "tests/testing/places.h"
#include "tests/testing/server_process.h"

namespace tensord {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ServerProcess;

class SolveTest : public ::testing::Test {
 protected:
  RemoteTensor Upload(const std::vector<double>& values,
                      std::vector<int64_t> extents) {
    return session_.Upload(HostView<double>{values.data(), std::move(extents)})
        .value();
  }

  ServerProcess server_{testing::Built("tensord")};
  Session session_ = Session::Connect(server_.address()).value();
  // 0 2 / 1 3: each step is exact.
  RemoteTensor a_ = Upload({0, 2, 1, 3}, {2, 2});
  RemoteTensor b_ = Upload({0, 1}, {2});
};

TEST_F(SolveTest, EquationsAndInversesAreWhatTheyShouldBe) {
  const auto d = session_.Solve({a_, "ij"}, {b_, "i"}, "j");
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_THAT(d->Download<double>().value(), ElementsAre(1, 0));
  EXPECT_THAT(d->report().kernel, HasSubstr("cpu.solve."));
  const auto inverse = session_.Invert({a_, "ij"}, "jk");
  ASSERT_TRUE(inverse.ok()) << inverse.status();
  EXPECT_THAT(inverse->Download<double>().value(),
              ElementsAre(-1.5, 1, 0.5, 0));
  // exp of 0 x / 0 0 is 1 x / 0 1.
  const RemoteTensor nilpotent = Upload({0, 5, 0, 0}, {2, 2});
  const auto exponential = session_.Expm({nilpotent, "ij"}, "ij");
  ASSERT_TRUE(exponential.ok()) << exponential.status();
  EXPECT_THAT(exponential->Download<double>().value(), ElementsAre(1, 5, 0, 1));
  // The triangle alone, with ones on its diagonal: 1 0 / 1 1.
  const SolveOptions triangle{.structure = MatrixStructure::kLowerTriangular,
                              .has_unit_diagonal = true,
                              .execution = {.output = &b_}};
  const RemoteTensor c = Upload({5, 7}, {2});
  ASSERT_TRUE(session_.Solve({a_, "ij"}, {c, "i"}, "j", triangle).ok());
  EXPECT_THAT(b_.Download<double>().value(), ElementsAre(5, 2));
}

TEST_F(SolveTest, IsPreparedExplainedAndPipelined) {
  const Plan plan = session_.PlanSolve({a_, "ij"}, {b_, "i"}, "j").value();
  EXPECT_EQ(plan.info().operation, "solve");
  const auto d = plan.Execute({&a_, &b_});
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_THAT(d->Download<double>().value(), ElementsAre(1, 0));
  EXPECT_EQ(session_.PlanInvert({a_, "ij"}, "jk").value().info().operation,
            "solve");
  const Explanation explained =
      session_.ExplainSolve({a_, "ij"}, {b_, "i"}, "j").value();
  EXPECT_THAT(explained.kernel, HasSubstr("cpu.solve."));
  EXPECT_THAT(explained.problem, HasSubstr("equations general float64"));
  EXPECT_THAT(session_.ExplainInvert({a_, "ij"}, "jk").value().problem,
              HasSubstr("inverse general float64"));

  const RemoteTensor zeros = Upload({0, 0, 0, 0}, {2, 2});
  const Plan exponential = session_.PlanExpm({zeros, "ij"}, "ik").value();
  EXPECT_THAT(exponential.Execute({&zeros}).value().Download<double>().value(),
              ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(session_.ExplainExpm({a_, "ij"}, "ik").value().problem,
              HasSubstr("exponential general float64"));

  Pipeline pipeline = session_.StartPipeline();
  PendingTensor solved = pipeline.Solve({a_, "ij"}, {b_, "i"}, "j");
  PendingTensor inverse = pipeline.Invert({a_, "ij"}, "jk");
  EXPECT_THAT(solved.Await()->Download<double>().value(), ElementsAre(1, 0));
  EXPECT_THAT(inverse.Await()->Download<double>().value(),
              ElementsAre(-1.5, 1, 0.5, 0));
  EXPECT_THAT(
      pipeline.Expm({zeros, "ij"}, "ij").Await()->Download<double>().value(),
      ElementsAre(1, 0, 0, 1));
  EXPECT_TRUE(pipeline.Finish().ok());
}

TEST_F(SolveTest, WhatCannotBeSolvedIsRefused) {
  const RemoteTensor singular = Upload({1, 2, 2, 4}, {2, 2});
  const absl::Status status =
      session_.Solve({singular, "ij"}, {b_, "i"}, "j").status();
  EXPECT_EQ(ReasonOf(status), "MATRIX_SINGULAR");
  EXPECT_THAT(std::string(status.message()), HasSubstr("a matrix of 2 x 2"));
  EXPECT_EQ(
      ReasonOf(session_
                   .Solve({singular, "ij"}, {b_, "i"}, "j",
                          {.structure = MatrixStructure::kPositiveDefinite})
                   .status()),
      "MATRIX_NOT_POSITIVE_DEFINITE");
  EXPECT_EQ(ReasonOf(session_.Invert({a_, "ij"}, "ij").status()),
            "MODES_OF_INVERSE");
}

}  // namespace
}  // namespace tensord
