// Programs on a simulated GPU: beside each other, recorded and replayed, they
// compute what the CPU computes one after the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/cuda/cuda_module.h"
#include "core/base/status.h"
#include "server/execution/program/prepared_program.h"
#include "server/execution/program/program_steps.h"
#include "server/session/session.h"
#include "tests/simt/fake_runtime.h"
#include "tests/simt/simt.h"

namespace tensord::server {
namespace {

constexpr int64_t kExtent = 6;

// Branches that meet, temporaries that are used twice, an operand that is
// written, and a sum.
constexpr char kProgram[] =
    "S[i,j] := A[i,k]*B[k,j]\n"
    "T[i,j] := C[i,k]*D[k,j]\n"
    "U[i,j] := A[i,k]*D[k,j]\n"
    "V[i,j] := S[i,k]*T[k,j]\n"
    "W[i,j] := C[k,i]*B[k,j] + U[j,i]\n"
    "R[i,j] := V[i,k]*W[k,j] - 2*S[i,j]\n"
    "E[i,j] += T[j,i]\n"
    "E[i,j] += U[i,k]*C[k,j]\n";
const std::vector<std::string> kOperands = {"A", "B", "C", "D", "E"};

/// A session of one device with operands of small integers.
class ProgramSession {
 public:
  ProgramSession(Engine& engine, Device& device)
      : engine_(engine),
        device_(device),
        stream_(device.CreateStream().value()),
        session_(std::make_shared<Session>(
            "sessions/s", 1, device,
            SessionOptions{.job = "job",
                           .lease = absl::Seconds(60),
                           .memory_quota_bytes = 1 << 20})) {
    for (size_t i = 0; i < kOperands.size(); ++i) {
      std::vector<float> values;
      for (int64_t e = 0; e < kExtent * kExtent; ++e) {
        values.push_back(static_cast<float>((e * (5 + i) + i) % 7 % 3) - 1);
      }
      Fill(kOperands[i], values);
    }
    Prepare();
  }

  void Fill(const std::string& name, const std::vector<float>& values) {
    auto tensor = session_->Find(NameOf(name));
    if (!tensor.ok()) tensor = session_->Add(name, desc_);
    StoredTensor& to = **tensor;
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(float));
    ASSERT_TRUE(to.Allocate().ok());
    ASSERT_TRUE(to.BeginUpload(0).ok());
    ASSERT_TRUE(stream_->CopyToDevice(to.first(), values.data(), bytes).ok());
    ASSERT_TRUE(stream_->Synchronize().ok());
    to.Commit(bytes);
    to.EndUpload();
  }

  void Prepare() {
    const FoundOperands found =
        FindOperands(*session_, Operands(), true).value();
    prepared_ = PreparedProgram::Make(ProgramSource(std::string(kProgram)),
                                      found.described, outputs_, {}, device_)
                    .value();
  }

  /// Runs the program once; what was made goes again, so that there is room at
  /// the same place.
  absl::Status Run(RunReport* report = nullptr) {
    TENSORD_ASSIGN_OR_RETURN(FoundOperands found,
                             FindOperands(*session_, Operands(), true));
    TENSORD_ASSIGN_OR_RETURN(
        const std::unique_ptr<server::Run> run,
        PrepareProgramRun(PlanProgramRun(engine_, session_, *prepared_).value(),
                          prepared_, Operands(), std::move(found), outputs_,
                          0));
    DeviceWorker::Job::Outcome ran;
    do {
      ran = run->Launch(*stream_);
    } while (ran.status.ok() && ran.is_part);
    ran.status.Update(stream_->Synchronize());
    run->Complete(ran.status, {});
    if (report != nullptr) *report = run->report();
    TENSORD_RETURN_IF_ERROR(ran.status);
    result_ = Read(*run->results()[0].tensor());
    session_->Remove(*run->results()[0].tensor());
    return absl::OkStatus();
  }

  /// What the last run made, and what it wrote.
  const std::vector<float>& result() const { return result_; }
  std::vector<float> Written() {
    return Read(*session_->Find(NameOf("E")).value());
  }
  TensorState StateOf(const std::string& name) {
    return session_->Find(NameOf(name)).value()->state();
  }
  int64_t used_bytes() const { return session_->memory()->used_bytes(); }
  size_t tensor_count() const { return session_->tensor_count(); }

 private:
  static std::string NameOf(const std::string& name) {
    return "sessions/s/tensors/" + name;
  }
  static std::vector<ProgramOperandRequest> Operands() {
    std::vector<ProgramOperandRequest> operands;
    for (const std::string& name : kOperands) {
      operands.push_back({.name = name, .source = NameOf(name)});
    }
    return operands;
  }
  std::vector<float> Read(const StoredTensor& tensor) {
    std::vector<float> values(kExtent * kExtent);
    EXPECT_TRUE(
        stream_
            ->CopyToHost(values.data(), tensor.first(), std::ssize(values) * 4)
            .ok());
    EXPECT_TRUE(stream_->Synchronize().ok());
    return values;
  }

  Engine& engine_;
  Device& device_;
  const core::TensorDesc desc_ = {
      core::ElementType::kFloat32,
      core::PackedLayout({kExtent, kExtent}, core::Order::kFirstModeFastest)};
  const std::vector<ProgramOutputRequest> outputs_ = {{.name = "R"}};
  const std::unique_ptr<core::Stream> stream_;
  const std::shared_ptr<Session> session_;
  std::shared_ptr<PreparedProgram> prepared_;
  std::vector<float> result_;
};

class CudaProgramTest : public ::testing::TestWithParam<simt::Order> {
 protected:
  CudaProgramTest() {
    simt::ResetNode({.device_count = 1, .memory_bytes = int64_t{64} << 20});
    simt::SetSchedule({.order = GetParam(), .worker_count = 2});
    EngineOptions options{.linked_cuda = tensord_backend_module(),
                          .cpu_threads = 1,
                          .memory_limit_bytes = int64_t{16} << 20};
    options.devices = *ParseDevices("cuda,cpu");
    engine_ = Engine::Create(options).value();
  }

  std::unique_ptr<Engine> engine_;
};

INSTANTIATE_TEST_SUITE_P(Orders, CudaProgramTest,
                         ::testing::ValuesIn(simt::kAllOrders));

TEST_P(CudaProgramTest, ComputesAsTheCpuDoes) {
  ProgramSession gpu(*engine_, *engine_->FindDevice("cuda:0").value());
  ProgramSession cpu(*engine_, *engine_->FindDevice("cpu:0").value());
  for (int i = 0; i < 5; ++i) {
    SCOPED_TRACE(i);
    ASSERT_TRUE(cpu.Run().ok());
    const simt::CallCounts before = simt::CountCalls();
    RunReport report;
    ASSERT_EQ(gpu.Run(&report), absl::OkStatus());
    const simt::CallCounts after = simt::CountCalls();
    EXPECT_EQ(gpu.result(), cpu.result());
    EXPECT_EQ(gpu.Written(), cpu.Written());
    // The first time kernels are launched; then they are recorded.
    EXPECT_EQ(report.is_replayed, i > 0);
    EXPECT_EQ(after.graph_launches - before.graph_launches, i > 0 ? 1 : 0);
    EXPECT_EQ(after.launches > before.launches, i == 0);
    if (i == 0) {
      EXPECT_GT(after.event_waits, before.event_waits);  // branches
    }
  }
  EXPECT_EQ(gpu.tensor_count(), kOperands.size());
}

TEST_P(CudaProgramTest, OtherMemoryIsNotTakenForTheRecordedOne) {
  ProgramSession gpu(*engine_, *engine_->FindDevice("cuda:0").value());
  ProgramSession cpu(*engine_, *engine_->FindDevice("cpu:0").value());
  Device& device = *engine_->FindDevice("cuda:0").value();
  std::vector<core::Buffer> in_the_way;
  for (int i = 0; i < 8; ++i) {
    SCOPED_TRACE(i);
    ASSERT_TRUE(cpu.Run().ok());
    ASSERT_EQ(gpu.Run(), absl::OkStatus());
    EXPECT_EQ(gpu.result(), cpu.result());
    EXPECT_EQ(gpu.Written(), cpu.Written());
    if (i % 3 < 2) continue;
    in_the_way.push_back(core::Buffer::Allocate(device.memory(), 256).value());
  }
}

TEST_P(CudaProgramTest, WhatCannotBeRecordedIsQueued) {
  ProgramSession cpu(*engine_, *engine_->FindDevice("cpu:0").value());
  ProgramSession gpu(*engine_, *engine_->FindDevice("cuda:0").value());
  for (int n = 1; n < 5; ++n) {
    gpu.Prepare();  // and nothing is recorded
    for (int i = 0; i < 3; ++i) {
      SCOPED_TRACE(::testing::Message() << "launch " << n << ", run " << i);
      ASSERT_TRUE(cpu.Run().ok());
      // The second run records.
      simt::FailCall(simt::CallKind::kRecordedLaunch, n,
                     cudaErrorLaunchOutOfResources);
      RunReport report;
      ASSERT_EQ(gpu.Run(&report), absl::OkStatus());
      simt::ForgetFailures();
      EXPECT_EQ(gpu.result(), cpu.result());
      EXPECT_EQ(gpu.Written(), cpu.Written());
      EXPECT_FALSE(report.is_replayed);
    }
  }
}

TEST_P(CudaProgramTest, FailuresLeaveNothingUnderWay) {
  ProgramSession gpu(*engine_, *engine_->FindDevice("cuda:0").value());
  ASSERT_TRUE(gpu.Run().ok());
  const std::vector<float> written = gpu.Written();
  const int64_t used_bytes = gpu.used_bytes();
  int failure_count = 0;
  for (int n = 1; n < 30; ++n) {
    SCOPED_TRACE(n);
    gpu.Prepare();  // and nothing is recorded
    simt::FailCall(simt::CallKind::kLaunch, n, cudaErrorLaunchOutOfResources);
    const absl::Status ran = gpu.Run();
    simt::ForgetFailures();
    if (ran.ok()) break;
    ++failure_count;
    EXPECT_EQ(ran.code(), absl::StatusCode::kInternal) << ran;
    EXPECT_EQ(gpu.tensor_count(), kOperands.size());
    EXPECT_EQ(gpu.used_bytes(), used_bytes);
    EXPECT_EQ(gpu.StateOf("E"), TensorState::kInvalid);
    gpu.Fill("E", written);
  }
  EXPECT_GT(failure_count, 5);

  gpu.Fill("E", written);
  gpu.Prepare();
  ASSERT_TRUE(gpu.Run().ok());
  simt::FailCall(simt::CallKind::kGraphLaunch, 1,
                 cudaErrorLaunchOutOfResources);
  EXPECT_EQ(core::ReasonOf(gpu.Run()), "CUDA_ERROR");
  EXPECT_EQ(gpu.StateOf("E"), TensorState::kInvalid);
  gpu.Fill("E", written);
  EXPECT_TRUE(gpu.Run().ok());
}

}  // namespace
}  // namespace tensord::server
