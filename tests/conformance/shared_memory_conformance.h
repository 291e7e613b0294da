// A server, and who brings it memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shared_memory/protocol.h"
#include "tests/conformance/rpc_conformance.h"
#include "tests/conformance/shared_memory_peer.h"

namespace tensord {

class SharedMemoryConformance : public RpcConformance {
 protected:
  SharedMemoryConformance()
      : RpcConformance(
            server::EngineOptions{.cpu_threads = 2,
                                  .memory_limit_bytes = int64_t{64} << 20,
                                  .staging_limit_bytes = int64_t{64} << 20,
                                  .queue_limit = 4}) {}

  std::string path() const {
    return server_.address().substr(std::string("unix:").size()) + ".shm";
  }
  Outcome Invite(const std::string& session,
                 v1::OpenSharedMemoryResponse* response) {
    v1::OpenSharedMemoryRequest request;
    request.set_session(session);
    request.set_takes_copies(true);
    return Unary(&v1::SessionService::Stub::OpenSharedMemory, *sessions_,
                 request, response);
  }
  shared_memory::Message Hello(const std::string& session) {
    v1::OpenSharedMemoryResponse response;
    EXPECT_THAT(Invite(session, &response), IsOk());
    EXPECT_THAT(response.sockets(), ::testing::ElementsAre(path()));
    shared_memory::Message hello;
    EXPECT_EQ(response.ticket().size(), hello.ticket.size());
    std::memcpy(hello.ticket.data(), response.ticket().data(),
                hello.ticket.size());
    return hello;
  }
  shared_memory::Message Hello() { return Hello(session_); }
  /// One that the server knows as a session's.
  std::unique_ptr<Peer> Known(const std::string& session) {
    auto peer = std::make_unique<Peer>(path());
    peer->Send(Hello(session));
    EXPECT_EQ(peer->Reason(), "");
    return peer;
  }
  std::unique_ptr<Peer> Known() { return Known(session_); }
  std::string NewSession() {
    v1::OpenSessionResponse opened;
    EXPECT_THAT(Open({}, &opened), IsOk());
    return opened.session().name();
  }
  v1::AdoptTensorRequest AdoptRequest(int64_t region,
                                      std::vector<int64_t> extents) {
    v1::AdoptTensorRequest request;
    request.set_session(session_);
    request.set_element_type(v1::ELEMENT_TYPE_FLOAT32);
    request.mutable_layout()->mutable_extents()->Add(extents.begin(),
                                                     extents.end());
    request.set_region(region);
    request.set_in_place(true);
    return request;
  }
  bool HasOwnMemory() { return !server_.device().info().uses_host_memory; }
  Outcome Adopt(const v1::AdoptTensorRequest& request,
                v1::Tensor* tensor = nullptr) {
    v1::AdoptTensorResponse response;
    const Outcome outcome = Unary(&v1::TensorService::Stub::AdoptTensor,
                                  *tensors_, request, &response);
    if (tensor != nullptr) *tensor = response.tensor();
    return outcome;
  }
  Outcome Store(const std::string& tensor, int64_t region,
                std::vector<int64_t> extents, int64_t offset = 0) {
    v1::StoreTensorRequest request;
    request.set_tensor(tensor);
    request.mutable_layout()->mutable_extents()->Add(extents.begin(),
                                                     extents.end());
    request.set_region(region);
    request.set_offset_bytes(offset);
    v1::StoreTensorResponse response;
    return Unary(&v1::TensorService::Stub::StoreTensor, *tensors_, request,
                 &response);
  }
  /// Files in memory that this process, which is the server, has mapped.
  static int MappedFiles() {
    std::ifstream maps("/proc/self/maps");
    const std::string all{std::istreambuf_iterator<char>(maps), {}};
    int count = 0;
    for (size_t at = 0; (at = all.find("/memfd:test", at)) != std::string::npos;
         ++at) {
      ++count;
    }
    return count;
  }
  static int OpenFiles() {
    return static_cast<int>(std::distance(
        std::filesystem::directory_iterator("/proc/self/fd"), {}));
  }
  int64_t QuotaUsed() {
    v1::DescribeSessionRequest request;
    request.set_session(session_);
    v1::DescribeSessionResponse response;
    EXPECT_THAT(Unary(&v1::SessionService::Stub::DescribeSession, *sessions_,
                      request, &response),
                IsOk());
    return HasOwnMemory() ? response.session().staging_used_bytes()
                          : response.session().memory_used_bytes();
  }
};

}  // namespace tensord
