// A TensorService of one tensor that fails as tests ask it to.
#pragma once

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/crc32c.h"
#include "tensord/v1/tensor.grpc.pb.h"

namespace tensord::internal {

class FakeTensorService final : public v1::TensorService::Service {
 public:
  std::string bytes;     // the tensor's
  std::string contents;  // what has come
  std::atomic<int> upload_calls = 0;
  std::atomic<int> download_calls = 0;
  int64_t break_uploads_at = -1;  // ends the next stream after that many bytes
  int breaks_left = 0;
  grpc::Status break_status{grpc::StatusCode::UNAVAILABLE, "gone"};
  int64_t corrupt_download_at = -1;  // spoils the next chunk there, once
  int64_t download_chunk = 1000;
  std::atomic<bool> stop_reading = false;
  size_t largest_chunk = 0;

  grpc::Status DescribeTensor(grpc::ServerContext*,
                              const v1::DescribeTensorRequest*,
                              v1::DescribeTensorResponse* response) override {
    *response->mutable_tensor() = Describe();
    return grpc::Status::OK;
  }

  grpc::Status UploadTensor(grpc::ServerContext* context,
                            grpc::ServerReader<v1::UploadTensorRequest>* reader,
                            v1::UploadTensorResponse* response) override {
    ++upload_calls;
    if (breaks_left > 0 && break_uploads_at == 0) {
      --breaks_left;
      return break_status;
    }
    v1::UploadTensorRequest request;
    for (bool first = true; reader->Read(&request); first = false) {
      while (stop_reading && !context->IsCancelled()) {
        absl::SleepFor(absl::Milliseconds(10));
      }
      const auto offset = static_cast<size_t>(request.offset_bytes());
      if (first != (request.tensor() == "t")) {
        return {grpc::StatusCode::INVALID_ARGUMENT, "name"};
      }
      if (first && offset == 0) contents.clear();
      if (offset != contents.size()) {
        return {grpc::StatusCode::INVALID_ARGUMENT, "out of order"};
      }
      if (core::Crc32c(request.data()) != request.crc32c()) {
        return {grpc::StatusCode::INVALID_ARGUMENT, "checksum"};
      }
      contents += request.data();
      largest_chunk = std::max(largest_chunk, request.data().size());
      if (breaks_left > 0 && break_uploads_at >= 0 &&
          static_cast<int64_t>(contents.size()) >= break_uploads_at) {
        --breaks_left;
        return break_status;
      }
    }
    *response->mutable_tensor() = Describe();
    return grpc::Status::OK;
  }

  grpc::Status DownloadTensor(
      grpc::ServerContext*, const v1::DownloadTensorRequest* request,
      grpc::ServerWriter<v1::DownloadTensorResponse>* writer) override {
    ++download_calls;
    for (int64_t at = request->offset_bytes();
         at < static_cast<int64_t>(bytes.size()); at += download_chunk) {
      v1::DownloadTensorResponse response;
      response.set_offset_bytes(at);
      response.set_data(bytes.substr(at, download_chunk));
      response.set_crc32c(core::Crc32c(response.data()));
      if (at == corrupt_download_at) {
        corrupt_download_at = -1;
        (*response.mutable_data())[0] ^= 1;
      }
      writer->Write(response);
    }
    return grpc::Status::OK;
  }

 private:
  v1::Tensor Describe() const {
    v1::Tensor tensor;
    tensor.set_name("t");
    tensor.set_span_bytes(static_cast<int64_t>(bytes.size()));
    tensor.set_committed_bytes(static_cast<int64_t>(contents.size()));
    tensor.set_state(contents.size() == bytes.size()
                         ? v1::TENSOR_STATE_READY
                         : v1::TENSOR_STATE_PARTIAL);
    return tensor;
  }
};

/// The service on a Unix socket.
class FakeServer {
 public:
  FakeServer() {
    static std::atomic<int> count = 0;
    address_ = absl::StrCat("unix:/tmp/tensord_fake_", getpid(), "_", ++count);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&service);
    server_ = builder.BuildAndStart();
  }
  ~FakeServer() {
    service.stop_reading = false;
    server_->Shutdown(std::chrono::system_clock::now());
  }

  const std::string& address() const { return address_; }

  FakeTensorService service;

 private:
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tensord::internal
