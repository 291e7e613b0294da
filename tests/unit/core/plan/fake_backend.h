// A backend whose kernels say what a test wants.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/backend/backend.h"
#include "core/base/status.h"
#include "core/device/host_stream.h"
#include "core/memory/host_resource.h"

namespace tensord::test {

/// A permutation kernel that answers as told and counts what it is asked.
class FakePermutation final : public core::PermutationKernel {
 public:
  struct Answers {
    std::string name;
    absl::Status supports = {};
    double nanoseconds = 0;
    int64_t workspace_bytes = 0;
    absl::Status launch = {};
    int* launch_count = nullptr;
    absl::Duration launch_time = absl::ZeroDuration();
    int version = 1;
    std::function<void()> on_solve = [] {};
  };
  explicit FakePermutation(Answers answers) : answers_(std::move(answers)) {}

  absl::string_view name() const override { return answers_.name; }
  int version() const override { return answers_.version; }
  Solved Solve(const core::PermutationProblem&) const override {
    answers_.on_solve();
    if (!answers_.supports.ok()) return answers_.supports;
    return std::make_unique<FakeSolution>(answers_);
  }

 private:
  class FakeSolution final : public core::PermutationSolution {
   public:
    explicit FakeSolution(const Answers& answers)
        : Solution(answers.nanoseconds, answers.workspace_bytes),
          answers_(answers) {}

    std::string decision() const override {
      return absl::StrCat("as ", answers_.name, " was told");
    }
    int64_t bytes() const override {
      return core::HeapBlockBytes(sizeof(*this)) +
             core::HeapBytes(answers_.name);
    }
    absl::Status Launch(const core::PermutationOperands&,
                        core::Workspace& workspace,
                        core::Stream&) const override {
      if (workspace_bytes() > 0) workspace.Take<char>(workspace_bytes());
      if (answers_.launch_count != nullptr) ++*answers_.launch_count;
      absl::SleepFor(answers_.launch_time);
      return answers_.launch;
    }

   private:
    const Answers answers_;
  };

  const Answers answers_;
};

/// Says `status` to whoever waits for it.
class FakeStream final : public core::Stream {
 public:
  absl::Status CopyToDevice(void*, const void*, int64_t) override {
    return status;
  }
  absl::Status CopyToHost(void*, const void*, int64_t) override {
    return status;
  }
  absl::Status CopyBetweenDevices(void*, const void*, int64_t) override {
    return status;
  }
  absl::Status Call(void (*)(void*), void*) override { return status; }
  absl::StatusOr<std::unique_ptr<core::Event>> Record() override {
    if (!status.ok()) return status;
    return nullptr;
  }
  absl::StatusOr<std::unique_ptr<core::TimedPoint>> RecordTime() override {
    if (!status.ok()) return status;
    return std::make_unique<core::HostTime>();
  }
  absl::Status Synchronize() override { return status; }
  absl::StatusOr<core::Stream*> Branch(int) override { return nullptr; }
  absl::Status WaitFor(const core::Event*) override { return status; }
  absl::StatusOr<bool> BeginRecording() override { return false; }
  absl::StatusOr<std::unique_ptr<core::Recording>> EndRecording() override {
    return nullptr;
  }
  absl::Status status;
};

class FakeBackend final : public core::Backend {
 public:
  explicit FakeBackend(std::vector<FakePermutation::Answers> kernels) {
    for (FakePermutation::Answers& answers : kernels) {
      kernels_.permutation.push_back(
          std::make_unique<FakePermutation>(std::move(answers)));
    }
  }

  const core::DeviceInfo& info() const override { return info_; }
  const core::KernelLists& kernels() const override { return kernels_; }
  core::MemoryResource& memory() override { return memory_; }
  core::MemoryResource& staging_memory() override { return memory_; }
  absl::Status health() const override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<core::Stream>> CreateStream() override {
    return std::make_unique<FakeStream>();
  }
  absl::Status Gather(const core::GatherSteps&, const core::GatherOperands&,
                      core::Stream&) override {
    return core::Unimplemented("NO_GATHER", "this backend only plans");
  }
  absl::Status Scatter(const core::GatherSteps&, const core::ScatterOperands&,
                       core::Stream&) override {
    return core::Unimplemented("NO_SCATTER", "this backend only plans");
  }
  absl::Status Fill(const core::FillOperands&, core::Stream&) override {
    return core::Unimplemented("NO_FILL", "this backend only plans");
  }
  absl::Status Copy(const core::CopyOperands&, core::Stream&) override {
    return core::Unimplemented("NO_COPY", "this backend only plans");
  }

 private:
  core::DeviceInfo info_{.name = "fake:0", .kind = "fake"};
  core::KernelLists kernels_;
  core::HostResource memory_;
};

/// A permutation of a 4 x 5 matrix, to be planned on "fake:0".
inline core::PermutationProblem Transpose(int64_t rows = 4,
                                          int64_t columns = 5) {
  core::PermutationProblem problem;
  problem.modes = core::Canonical(
      core::LoopModes<2>{{columns, {rows, 1}}, {rows, {1, columns}}},
      core::PermutationProblem::kD);
  return problem;
}

}  // namespace tensord::test
