// Whatever clients send, in whatever order, and whenever they leave: each call
// ends with a documented code and a reason, and when their sessions are closed
// nothing is left of them.
//
// An input is a list of calls. Of each the first byte says which of kCalls it
// is, the second how it goes, the others what is changed in its messages.
#include <google/protobuf/stubs/logging.h>
#include <grpc/grpc.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/crc32c.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"
#include "tensord/v1/error.pb.h"
#include "tensord/v1/session.pb.h"
#include "tensord/v1/tensor.pb.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/left_over.h"
#include "tests/fuzz/service_calls.h"
#include "tests/testing/in_process_server.h"

namespace tensord {
namespace {

using fuzz::Check;
using fuzz::Input;
using fuzz::MethodOf;
using fuzz::Names;
using fuzz::NewMessage;
using fuzz::SampleCall;
using fuzz::SampleCalls;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using google::protobuf::TextFormat;

// What it logs of malformed names would be all that one sees.
[[maybe_unused]] const auto kLogged = google::protobuf::SetLogHandler(nullptr);

std::string TextOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  buffer.Dump(&slices);
  std::string text;
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

/// How a call goes.
struct Manner {
  bool is_left = false;       // nobody waits for it
  bool is_open = false;       // and not all of its messages are sent
  bool is_cancelled = false;  // if it is left
  bool is_hurried = false;    // has a deadline that it may miss
  bool is_once = false;       // is repeated, with the same id
};

/// One call. Its events, one at a time, come to OnEvent().
class Call {
 public:
  Call(const MethodDescriptor& method, std::vector<std::string> messages,
       const Manner& manner)
      : method_(method), messages_(std::move(messages)), manner_(manner) {
    context_.set_deadline(
        std::chrono::system_clock::now() +
        std::chrono::milliseconds(manner.is_hurried ? 1 : 30'000));
    if (manner.is_once) {
      context_.AddMetadata("x-request-id", method.name());
      context_.AddMetadata("x-request-once", "1");
    }
  }

  void Begin(grpc::GenericStub& stub, grpc::CompletionQueue& queue) {
    const std::string path =
        absl::StrCat("/", method_.service()->full_name(), "/", method_.name());
    is_waiting_ = true;
    if (method_.client_streaming() || method_.server_streaming()) {
      stream_ = stub.PrepareCall(&context_, path, &queue);
      next_ = [this](bool ok) { ok ? Write() : Read(); };
      stream_->StartCall(this);
      return;
    }
    unary_ = stub.PrepareUnaryCall(&context_, path, NextMessage(), &queue);
    unary_->StartCall();
    next_ = [this](bool) {
      if (status_.ok()) answers_.push_back(TextOf(answer_));
      is_waiting_ = false;
    };
    unary_->Finish(&answer_, &status_, this);
  }

  void OnEvent(bool ok) { std::exchange(next_, nullptr)(ok); }
  bool is_waiting() const { return is_waiting_; }  // for an event
  const Manner& manner() const { return manner_; }

  /// Has a call end that was left.
  void End() {
    if (manner_.is_cancelled || manner_.is_open) context_.TryCancel();
    if (!is_held_) return;
    is_held_ = false;
    is_waiting_ = true;
    Read();
  }

  /// Its answers if it ended well. Requires that it has ended.
  std::vector<std::unique_ptr<Message>> CheckEnd(bool may_be_stopped) const {
    std::vector<std::unique_ptr<Message>> answers;
    for (const std::string& bytes : answers_) {
      answers.push_back(NewMessage(*method_.output_type()));
      Check(answers.back()->ParseFromString(bytes), "an answer is a message",
            method_.full_name());
    }
    if (!status_.ok()) CheckError(may_be_stopped);
    return answers;
  }

 private:
  grpc::ByteBuffer NextMessage() {
    const grpc::Slice slice(messages_[sent_count_++]);
    return {&slice, 1};
  }
  void Write() {
    const bool is_all = sent_count_ == messages_.size();
    if (manner_.is_open && sent_count_ + 1 >= messages_.size()) {
      is_waiting_ = false;
      is_held_ = true;
    } else if (is_all) {
      next_ = [this](bool) { Read(); };
      stream_->WritesDone(this);
    } else {
      next_ = [this](bool ok) { ok ? Write() : Read(); };
      stream_->Write(NextMessage(), this);
    }
  }
  void Read() {
    next_ = [this](bool ok) {
      if (ok) {
        answers_.push_back(TextOf(answer_));
        return Read();
      }
      next_ = [this](bool) { is_waiting_ = false; };
      stream_->Finish(&status_, this);
    };
    stream_->Read(&answer_, this);
  }

  void CheckError(bool may_be_stopped) const {
    v1::ErrorDetail detail;
    const auto& trailers = context_.GetServerTrailingMetadata();
    const auto found = trailers.find("tensord-error-bin");
    const bool has_detail = found != trailers.end();
    if (has_detail) {
      Check(detail.ParseFromArray(found->second.data(),
                                  static_cast<int>(found->second.size())),
            "the detail is a message");
    }
    const std::string seen =
        absl::StrCat(method_.full_name(), ": ", status_.error_code(), " ",
                     detail.reason(), " ", status_.error_message());
    const bool is_left = manner_.is_cancelled || manner_.is_open;
    switch (status_.error_code()) {
      case grpc::CANCELLED:
        Check(is_left || manner_.is_hurried || may_be_stopped,
              "somebody cancels a call that is cancelled", seen);
        return;
      case grpc::DEADLINE_EXCEEDED:
        Check(manner_.is_hurried, "every call ends soon", seen);
        return;
      case grpc::INTERNAL:
        Check(!has_detail && !AreMessages(), "the server has no bugs", seen);
        return;
      case grpc::INVALID_ARGUMENT:
      case grpc::NOT_FOUND:
      case grpc::ALREADY_EXISTS:
      case grpc::FAILED_PRECONDITION:
      case grpc::RESOURCE_EXHAUSTED:
      case grpc::UNIMPLEMENTED:
      case grpc::ABORTED:
      case grpc::DATA_LOSS: break;
      default: Check(false, "the code is documented", seen);
    }
    Check(!detail.reason().empty(), "a refusal has a reason", seen);
    Check(!status_.error_message().empty(), "a refusal has a message", seen);
  }
  /// What was sent are messages to protobuf.
  bool AreMessages() const {
    const auto message = NewMessage(*method_.input_type());
    return std::ranges::all_of(messages_, [&](const std::string& bytes) {
      return message->ParseFromString(bytes);
    });
  }

  const MethodDescriptor& method_;
  const std::vector<std::string> messages_;
  const Manner manner_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> unary_;
  std::function<void(bool ok)> next_;  // null: no event is due
  bool is_waiting_ = false;
  bool is_held_ = false;  // until End(), with a message unsent
  size_t sent_count_ = 0;
  grpc::ByteBuffer answer_;
  std::vector<std::string> answers_;
  grpc::Status status_;
};

/// Clients of one server, an input at a time.
class Clients {
 public:
  void Try(Input input) {
    const std::vector<std::string> sessions = {Open(), Open()};
    opened_ = sessions;
    has_closed_ = false;
    for (int i = 0; i < kMostCalls && !input.is_empty(); ++i) {
      MakeCall(input, sessions);
    }
    for (const auto& call : left_) {
      call->End();
      Await(*call);
      CheckEnd(*call);
    }
    left_.clear();
    for (const std::string& session : opened_) {
      // A client may have closed it.
      server_.sessions().Close(session).IgnoreError();
    }
    server_.engine().plans().Clear(true);
    CheckNothingIsLeft();
  }

 private:
  static constexpr int kMostCalls = 64;

  std::string Open() {
    const auto session = server_.sessions().Open({.peer = "fuzz"});
    Check(session.ok(), "a session is opened", session.status().ToString());
    return (*session)->name();
  }

  void MakeCall(Input& input, const std::vector<std::string>& sessions) {
    const SampleCall& sample = SampleCalls()[input.Below(SampleCalls().size())];
    const MethodDescriptor& method = MethodOf(sample.method);
    const uint8_t how = input.Next();
    const size_t first = how >> 2 & 1;
    const Names names = {{"$A", sessions[first]}, {"$B", sessions[1 - first]}};
    std::vector<std::unique_ptr<Message>> messages;
    for (const char* const text : sample.messages) {
      messages.push_back(NewMessage(*method.input_type()));
      Check(TextFormat::ParseFromString(absl::StrReplaceAll(text, names),
                                        messages.back().get()),
            "a sample is a message", text);
    }
    for (int i = how & 3; i > 0; --i) {
      Change(*messages[input.Below(messages.size())], input, names);
    }
    std::vector<std::string> bytes;
    for (const auto& message : messages) {
      auto* const chunk = dynamic_cast<v1::UploadTensorRequest*>(message.get());
      if (chunk != nullptr && (how & 0x80) == 0) {
        chunk->set_crc32c(core::Crc32c(chunk->data()));
      }
      bytes.push_back(message->SerializeAsString());
    }
    if ((how & 0x40) != 0 && !bytes[0].empty()) {
      bytes[0][input.Below(bytes[0].size())] = static_cast<char>(input.Next());
    }
    const bool is_unary =
        !method.client_streaming() && !method.server_streaming();
    Manner manner{.is_left = (how & 0x18) != 0,
                  .is_open = (how & 0x20) != 0 && method.client_streaming(),
                  .is_cancelled = (how & 0x18) == 0x10,
                  .is_hurried = (how & 0x18) == 0x18,
                  .is_once = (how & 0x20) != 0 && is_unary};
    manner.is_left |= manner.is_open;
    // Lasts as long as it is asked to.
    if (method.name() == "RecordTimeline") {
      manner = {.is_left = true, .is_cancelled = true};
    }
    // A session whose name is not known could not be closed.
    if (method.name() == "OpenSession") manner = {};
    has_closed_ |= method.name() == "CloseSession" ||
                   method.name() == "EvictSessions" ||
                   method.name() == "CancelOperations";
    auto call = std::make_unique<Call>(method, std::move(bytes), manner);
    call->Begin(stub_, queue_);
    if (manner.is_left) {
      left_.push_back(std::move(call));
    } else {
      Await(*call);
      CheckEnd(*call);
    }
  }

  void Await(const Call& call) {
    while (call.is_waiting()) {
      void* tag = nullptr;
      bool ok = false;
      Check(queue_.Next(&tag, &ok), "the queue goes on");
      static_cast<Call*>(tag)->OnEvent(ok);
    }
  }

  void CheckEnd(const Call& call) {
    for (const auto& answer : call.CheckEnd(has_closed_)) {
      if (const auto* const opened =
              dynamic_cast<const v1::OpenSessionResponse*>(answer.get())) {
        opened_.push_back(opened->session().name());
      } else if (const auto* const chunk =
                     dynamic_cast<const v1::DownloadTensorResponse*>(
                         answer.get())) {
        Check(chunk->crc32c() == core::Crc32c(chunk->data()),
              "the checksum is the data's");
      }
    }
  }

  /// The server may still be about to hear that calls were left.
  void CheckNothingIsLeft() {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    std::string left = fuzz::LeftOver(server_);
    while (!left.empty() && absl::Now() < deadline) {
      absl::SleepFor(absl::Microseconds(100));
      left = fuzz::LeftOver(server_);
    }
    Check(left.empty(), "nothing is left", left);
  }

  testing::InProcessServer server_{
      {.engine = {.cpu_threads = 1,
                  .memory_limit_bytes = int64_t{8} << 20,
                  .queue_limit = 8,
                  .longest_operation = absl::Milliseconds(100)},
       .sessions = {.max_sessions = 6, .quota_bytes = int64_t{2} << 20}}};
  grpc::GenericStub stub_{server_.NewChannel()};
  grpc::CompletionQueue queue_;
  // Of this input.
  std::vector<std::string> opened_;
  bool has_closed_ = false;  // a session or its calls, which stops them
  std::vector<std::unique_ptr<Call>> left_;
};

}  // namespace
}  // namespace tensord

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // As long as the process: gRPC's threads are.
  static tensord::Clients& clients = *new tensord::Clients;
  clients.Try(tensord::fuzz::Input({data, size}));
  return 0;
}
