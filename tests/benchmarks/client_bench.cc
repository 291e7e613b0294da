// What the C++ client takes for calls and transfers, for python_native.py,
// which measures the same in Python beside it.
//
//   client_bench ADDRESS [auto|grpc]
//
// One line a figure, name and value: medians, in us of calls and in bytes a
// second of transfers.

#include <grpcpp/grpcpp.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "tensord/session.h"
#include "tensord/v1/compute.grpc.pb.h"

namespace {

namespace v1 = tensord::v1;

constexpr int kCalls = 1000;
constexpr int kTransfers = 25;
constexpr int64_t kExtent = 8;

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void Check(bool ok, const std::string& what) {
  if (ok) return;
  std::fprintf(stderr, "client_bench: %s\n", what.c_str());
  std::exit(1);
}

/// A product of float64 matrices that travels whole, there and back.
v1::ContractRequest InlineContraction(const std::string& session) {
  v1::ContractRequest request;
  request.set_session(session);
  const std::string data(kExtent * kExtent * sizeof(double), '\0');
  for (v1::Operand* operand : {request.mutable_a(), request.mutable_b()}) {
    v1::InlineTensor& tensor = *operand->mutable_inline_();
    tensor.set_element_type(v1::ELEMENT_TYPE_FLOAT64);
    for (int i = 0; i < 2; ++i) tensor.mutable_layout()->add_extents(kExtent);
    tensor.set_data(data);
  }
  for (const int32_t mode : {0, 1}) request.mutable_a()->add_modes(mode);
  for (const int32_t mode : {1, 2}) request.mutable_b()->add_modes(mode);
  for (const int32_t mode : {0, 2}) request.mutable_d()->add_modes(mode);
  request.mutable_d()->set_inline_(true);
  return request;
}

void MeasureCalls(const char* address, tensord::Session& session) {
  const std::vector<double> ones(kExtent * kExtent, 1);
  const tensord::HostView<double> view{ones.data(), {kExtent, kExtent}};
  const auto a = session.Upload(view);
  Check(a.ok(), a.status().ToString());
  const auto stub = v1::ComputeService::NewStub(
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  const v1::ContractRequest request = InlineContraction(session.name());
  std::vector<double> resident;
  std::vector<double> inlined;
  for (int i = 0; i < kCalls; ++i) {
    double start = Now();
    // Its result is deleted when that is timed no more.
    const auto product = session.Contract({*a, "ij"}, {*a, "jk"}, "ik");
    resident.push_back(Now() - start);
    Check(product.ok(), product.status().ToString());
    grpc::ClientContext context;
    v1::ContractResponse response;
    start = Now();
    const grpc::Status status = stub->Contract(&context, request, &response);
    inlined.push_back(Now() - start);
    Check(status.ok(), status.error_message());
  }
  std::printf("resident %.3f\n", Median(resident) * 1e6);
  std::printf("inline %.3f\n", Median(inlined) * 1e6);
}

void MeasureTransfers(tensord::Session& session, int64_t bytes) {
  std::vector<int8_t> source(bytes);
  for (int64_t i = 0; i < bytes; ++i) source[i] = static_cast<int8_t>(i * 37);
  std::vector<double> up;
  std::vector<double> down;
  for (int i = 0; i < kTransfers; ++i) {
    double start = Now();
    const auto tensor =
        session.Upload(tensord::HostView<int8_t>{source.data(), {bytes}});
    up.push_back(Now() - start);
    Check(tensor.ok(), tensor.status().ToString());
    start = Now();
    // Pages that come fresh from the system, as those of a new array do; free
    // memory of this program's would be there already.
    void* const to = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    Check(to != MAP_FAILED, "no memory");
    const std::span<std::byte> all(static_cast<std::byte*>(to), bytes);
    const absl::Status status =
        tensor->DownloadTo(tensord::ElementType::kInt8, all);
    down.push_back(Now() - start);
    Check(status.ok(), status.ToString());
    munmap(to, bytes);
  }
  std::printf("upload_%ld %.0f\n", bytes, bytes / Median(up));
  std::printf("download_%ld %.0f\n", bytes, bytes / Median(down));
}

}  // namespace

int main(int argc, char** argv) {
  Check(argc == 2 || argc == 3, "wanted: client_bench ADDRESS [auto|grpc]");
  const bool is_by_grpc = argc == 3 && std::string(argv[2]) == "grpc";
  auto session = tensord::Session::Connect(
      argv[1], {.transport = is_by_grpc ? tensord::Transport::kGrpc
                                        : tensord::Transport::kAuto});
  Check(session.ok(), session.status().ToString());
  MeasureCalls(argv[1], *session);
  for (const int mebibytes : {1, 8, 64}) {
    MeasureTransfers(*session, int64_t{mebibytes} << 20);
  }
  return 0;
}
