// Programs whose kernels are chosen by time.
#include <set>

#include "tensord/v1/plan_cache.grpc.pb.h"
#include "tests/conformance/rpc_program.h"

namespace tensord {
namespace {

using ::testing::Each;
using ::testing::Gt;
using ::testing::Property;

class RpcProgramTuningTest : public RpcProgramTest {
 protected:
  void SetUp() override {
    RpcProgramTest::SetUp();
    a_ = Filled({4, 4});
    b_ = Filled({4, 4});
    c_ = Filled({4, 4});
    wanted_ = Run(Chain(v1::SELECTION_HEURISTIC));
  }
  /// Of small whole numbers, which every kernel adds without rounding.
  v1::ProgramSpec Chain(v1::Selection selection) {
    v1::ProgramSpec spec =
        Statements("T[i,k] := A[i,j]*B[j,k]; D[i,l] := T[i,k]*C[k,l] + A[i,l]",
                   {{"A", a_}, {"B", b_}, {"C", c_}});
    spec.set_selection(selection);
    spec.add_outputs()->set_name("D");
    return spec;
  }
  std::vector<float> Run(const v1::ProgramSpec& spec,
                         v1::ProgramReport* report = nullptr) {
    v1::ExecuteProgramResponse response;
    EXPECT_THAT(Execute(spec, &response), IsOk());
    if (report != nullptr) *report = response.report();
    std::vector<float> values = Values(response.results(0).tensor().name());
    EXPECT_THAT(Delete(response.results(0).tensor().name()), IsOk());
    return values;
  }
  /// Plans that the cache has by `selection`.
  std::vector<v1::PlanCacheEntry> Entries(v1::Selection selection) {
    const auto cache = v1::PlanCacheService::NewStub(channel_);
    v1::ListPlanCacheEntriesResponse response;
    EXPECT_THAT(Unary(&v1::PlanCacheService::Stub::ListPlanCacheEntries, *cache,
                      v1::ListPlanCacheEntriesRequest(), &response),
                IsOk());
    std::vector<v1::PlanCacheEntry> entries;
    for (const v1::PlanCacheEntry& entry : response.entries()) {
      if (entry.selection() == selection) entries.push_back(entry);
    }
    return entries;
  }

  std::string a_, b_, c_;
  std::vector<float> wanted_;
};

TEST_F(RpcProgramTuningTest, OperationsAreMeasuredWhenTheyAreComeTo) {
  v1::ProgramReport report;
  EXPECT_EQ(Run(Chain(v1::SELECTION_MEASURE), &report), wanted_);
  const auto measured = Entries(v1::SELECTION_MEASURE);
  EXPECT_EQ(std::ssize(measured), report.plan_count());
  EXPECT_THAT(measured,
              Each(Property(&v1::PlanCacheEntry::measured_nanoseconds, Gt(0))));
  EXPECT_EQ(Run(Chain(v1::SELECTION_MEASURE), &report), wanted_);
  EXPECT_EQ(report.plan_cache_hits(), report.plan_count());
}

TEST_F(RpcProgramTuningTest, EachExecutionTriesOneMoreKernelOfEachOperation) {
  const v1::ProgramSpec spec = Chain(v1::SELECTION_INCREMENTAL);
  const auto is_tuned = [&] {
    const auto entries = Entries(v1::SELECTION_INCREMENTAL);
    return !entries.empty() &&
           std::ranges::none_of(entries, [](const v1::PlanCacheEntry& entry) {
             return entry.wanted_sample_count() > 0;
           });
  };
  EXPECT_EQ(Run(spec), wanted_);
  EXPECT_FALSE(is_tuned());
  for (int i = 0; i < 100 && !is_tuned(); ++i) ASSERT_EQ(Run(spec), wanted_);
  EXPECT_TRUE(is_tuned());
  EXPECT_EQ(Run(spec), wanted_);
}

TEST_F(RpcProgramTuningTest, PreparedProgramsAreTunedToo) {
  v1::Program program;
  ASSERT_THAT(CreateProgram(Chain(v1::SELECTION_MEASURE), "", &program),
              IsOk());
  EXPECT_THAT(Entries(v1::SELECTION_MEASURE), ::testing::IsEmpty());
  v1::ExecuteProgramRequest request;
  request.set_session(session_);
  request.set_name(program.name());
  AddOperands({{"A", a_}, {"B", b_}, {"C", c_}}, request.mutable_operands());
  v1::ExecuteProgramResponse response;
  ASSERT_THAT(Execute(request, &response), IsOk());
  EXPECT_EQ(Values(response.results(0).tensor().name()), wanted_);
  EXPECT_EQ(std::ssize(Entries(v1::SELECTION_MEASURE)),
            response.report().plan_count());
}

TEST_F(RpcProgramTuningTest, PinnedKernelsAreNotTuned) {
  v1::ProgramSpec spec = Chain(v1::SELECTION_MEASURE);
  spec.set_deterministic(true);
  EXPECT_THAT(Execute(spec),
              FailsWith(grpc::INVALID_ARGUMENT, "SELECTION_CONFLICTS"));
}

}  // namespace
}  // namespace tensord
