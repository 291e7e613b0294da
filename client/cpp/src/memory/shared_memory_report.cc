// What it takes to share memory with a server, a step after the other.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/src/connection.h"
#include "client/cpp/src/convert.h"
#include "client/cpp/src/errors.h"
#include "client/cpp/src/memory/shared_memory.h"
#include "client/cpp/src/transfer.h"
#include "tensord/session.h"

namespace tensord {
namespace {

using internal::Connection;
using internal::OwnedDescriptor;
using internal::SharedMemory;

constexpr int64_t kElements = int64_t{4} << 20;  // float32: 16 MiB
constexpr int kRounds = 4;

/// Up and down again by `move`, a few times: bytes a second of the best.
template <typename Move>
absl::StatusOr<double> Rate(Move move) {
  double best = 0;
  for (int i = 0; i < kRounds; ++i) {
    const absl::Time begun = absl::Now();
    TENSORD_CLIENT_RETURN_IF_ERROR(move());
    const double seconds = absl::ToDoubleSeconds(absl::Now() - begun);
    best = std::max(best, 2.0 * kElements * sizeof(float) / seconds);
  }
  return best;
}

std::string RateText(double bytes_per_second) {
  return absl::StrCat(static_cast<int64_t>(bytes_per_second / 1e6), " MB/s");
}

/// Looks at one thing after the other, until one is not so.
class Examination {
 public:
  Examination(Connection& connection, const std::string& session)
      : connection_(connection),
        channels_(connection.channels()),
        session_(session),
        sent_(kElements),
        got_(kElements) {
    for (size_t i = 0; i < sent_.size(); ++i) sent_[i] = static_cast<float>(i);
    like_.set_element_type(v1::ELEMENT_TYPE_FLOAT32);
    like_.mutable_layout()->add_extents(kElements);
  }

  SharedMemoryReport Report() {
    Look("address", &Examination::Address);
    Look("server", &Examination::Server);
    Look("memory", &Examination::Memory);
    Look("socket", &Examination::Socket);
    Look("hello", &Examination::Hello);
    Look("region", &Examination::Region);
    Look("round trip", &Examination::RoundTrip);
    Look("speed", &Examination::Speed);
    return std::move(report_);
  }

 private:
  /// What was found, for people.
  using Found = absl::StatusOr<std::string>;

  void Look(std::string what, Found (Examination::*look)()) {
    const Found found = report_.status().ok()
                            ? (this->*look)()
                            : absl::CancelledError("not looked at");
    report_.checks.push_back(
        {std::move(what), found.status(), found.value_or("")});
  }

  Found Address() {
    TENSORD_CLIENT_RETURN_IF_ERROR(
        internal::CheckSharedAddress(connection_.address()));
    return absl::StrCat(connection_.address(), " is this host's");
  }

  Found Server() {
    v1::OpenSharedMemoryRequest request;
    request.set_session(session_);
    request.set_takes_copies(true);
    TENSORD_CLIENT_ASSIGN_OR_RETURN(
        opened_,
        channels_.Call(channels_.session,
                       &v1::SessionService::Stub::OpenSharedMemory, request));
    return absl::StrCat("takes shared memory for ",
                        connection_.session().device);
  }

  Found Memory() {
    TENSORD_CLIENT_RETURN_IF_ERROR(internal::MakeSealedFile(4096).status());
    return std::string("memfd_create() and its seals work");
  }

  Found Socket() {
    const std::vector<std::string> told(opened_.sockets().begin(),
                                        opened_.sockets().end());
    absl::Status failure = internal::Error(
        absl::StatusCode::kUnavailable, "SHARED_MEMORY_UNREACHABLE",
        absl::StrCat("the server has told of none beside ",
                     connection_.address(),
                     ", perhaps as it is in another container"));
    for (const std::string& each :
         internal::SocketsFor(connection_.address(), told)) {
      absl::StatusOr<OwnedDescriptor> connected = internal::ConnectTo(each);
      if (connected.ok()) {
        socket_ = *std::move(connected);
        return absl::StrCat(each, " answers");
      }
      failure = connected.status();
    }
    return failure;
  }

  Found Hello() {
    TENSORD_CLIENT_ASSIGN_OR_RETURN(
        memory_,
        SharedMemory::Open(std::move(socket_), opened_.ticket(), session_));
    return std::string("the server knows this session there");
  }

  Found Region() {
    TENSORD_CLIENT_RETURN_IF_ERROR(MoveByMemory());
    return absl::StrCat("the server has mapped ", 2 * kElements * sizeof(float),
                        " bytes");
  }

  Found RoundTrip() {
    if (got_ != sent_) {
      return absl::DataLossError("what came back is not what was sent");
    }
    return std::string("what came back is what was sent");
  }

  Found Speed() {
    TENSORD_CLIENT_ASSIGN_OR_RETURN(report_.shared_bytes_per_second,
                                    Rate([this] { return MoveByMemory(); }));
    v1::CreateTensorRequest create;
    create.set_session(session_);
    create.set_element_type(like_.element_type());
    *create.mutable_layout() = like_.layout();
    TENSORD_CLIENT_ASSIGN_OR_RETURN(
        const v1::CreateTensorResponse created,
        channels_.Call(channels_.tensor, &v1::TensorService::Stub::CreateTensor,
                       create));
    const std::string& tensor = created.tensor().name();
    TENSORD_CLIENT_ASSIGN_OR_RETURN(report_.grpc_bytes_per_second,
                                    Rate([&] { return MoveByGrpc(tensor); }));
    TENSORD_CLIENT_RETURN_IF_ERROR(channels_.Delete(tensor));
    return absl::StrCat(RateText(report_.shared_bytes_per_second),
                        " up and down, by gRPC ",
                        RateText(report_.grpc_bytes_per_second));
  }

  absl::Status MoveByMemory() {
    TENSORD_CLIENT_ASSIGN_OR_RETURN(
        const v1::Tensor tensor,
        memory_->Upload(channels_, like_, std::as_bytes(std::span(sent_)),
                        connection_.Deadline({})));
    const absl::Status stored = memory_->Download(
        channels_, tensor.name(), like_.layout(),
        std::as_writable_bytes(std::span(got_)), connection_.Deadline({}));
    TENSORD_CLIENT_RETURN_IF_ERROR(channels_.Delete(tensor.name()));
    return stored;
  }

  absl::Status MoveByGrpc(const std::string& tensor) {
    const internal::TransferOptions options =
        connection_.Transfer(kElements * sizeof(float), {}, unheard_);
    TENSORD_CLIENT_RETURN_IF_ERROR(
        internal::Upload(channels_, tensor, std::as_bytes(std::span(sent_)),
                         options)
            .status());
    return internal::Download(channels_, tensor,
                              std::as_writable_bytes(std::span(got_)), options);
  }

  const Progress unheard_;  // of how far transfers have come
  Connection& connection_;
  const internal::Channels& channels_;
  const std::string session_;
  SharedMemoryReport report_;
  v1::OpenSharedMemoryResponse opened_;
  OwnedDescriptor socket_;
  std::unique_ptr<SharedMemory> memory_;
  v1::AdoptTensorRequest like_;
  std::vector<float> sent_, got_;
};

}  // namespace

SharedMemoryReport Session::CheckSharedMemory() const {
  return Examination(*connection_, name()).Report();
}

}  // namespace tensord
