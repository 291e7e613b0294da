#include "tests/fuzz/held_memory.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/crc32c.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"
#include "server/engine/plan_store.h"
#include "server/identity/authenticator.h"
#include "server/identity/token_file.h"
#include "tensord/v1/compute.pb.h"
#include "tensord/v1/plan_cache.pb.h"
#include "tensord/v1/tensor.pb.h"
#include "tests/fuzz/allocated_bytes.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/large_message.h"
#include "tests/fuzz/left_over.h"
#include "tests/testing/blocker.h"
#include "tests/testing/in_process_server.h"

namespace tensord::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using google::protobuf::TextFormat;

// What the server holds for each byte that it counts.
constexpr int64_t kMostFactor = 4;
constexpr size_t kConnections = 2;
// What is held and not counted: what gRPC keeps ready for the next read of each
// connection, see Calm(), and what else it and the allocators of threads keep.
constexpr int64_t kBufferBytes = int64_t{1} << 20;
constexpr int64_t kRestBytes = int64_t{1} << 20;
constexpr absl::Duration kPatience = absl::Seconds(30);

/// Whether the other threads of this process have anything to do.
class OtherThreads {
 public:
  /// They sleep, and have since it was last asked.
  bool HaveRested() {
    bool all_sleep = true;
    std::string now;
    const std::string own = std::to_string(gettid());
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/self/task")) {
      if (task.path().filename() == own) continue;
      std::ifstream file(task.path() / "status");
      for (std::string line; std::getline(file, line);) {
        if (absl::StartsWith(line, "State:")) {
          all_sleep &= absl::StrContains(line, "S (");
        } else if (absl::StrContains(line, "ctxt_switches") ||
                   absl::StartsWith(line, "Pid:")) {
          now += line;
        }
      }
    }
    const bool same = now == std::exchange(seen_, now);
    return all_sleep && same;
  }

 private:
  std::string seen_;  // who they were, and how often each has run
};

/// How a call goes.
struct HeldManner {
  bool is_open = false;    // the client says never that no message follows
  bool is_unread = false;  // answers are not taken while the device is held
  bool is_cancelled = false;
  bool is_once = false;
};

/// One call, of any kind of rpc. Its events come to Fire().
class HeldCall {
 public:
  struct Tag {
    HeldCall* call;
    void (HeldCall::*on)(bool ok);
    void Fire(bool ok) { (call->*on)(ok); }
  };

  HeldCall(std::vector<grpc::ByteBuffer> messages, const HeldManner& manner,
           const std::string& bearer, const std::string& id)
      : messages_(std::move(messages)), manner_(manner) {
    if (!bearer.empty()) {
      context_.AddMetadata("authorization", absl::StrCat("Bearer ", bearer));
    }
    if (manner.is_once) {
      context_.AddMetadata("x-request-id", id);
      context_.AddMetadata("x-request-once", "1");
    }
  }

  void Begin(grpc::GenericStub& stub, const std::string& path,
             grpc::CompletionQueue& queue) {
    stream_ = stub.PrepareCall(&context_, path, &queue);
    is_writing_ = true;
    stream_->StartCall(&write_);
    if (!manner_.is_unread) Read();
  }
  /// Has it end, if it has not.
  void End() {
    if (manner_.is_unread) Read();
    if (manner_.is_cancelled || manner_.is_open) context_.TryCancel();
  }
  bool has_ended() const { return has_ended_; }
  const grpc::Status& status() const { return status_; }

 private:
  void Written(bool ok) {
    if (!ok || sent_count_ == messages_.size()) {
      is_writing_ = false;
      return FinishIfOver();
    }
    grpc::WriteOptions options;
    const grpc::ByteBuffer& next = messages_[sent_count_++];
    if (sent_count_ == messages_.size() && !manner_.is_open) {
      options.set_last_message();
    }
    stream_->Write(next, options, &write_);
  }
  void Read() { stream_->Read(&answer_, &read_); }
  void Taken(bool ok) {
    answer_.Clear();
    if (ok) return Read();
    is_read_ = true;
    FinishIfOver();
  }
  void FinishIfOver() {
    if (is_read_ && !is_writing_) stream_->Finish(&status_, &finish_);
  }
  void Finished(bool) { has_ended_ = true; }

  const std::vector<grpc::ByteBuffer> messages_;
  const HeldManner manner_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  Tag write_{this, &HeldCall::Written};
  Tag read_{this, &HeldCall::Taken};
  Tag finish_{this, &HeldCall::Finished};
  size_t sent_count_ = 0;
  bool is_writing_ = false;
  bool is_read_ = false;
  bool has_ended_ = false;
  grpc::ByteBuffer answer_;
  grpc::Status status_;
};

std::string HeldPathOf(const MethodDescriptor& method) {
  return absl::StrCat("/", method.service()->full_name(), "/", method.name());
}

grpc::ByteBuffer BufferOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

/// Those of all rpcs, and some of tensors that are in the requests, as large as
/// they may be there.
const std::vector<SampleCall>& HeldSamples() {
  static const auto& all = *[] {
    auto* const calls = new std::vector<SampleCall>(SampleCalls());
    calls->insert(
        calls->end(),
        {{"ComputeService.Permute",
          {R"(session: "$A" d { inline: true modes: 1 }
              a { modes: 1 inline { element_type: ELEMENT_TYPE_INT32
                                    layout { extents: 262144 } } })"}},
         {"ComputeService.Elementwise",
          {R"(session: "$A" d { modes: 1 } op_abc: BINARY_OPERATOR_ADD
              a { modes: 1 inline { element_type: ELEMENT_TYPE_FLOAT32
                                    layout { extents: 131072 } } }
              c { modes: 1 inline { element_type: ELEMENT_TYPE_FLOAT32
                                    layout { extents: 131072 } } })"}},
         {"ComputeService.ExecuteStream",
          {R"(batch { permute {
                session: "$A" d { inline: true modes: 1 }
                a { modes: 1 inline { element_type: ELEMENT_TYPE_INT32
                                      layout { extents: 262144 } } } } }
              batch { permute {
                session: "$A" d { modes: 1 }
                a { modes: 1 inline { element_type: ELEMENT_TYPE_INT32
                                      layout { extents: 262144 } } } } })",
           R"(reduce { session: "$A" d { inline: true }
                op: BINARY_OPERATOR_ADD
                a { modes: 1 inline { element_type: ELEMENT_TYPE_FLOAT32
                                      layout { extents: 262144 } } } })"}},
         {"PlanCacheService.LoadPlanCache", {R"(data: "snapshot")", "", ""}}});
    return calls;
  }();
  return all;
}

/// Calls `change` with `message` and all in it.
template <typename F>
void ForEachMessage(Message& message, F change) {
  change(message);
  const auto& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      ForEachMessage(*reflection.MutableMessage(&message, field), change);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      ForEachMessage(*reflection.MutableRepeatedMessage(&message, field, i),
                     change);
    }
  }
}

/// Sets what a text would have to say at length.
void FillIn(Message& message) {
  if (auto* const chunk = dynamic_cast<v1::UploadTensorRequest*>(&message)) {
    chunk->set_crc32c(core::Crc32c(chunk->data()));
  }
  auto* const part = dynamic_cast<v1::LoadPlanCacheRequest*>(&message);
  if (part != nullptr && part->data() == "snapshot") {
    part->set_data(server::MakeSnapshot(core::PlanCache({}), "fuzz").bytes);
  }
  auto* const tensor = dynamic_cast<v1::InlineTensor*>(&message);
  if (tensor != nullptr && tensor->data().empty()) {
    const auto count = static_cast<size_t>(tensor->layout().extents(0));
    tensor->set_data(std::string(4 * count, 'i'));
  }
}

/// Has the server choose names of what is made, as several calls make it.
void ClearIds(Message& message) {
  const auto& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    if (absl::EndsWith(type.field(i)->name(), "_id")) {
      message.GetReflection()->ClearField(&message, type.field(i));
    }
  }
}

/// Who asks.
struct Asker {
  std::string bearer;
  std::string tenant;  // whose sessions the requests name
  std::string name;
};

/// A file of tokens, and what is proved by it.
class Identities {
 public:
  Identities() {
    const std::string path =
        (std::filesystem::temp_directory_path() / "tensord-fuzz-XXXXXX")
            .string();
    std::string name = path;
    const int file = mkstemp(name.data());
    Check(file >= 0, "there is a file for tokens", path);
    close(file);
    std::ofstream(name) << server::FormatToken(user_.token)
                        << server::FormatToken(operator_.token);
    authenticator_ = server::Authenticator::Create({.tokens = name}).value();
    std::filesystem::remove(name);
  }
  server::Authenticator& authenticator() { return *authenticator_; }
  std::array<Asker, 4> askers() const {
    return {Asker{user_.secret, "chem", "a user"},
            Asker{operator_.secret, "ops", "an operator"},
            Asker{"", "chem", "a stranger"},
            Asker{"tensord_0_guess", "chem", "who guesses"}};
  }

 private:
  const server::NewToken user_ =
      *server::MakeToken("chem", "user", absl::InfiniteFuture());
  const server::NewToken operator_ =
      *server::MakeToken("ops", "operator", absl::InfiniteFuture());
  std::unique_ptr<server::Authenticator> authenticator_;
};

}  // namespace

/// Of one server, an input at a time.
class HeldMemory::Clients {
 public:
  void Try(Input input);

 private:
  /// What all calls of an input have in common.
  struct Asked {
    const Asker& asker;
    const MethodDescriptor& method;
    std::vector<grpc::ByteBuffer> messages;
    HeldManner manner;
    int64_t bytes = 0;  // of all messages
    size_t call_count = 0;
  };

  void Connect();
  std::string Open(const Asker& asker);
  void Prepare(const Asker& asker, const Names& names);
  std::vector<std::unique_ptr<Message>> MessagesOf(const SampleCall& sample,
                                                   const Names& names);
  Asked Choose(Input& input, const Asker& asker, const SampleCall& sample,
               const Names& names);
  void Begin(const Asked& asked);
  /// Waits for an event for a while. False: there was none.
  bool Poll();
  void AwaitRest();
  void AwaitEnds();
  /// Waits until `is_so`; aborts with `claim` if that takes too long.
  template <typename F>
  void Await(absl::string_view claim, F is_so);
  void Calm();
  void CheckHeld(const Asked& asked, int64_t before);
  void CheckNothingIsLeft(const Asked& asked, int64_t before);
  std::string Describe(const Asked& asked) const;

  int64_t counted_bytes() {
    return server_.sessions().host_memory()->used_bytes();
  }

  Identities identities_;
  const std::array<Asker, 4> askers_ = identities_.askers();
  testing::InProcessServer server_{
      {.engine = {.cpu_threads = 1,
                  .memory_limit_bytes = int64_t{64} << 20,
                  .queue_limit = 64,
                  .longest_operation = absl::Milliseconds(100)},
       .sessions = {.max_sessions = 64, .host_bytes = int64_t{1} << 30},
       .authenticator = &identities_.authenticator()}};
  grpc::CompletionQueue queue_;
  OtherThreads others_;
  // Of this input.
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  std::vector<std::unique_ptr<HeldCall>> calls_;
};

void HeldMemory::Clients::Connect() {
  while (stubs_.size() < kConnections) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // What the client itself has is little then.
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, 8192);
    // With them gRPC, as Debian has it, never ends a read that is cancelled
    // amid a message.
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    stubs_.push_back(
        std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
            server_.address(), grpc::InsecureChannelCredentials(), arguments)));
  }
}

std::string HeldMemory::Clients::Open(const Asker& asker) {
  const auto session = server_.sessions().Open(
      {.tenant = asker.tenant, .peer = "fuzz", .holder = "fuzz"});
  Check(session.ok(), "a session is opened", session.status().ToString());
  return (*session)->name();
}

std::vector<std::unique_ptr<Message>> HeldMemory::Clients::MessagesOf(
    const SampleCall& sample, const Names& names) {
  const MethodDescriptor& method = MethodOf(sample.method);
  std::vector<std::unique_ptr<Message>> messages;
  for (const char* const text : sample.messages) {
    messages.push_back(NewMessage(*method.input_type()));
    Check(TextFormat::ParseFromString(absl::StrReplaceAll(text, names),
                                      messages.back().get()),
          "a sample is a message", text);
    ForEachMessage(*messages.back(), FillIn);
  }
  return messages;
}

/// Makes what the requests of the samples name.
void HeldMemory::Clients::Prepare(const Asker& asker, const Names& names) {
  size_t i = 0;
  for (const SampleCall& sample : SampleCalls()) {
    const std::string name = sample.method;
    if (!absl::EndsWith(name, ".CreateTensor") &&
        !absl::EndsWith(name, ".UploadTensor") &&
        !absl::EndsWith(name, ".CreateView") &&
        !absl::EndsWith(name, ".CreatePlan") &&
        !absl::EndsWith(name, ".CreateProgram")) {
      continue;
    }
    std::vector<grpc::ByteBuffer> messages;
    for (const auto& message : MessagesOf(sample, names)) {
      messages.push_back(BufferOf(message->SerializeAsString()));
    }
    calls_.push_back(std::make_unique<HeldCall>(
        std::move(messages), HeldManner{}, asker.bearer, ""));
    calls_.back()->Begin(*stubs_[i++ % stubs_.size()],
                         HeldPathOf(MethodOf(name)), queue_);
    AwaitEnds();
  }
}

HeldMemory::Clients::Asked HeldMemory::Clients::Choose(Input& input,
                                                       const Asker& asker,
                                                       const SampleCall& sample,
                                                       const Names& names) {
  constexpr size_t kMostBytes = size_t{7} << 19;
  constexpr size_t kSizes[] = {size_t{1} << 20, size_t{2} << 20, kMostBytes};
  Asked asked{.asker = asker, .method = MethodOf(sample.method)};
  const size_t size = kSizes[input.Below(std::size(kSizes))];
  const uint8_t how = input.Next();
  asked.call_count = 5 + how % 4;
  const bool is_unary =
      !asked.method.client_streaming() && !asked.method.server_streaming();
  asked.manner = {.is_open = (how & 0x20) != 0,
                  .is_unread = (how & 0x40) != 0,
                  // That one lasts as long as it is asked to.
                  .is_cancelled = (how & 0x80) != 0 ||
                                  asked.method.name() == "RecordTimeline",
                  .is_once = is_unary && (how & 0x10) != 0};
  const auto messages = MessagesOf(sample, names);
  for (const auto& message : messages) ForEachMessage(*message, ClearIds);
  const size_t which = input.Below(messages.size());
  for (size_t i = 0; i < messages.size(); ++i) {
    std::string bytes = messages[i]->SerializeAsString();
    if (i == which) {
      bytes += LargeField(*asked.method.input_type(), input,
                          std::min(size, kMostBytes - bytes.size()));
    }
    asked.bytes += std::ssize(bytes);
    asked.messages.push_back(BufferOf(bytes));
  }
  return asked;
}

void HeldMemory::Clients::Begin(const Asked& asked) {
  for (size_t i = 0; i < asked.call_count; ++i) {
    calls_.push_back(std::make_unique<HeldCall>(asked.messages, asked.manner,
                                                asked.asker.bearer,
                                                absl::StrCat("held-", i)));
    calls_.back()->Begin(*stubs_[i % stubs_.size()], HeldPathOf(asked.method),
                         queue_);
  }
}

bool HeldMemory::Clients::Poll() {
  void* tag = nullptr;
  bool ok = false;
  const auto until =
      std::chrono::system_clock::now() + std::chrono::milliseconds(1);
  if (queue_.AsyncNext(&tag, &ok, until) != grpc::CompletionQueue::GOT_EVENT) {
    return false;
  }
  static_cast<HeldCall::Tag*>(tag)->Fire(ok);
  return true;
}

void HeldMemory::Clients::AwaitRest() {
  const absl::Time deadline = absl::Now() + kPatience;
  while (Poll() || !others_.HaveRested()) {
    Check(absl::Now() < deadline, "all comes to rest");
  }
}

void HeldMemory::Clients::AwaitEnds() {
  Await("calls end", [&] {
    return std::ranges::all_of(
        calls_, [](const auto& call) { return call->has_ended(); });
  });
  calls_.clear();
}

template <typename F>
void HeldMemory::Clients::Await(absl::string_view claim, F is_so) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (!is_so()) {
    Poll();
    Check(absl::Now() < deadline, claim);
  }
}

/// Has gRPC forget how much once came at a time.
///
/// It makes ready to read up to two and a half times what came of a connection
/// without a pause, which is a matter of chance, and less only once that is
/// used up and little came for long.
void HeldMemory::Clients::Calm() {
  constexpr size_t kCalls = 16;
  const grpc::ByteBuffer message = BufferOf(std::string(size_t{1} << 18, 'c'));
  for (const auto& stub : stubs_) {
    for (size_t i = 0; i < kCalls; ++i) {
      HeldCall call({message}, HeldManner{}, "", "");
      call.Begin(*stub, "/tensord.fuzz.Nothing/Calm", queue_);
      Await("a call of nothing ends", [&] { return call.has_ended(); });
    }
  }
}

std::string HeldMemory::Clients::Describe(const Asked& asked) const {
  std::string text =
      absl::StrCat(asked.call_count, " calls of ", asked.method.full_name(),
                   " by ", asked.asker.name, ", of ", asked.bytes,
                   " bytes each", asked.manner.is_open ? ", open" : "",
                   asked.manner.is_unread ? ", unread" : "",
                   asked.manner.is_once ? ", at most once" : "");
  for (const auto& call : calls_) {
    if (!call->has_ended()) continue;
    absl::StrAppend(&text, "; ended with ", call->status().error_code(), " ",
                    call->status().error_message().substr(0, 200));
    break;
  }
  return text;
}

void HeldMemory::Clients::CheckHeld(const Asked& asked, int64_t before) {
  // Device memory, which is mapped, is not of these, nor counted here.
  constexpr int64_t kMostUncounted = kConnections * kBufferBytes + kRestBytes;
  int64_t held = 0;
  int64_t counted = 0;
  // What is let go on another thread may be seen a little later.
  for (int looks = 0; looks < 100; ++looks) {
    if (looks > 0) Calm();
    AwaitRest();
    counted = counted_bytes();
    held = AllocatedBytes() - before;
    if (held <= kMostFactor * counted + kMostUncounted) return;
  }
  Check(false, "what is held is counted",
        absl::StrCat(held, " bytes are held and ", counted, " counted of ",
                     Describe(asked)));
}

void HeldMemory::Clients::CheckNothingIsLeft(const Asked& asked,
                                             int64_t before) {
  const absl::Time deadline = absl::Now() + kPatience;
  std::string left;
  int64_t held = 0;
  do {
    for (const auto& session : server_.sessions().List()) {
      server_.sessions().Close(session->name()).IgnoreError();
    }
    server_.engine().plans().Clear(true);
    left = LeftOver(server_);
    held = AllocatedBytes() - before;
    if (left.empty() && held <= kRestBytes) return;
    Poll();
  } while (absl::Now() < deadline);
  Check(false, "nothing is left",
        absl::StrCat(left, held, " bytes of ", Describe(asked)));
}

void HeldMemory::Clients::Try(Input input) {
  const Asker& asker = askers_[input.Below(askers_.size())];
  const SampleCall& sample = HeldSamples()[input.Below(HeldSamples().size())];
  AwaitRest();
  const int64_t empty = AllocatedBytes();
  Connect();
  const Names names = {{"$A", Open(asker)}, {"$B", Open(asker)}};
  Prepare(asker.name == "an operator" ? askers_[1] : askers_[0], names);
  const Asked asked = Choose(input, asker, sample, names);
  testing::Blocker blocker(server_.device().worker());
  AwaitRest();
  // The messages, which all calls share, are the client's.
  const int64_t before = empty + asked.bytes;
  Begin(asked);
  CheckHeld(asked, before);
  blocker.Release();
  for (const auto& call : calls_) call->End();
  AwaitEnds();
  stubs_.clear();
  CheckNothingIsLeft(asked, before);
}

HeldMemory::HeldMemory() : clients_(std::make_unique<Clients>()) {}

HeldMemory::~HeldMemory() = default;

void HeldMemory::Try(Input input) { clients_->Try(input); }

}  // namespace tensord::fuzz
