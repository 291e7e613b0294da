#include "server/execution/program/program_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/status.h"
#include "core/device/interruption.h"
#include "server/engine/device_selection.h"
#include "server/engine/module_loader.h"
#include "tests/testing/stand_in_backend.h"

namespace tensord::server {
namespace {

using ::testing::ElementsAre;
using Operands = std::vector<ProgramOperandRequest>;

class ProgramStepsTest : public ::testing::Test {
 protected:
  explicit ProgramStepsTest(
      const EngineOptions& options = {.cpu_threads = 1,
                                      .memory_limit_bytes = 1 << 24})
      : engine_(Engine::Create(options).value()) {}

  /// A tensor of float32, or of others, whose first elements are `values`.
  std::shared_ptr<StoredTensor> Add(
      const std::string& id, const core::ModeVector& extents,
      std::vector<float> values = {},
      core::ElementType type = core::ElementType::kFloat32) {
    auto tensor =
        session_
            ->Add(id, {type, core::PackedLayout(
                                 extents, core::Order::kFirstModeFastest)})
            .value();
    Fill(*tensor, values);
    return tensor;
  }
  static void Fill(StoredTensor& tensor, const std::vector<float>& values) {
    EXPECT_TRUE(tensor.BeginUpload(0).ok());
    EXPECT_TRUE(tensor.Allocate().ok());
    std::ranges::fill_n(tensor.first(), tensor.desc().span_bytes(),
                        std::byte{0});
    std::ranges::copy(std::as_bytes(std::span(values)), tensor.first());
    tensor.Commit(tensor.desc().span_bytes());
    tensor.EndUpload();
  }
  static ProgramOperandRequest Of(const std::string& name) {
    return {name, "sessions/s/tensors/" + name};
  }
  static ProgramOperandRequest Constant(const std::string& name) {
    ProgramOperandRequest operand = Of(name);
    operand.is_constant = true;
    return operand;
  }

  std::shared_ptr<PreparedProgram> Prepare(const std::string& text,
                                           const Operands& operands,
                                           const ProgramOptions& options = {}) {
    FoundOperands found = FindOperands(*session_, operands, true).value();
    auto program = PreparedProgram::Make(text, found.described, {}, options,
                                         session_->device())
                       .value();
    std::vector<std::shared_ptr<StoredTensor>> constants(operands.size());
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].is_constant) constants[i] = found.tensors[i];
    }
    program->SetConstants(std::move(constants), session_->memory());
    return program;
  }
  absl::StatusOr<std::unique_ptr<server::Run>> Prepared(
      std::shared_ptr<const PreparedProgram> program,
      const Operands& operands) {
    auto state = PlanProgramRun(*engine_, session_, *program).value();
    return PrepareProgramRun(std::move(state), std::move(program), operands,
                             FindOperands(*session_, operands, true).value(),
                             {}, 1 << 20);
  }
  std::unique_ptr<server::Run> Start(
      std::shared_ptr<const PreparedProgram> program,
      const Operands& operands) {
    return Prepared(std::move(program), operands).value();
  }
  void Launch(server::Run& run) {
    DeviceWorker::Job::Outcome outcome;
    do {
      outcome = run.Launch(*stream_);
      ASSERT_TRUE(outcome.status.ok());
    } while (outcome.is_part);
  }
  RunReport Run(const std::shared_ptr<const PreparedProgram>& program,
                const Operands& operands) {
    const auto run = Start(program, operands);
    Launch(*run);
    run->Complete(absl::OkStatus(), {});
    workspace_bytes_ = run->runner().workspace_bytes();
    return run->report();
  }
  core::MemoryStatistics memory() {
    return engine_->devices().front()->memory_statistics();
  }

  int64_t workspace_bytes_ = 0;  // of the last Run()
  std::unique_ptr<Engine> engine_;
  std::shared_ptr<Session> session_ =
      std::make_shared<Session>("sessions/s", 1, *engine_->devices().front(),
                                SessionOptions{.job = "job",
                                               .lease = absl::Seconds(60),
                                               .memory_quota_bytes = 1 << 24});
  std::unique_ptr<core::Stream> stream_ =
      engine_->devices().front()->CreateStream().value();
};

// spec: C5
TEST_F(ProgramStepsTest, LinearCombinationsTakeNoMemory) {
  for (const auto type :
       {core::ElementType::kFloat32, core::ElementType::kComplex128}) {
    const std::string suffix(NameOf(type));
    const auto operand = [&](const std::string& name,
                             const core::ModeVector& extents) {
      Add(name + suffix, extents, {}, type);
      return ProgramOperandRequest{name, Of(name + suffix).source};
    };
    const Operands operands = {operand("A", {3, 4, 5}),
                               operand("B", {3, 6, 5, 6, 4}),
                               operand("C", {4, 5, 3}),
                               operand("D", {3, 5, 4}),
                               {"alpha", core::Scalar{0.5, 0}}};
    for (const std::string assignment : {"=", "+=", "-="}) {
      const auto program =
          Prepare("D[a,b,c] " + assignment +
                      " alpha*A[a,c,b] + B[a,d,b,d,c] - conj(C[c,b,a])",
                  operands);
      const core::MemoryStatistics before = memory();
      const RunReport report = Run(program, operands);
      EXPECT_EQ(memory(), before);
      EXPECT_EQ(report.peak_bytes, 0);
      EXPECT_EQ(workspace_bytes_, 0);
    }
  }
}

TEST_F(ProgramStepsTest, LinearCombinationsAreRight) {
  const auto d = Add("D", {2}, {1, 2});
  Add("A", {2}, {10, 20});
  Add("B", {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  Add("C", {2}, {100, 200});
  const Operands operands = {Of("A"), Of("B"), Of("C"), Of("D")};
  Run(Prepare("D[a] += 2*A[a] + B[d,a,d] - conj(C[a])", operands), operands);
  const auto* const values = reinterpret_cast<const float*>(d->first());
  EXPECT_EQ(values[0], 1 + 20 + (1 + 6) - 100);
  EXPECT_EQ(values[1], 2 + 40 + (3 + 8) - 200);
}

TEST_F(ProgramStepsTest, AllTemporariesAreOneAllocation) {
  Add("A", {8, 8});
  Add("D", {8, 8});
  const Operands operands = {Of("A"), Of("D")};
  ProgramOptions options;
  options.workspace_limit_bytes = 0;  // scratch memory is none of them
  const auto program = Prepare(
      "T[i,k] := A[i,j]*A[k,j]\n"
      "U[i,k] := T[i,j]*A[j,k] + T[k,i]\n"
      "V[i,k] := U[i,j]*T[j,k]\n"
      "D[i,k] = V[i,j]*U[k,j] + T[i,k]",
      operands, options);
  const core::MemoryStatistics before = memory();
  const RunReport report = Run(program, operands);
  EXPECT_EQ(memory().allocation_count, before.allocation_count + 1);
  EXPECT_EQ(memory().used_bytes, before.used_bytes);
  EXPECT_GE(report.peak_bytes, 3 * 256);
}

TEST_F(ProgramStepsTest, WantsTheDeviceAloneUntilKernelsAreMeasured) {
  Add("A", {8, 8});
  Add("D", {8, 8});
  const Operands operands = {Of("A"), Of("D")};
  ProgramOptions options;
  options.selection = core::Selection::kMeasure;
  const auto program = Prepare("D[i,k] = A[i,j]*A[j,k]", operands, options);
  const auto first = Start(program, operands);
  EXPECT_TRUE(first->wants_device_alone());
  Launch(*first);
  EXPECT_FALSE(first->wants_device_alone());
  first->Complete(absl::OkStatus(), {});
  EXPECT_FALSE(Start(program, operands)->wants_device_alone());
}

// One of them gives way to the other in the middle of measuring, and would not
// go on before that has ended.
TEST_F(ProgramStepsTest, WhoComesWhileKernelsAreMeasuredDoesNotWait) {
  class Meanwhile final : public core::Interruption {
   public:
    explicit Meanwhile(std::function<void()> work) : work_(std::move(work)) {
      AskToGiveWay(true);
    }
    void GiveWay() override {
      AskToGiveWay(false);
      work_();
    }

   private:
    const std::function<void()> work_;
  };
  Add("A", {8, 8}, {2});
  const auto d = Add("D", {8, 8}), e = Add("E", {8, 8});
  ProgramOptions options;
  options.selection = core::Selection::kMeasure;
  const Operands of_d = {Of("A"), Of("D")}, of_e = {Of("A"), Of("E")};
  const auto first =
      Start(Prepare("D[i,k] = A[i,j]*A[j,k]", of_d, options), of_d);
  const auto second =
      Start(Prepare("E[i,k] = A[i,j]*A[j,k]", of_e, options), of_e);
  int count = 0;
  Meanwhile meanwhile([&] {
    ++count;
    const auto stream = session_->device().CreateStream().value();
    EXPECT_EQ(second->Launch(*stream).status, absl::OkStatus());
    second->Complete(absl::OkStatus(), {});
  });
  stream_->set_interruption(&meanwhile);
  Launch(*first);
  stream_->set_interruption(nullptr);
  first->Complete(absl::OkStatus(), {});
  EXPECT_EQ(count, 1);
  for (const auto& result : {d, e}) {
    EXPECT_EQ(*reinterpret_cast<const float*>(result->first()), 4);
  }
  EXPECT_EQ(first->runner().plans()[0]->selection, core::Selection::kMeasure);
}

TEST_F(ProgramStepsTest, PartsOfATensorAreWrittenIfTheyAreApart) {
  constexpr int64_t kRows = 300;
  const auto matrix = Add("M", {kRows, 2});
  Add("A", {2}, {1, 2});
  Operands operands = {Of("A")};
  std::string text;
  for (int64_t i = 0; i < kRows; ++i) {
    const std::string row = absl::StrCat("r", i);
    const std::vector<ViewStage> stages = {
        std::vector<core::IndexItem>{i, core::AllItem{}}};
    ASSERT_TRUE(session_->AddView(row, *matrix, stages, std::nullopt).ok());
    operands.push_back(Of(row));
    absl::StrAppend(&text, row, "[i] = A[i]\n");
  }
  Run(Prepare(text, operands), operands);
  const auto* const values = reinterpret_cast<const float*>(matrix->first());
  for (int64_t i = 0; i < kRows; ++i) {
    EXPECT_EQ(values[i], 1);
    EXPECT_EQ(values[kRows + i], 2);
  }
  // All of it is read as the last row is written.
  operands.push_back(Of("M"));
  const auto program = Prepare(text + "A[i] = M[j,i]*M[j,i]", operands);
  const absl::Status refused = Prepared(program, operands).status();
  EXPECT_EQ(core::ReasonOf(refused), "OUTPUT_OVERLAPS_INPUT");
  EXPECT_THAT(std::string(refused.message()),
              ::testing::HasSubstr("'r0', sessions/s/tensors/r0, is written "
                                   "and shares elements with 'M'"));
}

/// A device that work is launched ahead of.
class AheadBackend final : public testing::StandInBackend {
 public:
  AheadBackend() {
    info_.name = "cuda:0";
    info_.is_asynchronous = true;
  }
};
absl::StatusOr<int> CountOneDevice() { return 1; }
absl::StatusOr<std::unique_ptr<core::Backend>> CreateAhead(int) {
  return std::make_unique<AheadBackend>();
}
constexpr core::BackendModule kAhead{core::kBackendBuild, &CountOneDevice,
                                     &CreateAhead};

class AheadProgramTest : public ProgramStepsTest {
 protected:
  AheadProgramTest()
      : ProgramStepsTest({.devices = *ParseDevices("cuda:0"),
                          .linked_cuda = &kAhead,
                          .memory_limit_bytes = 1 << 24}) {}

  /// How often a chain of products of that extent is launched.
  int LaunchesOf(int64_t extent) {
    const std::string suffix = absl::StrCat(extent);
    const std::string a = "A" + suffix, d = "D" + suffix;
    Add(a, {extent, extent});
    Add(d, {extent, extent});
    const Operands operands = {Of(a), Of(d)};
    const auto run =
        Start(Prepare(absl::StrReplaceAll("R[i,k] := A[i,j]*A[k,j]\n"
                                          "S[i,k] := R[i,j]*R[k,j]\n"
                                          "T[i,k] := S[i,j]*S[k,j]\n"
                                          "U[i,k] := T[i,j]*T[k,j]\n"
                                          "V[i,k] := U[i,j]*U[k,j]\n"
                                          "D[i,k] = V[i,j]*V[k,j]",
                                          {{"A[", a + "["}, {"D[", d + "["}}),
                      operands),
              operands);
    int count = 0;
    DeviceWorker::Job::Outcome outcome{.is_part = true};
    while (outcome.status.ok() && outcome.is_part) {
      outcome = run->Launch(*stream_);
      ++count;
    }
    EXPECT_EQ(outcome.status, absl::OkStatus());
    run->Complete(absl::OkStatus(), {});
    return count;
  }
};

// What is launched cannot be stopped.
TEST_F(AheadProgramTest, LongProgramsAreLaunchedInParts) {
  EXPECT_EQ(LaunchesOf(8), 1);
  EXPECT_THAT(LaunchesOf(700),
              ::testing::AllOf(::testing::Ge(3), ::testing::Le(6)));
}

class KeptRunTest : public ProgramStepsTest {
 protected:
  KeptRunTest() {
    Add("X", {2, 2}, {1, 0, 0, 1});
    d_ = Add("D", {2, 2});
    operands_ = {Constant("A"), Of("X"), Of("D")};
    program_ =
        Prepare("T[i,k] := A[i,j]*A[j,k]; D[i,l] = T[i,k]*X[k,l]", operands_);
  }
  std::vector<float> Result() const {
    const auto* const values = reinterpret_cast<const float*>(d_->first());
    return {values, values + 4};
  }

  std::shared_ptr<StoredTensor> a_ = Add("A", {2, 2}, {2, 0, 0, 3});
  std::shared_ptr<StoredTensor> d_;
  Operands operands_;
  std::shared_ptr<const PreparedProgram> program_;
};

TEST_F(KeptRunTest, LaterRunsReadWhatTheFirstHasComputed) {
  EXPECT_EQ(Run(program_, operands_).operation_count, 2);
  EXPECT_THAT(Result(), ElementsAre(4, 0, 0, 9));
  const int64_t count = memory().allocation_count;
  const RunReport report = Run(program_, operands_);
  EXPECT_THAT(Result(), ElementsAre(4, 0, 0, 9));
  EXPECT_EQ(report.operation_count, 1);
  EXPECT_EQ(report.folded_operation_count, 1);
  EXPECT_EQ(memory().allocation_count, count);
}

TEST_F(KeptRunTest, RunsUnderWayTogetherComputeItOnce) {
  const auto first = Start(program_, operands_);
  const auto second = Start(program_, operands_);
  Launch(*first);
  Launch(*second);
  EXPECT_EQ(first->report().operation_count, 2);
  EXPECT_EQ(second->report().operation_count, 1);
  first->Complete(absl::OkStatus(), {});
  second->Complete(absl::OkStatus(), {});
  EXPECT_THAT(Result(), ElementsAre(4, 0, 0, 9));
}

TEST_F(KeptRunTest, NobodyReliesOnARunThatFailed) {
  const auto failed = Start(program_, operands_);
  Launch(*failed);
  failed->Complete(absl::InternalError("the device is lost"), {});
  EXPECT_EQ(Run(program_, operands_).operation_count, 2);
  EXPECT_THAT(Result(), ElementsAre(4, 0, 0, 9));
}

TEST_F(KeptRunTest, AnotherRunsFailureChangesNothing) {
  Run(program_, operands_);
  const auto failed = Start(program_, operands_);
  Launch(*failed);
  failed->Complete(absl::InternalError("the device is lost"), {});
  EXPECT_EQ(Run(program_, operands_).operation_count, 1);
}

TEST_F(KeptRunTest, ChangedConstantsAreReadAgain) {
  Run(program_, operands_);
  Fill(*a_, {1, 0, 0, 5});
  EXPECT_EQ(Run(program_, operands_).operation_count, 2);
  EXPECT_THAT(Result(), ElementsAre(1, 0, 0, 25));
}

TEST_F(KeptRunTest, RunsOutliveTheProgram) {
  const int64_t used = memory().used_bytes;
  auto run = Start(program_, operands_);
  program_.reset();
  Launch(*run);
  EXPECT_EQ(memory().used_bytes, used + 256);
  run->Complete(absl::OkStatus(), {});
  EXPECT_THAT(Result(), ElementsAre(4, 0, 0, 9));
  run.reset();
  EXPECT_EQ(memory().used_bytes, used);
}

}  // namespace
}  // namespace tensord::server
