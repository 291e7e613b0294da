// A CPU in the place of another device.
#pragma once

#include <memory>

#include "core/backend/backend.h"
#include "core/backend/cpu/cpu_backend.h"

namespace tensord::testing {

/// Computes as a CPU of one thread does; what differs is a subclass's.
class StandInBackend : public core::Backend {
 public:
  const core::DeviceInfo& info() const override { return info_; }
  const core::KernelLists& kernels() const override { return cpu_->kernels(); }
  core::MemoryResource& memory() override { return cpu_->memory(); }
  core::MemoryResource& staging_memory() override { return cpu_->memory(); }
  absl::Status health() const override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<core::Stream>> CreateStream() override {
    return cpu_->CreateStream();
  }
  absl::Status Gather(const core::GatherSteps& steps,
                      const core::GatherOperands& operands,
                      core::Stream& stream) override {
    return cpu_->Gather(steps, operands, stream);
  }
  absl::Status Scatter(const core::GatherSteps& steps,
                       const core::ScatterOperands& operands,
                       core::Stream& stream) override {
    return cpu_->Scatter(steps, operands, stream);
  }
  absl::Status Fill(const core::FillOperands& operands,
                    core::Stream& stream) override {
    return cpu_->Fill(operands, stream);
  }
  absl::Status Copy(const core::CopyOperands& operands,
                    core::Stream& stream) override {
    return cpu_->Copy(operands, stream);
  }

 protected:
  const std::unique_ptr<core::Backend> cpu_ =
      core::CreateCpuBackend({.thread_count = 1});
  core::DeviceInfo info_ = cpu_->info();
};

}  // namespace tensord::testing
