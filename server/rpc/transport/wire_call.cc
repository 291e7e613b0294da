#include "server/rpc/transport/wire_call.h"

#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <grpcpp/impl/codegen/create_auth_context.h>
#include <grpcpp/support/time.h>

#include <array>

namespace tensord::rpc {
namespace {

constexpr char kDetailsKey[] = "grpc-status-details-bin";

absl::string_view TextOf(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)),
          GRPC_SLICE_LENGTH(slice)};
}

grpc_slice Copied(absl::string_view text) {
  return grpc_slice_from_copied_buffer(text.data(), text.size());
}

}  // namespace

WireCall::WireCall() : details_() {
  grpc_call_details_init(&details_);
  grpc_metadata_array_init(&metadata_);
}

WireCall::~WireCall() {
  for (const Metadata* const all : {&initial_, &trailing_}) {
    for (const grpc_metadata& each : *all) grpc_slice_unref(each.value);
  }
  grpc_metadata_array_destroy(&metadata_);
  grpc_call_details_destroy(&details_);
  if (call_ != nullptr) grpc_call_unref(call_);
}

void WireCall::Await(grpc_server* server, void* method,
                     grpc::ServerCompletionQueue& queue,
                     grpc::ServerCompletionQueue& accepting, void* tag) {
  const grpc_call_error error =
      method == nullptr
          ? grpc_server_request_call(server, &call_, &details_, &metadata_,
                                     queue.cq(), accepting.cq(), tag)
          : grpc_server_request_registered_call(
                server, method, &call_, &details_.deadline, &metadata_,
                /*optional_payload=*/nullptr, queue.cq(), accepting.cq(), tag);
  GPR_ASSERT(error == GRPC_CALL_OK);
}

absl::string_view WireCall::method() const { return TextOf(details_.method); }

std::chrono::system_clock::time_point WireCall::deadline() const {
  return grpc::Timespec2Timepoint(details_.deadline);
}

bool WireCall::is_late() const {
  const gpr_timespec& end = details_.deadline;
  return gpr_time_cmp(end, gpr_inf_future(end.clock_type)) != 0 &&
         gpr_time_cmp(end, gpr_now(end.clock_type)) <= 0;
}

std::optional<absl::string_view> WireCall::Find(absl::string_view key) const {
  for (size_t i = 0; i < metadata_.count; ++i) {
    const grpc_metadata& each = metadata_.metadata[i];
    if (TextOf(each.key) == key) return TextOf(each.value);
  }
  return std::nullopt;
}

void WireCall::ForEach(
    absl::string_view key,
    absl::FunctionRef<void(absl::string_view value)> visit) const {
  for (size_t i = 0; i < metadata_.count; ++i) {
    const grpc_metadata& each = metadata_.metadata[i];
    if (TextOf(each.key) == key) visit(TextOf(each.value));
  }
}

std::string WireCall::peer() const {
  char* const peer = grpc_call_get_peer(call_);
  std::string name(peer);
  gpr_free(peer);
  return name;
}

std::shared_ptr<const grpc::AuthContext> WireCall::auth_context() const {
  return grpc::CreateAuthContext(call_);
}

const void* WireCall::connection() const {
  grpc_auth_context* const known = grpc_call_auth_context(call_);
  if (known != nullptr) grpc_auth_context_release(known);  // its own stays
  return known;
}

void WireCall::AddInitialMetadata(absl::string_view key,
                                  absl::string_view value) {
  Add(initial_, key, value);
}

void WireCall::AddTrailingMetadata(absl::string_view key,
                                   absl::string_view value) {
  Add(trailing_, key, value);
}

void WireCall::Receive(ByteBuffer& to, void* tag) {
  grpc_op op = {};
  size_t count = 0;
  receiving_.RecvMessage(&to);
  receiving_.AddOp(&op, &count);
  received_ = op.data.recv_message.recv_message;
  Start(&op, count, tag);
}

bool WireCall::TakeReceived(bool ok) {
  if (*received_ != nullptr &&
      (*received_)->data.raw.compression != GRPC_COMPRESS_NONE) {
    has_compressed_ = true;
    ok = false;
  }
  receiving_.FinishOp(&ok);
  return ok;
}

bool WireCall::has_failed() const {
  return grpc_call_failed_before_recv_message(call_) != 0;
}

void WireCall::Send(grpc_byte_buffer* message, bool more, void* tag) {
  std::array<grpc_op, 2> ops = {};
  size_t count = AddInitialMetadataTo(&ops[0]);
  grpc_op& op = ops[count++];
  op.op = GRPC_OP_SEND_MESSAGE;
  op.flags = more ? GRPC_WRITE_BUFFER_HINT : 0;
  op.data.send_message.send_message = message;
  Start(ops.data(), count, tag);
}

void WireCall::Finish(grpc_byte_buffer* message, const grpc::Status& status,
                      void* tag) {
  std::array<grpc_op, 4> ops = {};
  size_t count = AddInitialMetadataTo(&ops[0]);
  if (message != nullptr) {
    grpc_op& op = ops[count++];
    op.op = GRPC_OP_SEND_MESSAGE;
    op.flags = GRPC_WRITE_BUFFER_HINT;
    op.data.send_message.send_message = message;
  }
  if (const std::string details = status.error_details(); !details.empty()) {
    AddTrailingMetadata(kDetailsKey, details);
  }
  const std::string text = status.error_message();
  grpc_slice text_slice = Copied(text);
  grpc_op& op = ops[count++];
  op.op = GRPC_OP_SEND_STATUS_FROM_SERVER;
  auto& sent = op.data.send_status_from_server;
  sent.trailing_metadata_count = trailing_.size();
  sent.trailing_metadata = trailing_.data();
  sent.status = static_cast<grpc_status_code>(status.error_code());
  sent.status_details = text.empty() ? nullptr : &text_slice;
  if (!awaits_end_) AddEndTo(&ops[count++]);
  Start(ops.data(), count, tag);
  grpc_slice_unref(text_slice);
}

void WireCall::AwaitEnd(void* tag) {
  grpc_op op = {};
  AddEndTo(&op);
  Start(&op, 1, tag);
}

void WireCall::Cancel(const grpc::Status& status) {
  grpc_call_cancel_with_status(
      call_, static_cast<grpc_status_code>(status.error_code()),
      status.error_message().c_str(), nullptr);
}

void WireCall::Add(Metadata& to, absl::string_view key,
                   absl::string_view value) {
  grpc_metadata& added = to.emplace_back();
  added.key = grpc_slice_from_static_buffer(key.data(), key.size());
  added.value = Copied(value);
}

size_t WireCall::AddInitialMetadataTo(grpc_op* op) {
  if (sent_initial_) return 0;
  sent_initial_ = true;
  op->op = GRPC_OP_SEND_INITIAL_METADATA;
  op->data.send_initial_metadata.count = initial_.size();
  op->data.send_initial_metadata.metadata = initial_.data();
  return 1;
}

void WireCall::AddEndTo(grpc_op* op) {
  awaits_end_ = true;
  op->op = GRPC_OP_RECV_CLOSE_ON_SERVER;
  op->data.recv_close_on_server.cancelled = &was_cancelled_;
}

void WireCall::Start(const grpc_op* ops, size_t count, void* tag) {
  // It says no only to what is against its rules.
  GPR_ASSERT(grpc_call_start_batch(call_, ops, count, tag, nullptr) ==
             GRPC_CALL_OK);
}

}  // namespace tensord::rpc
