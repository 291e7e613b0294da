// Whatever a request is made of to take as much memory as possible: it takes no
// more than what is counted for it before it is parsed; and a server that is
// asked so by many calls holds at most four times what its counters say.
//
// An input says which of these it is for, which rpc, and what fields the
// request has, one in the other, again and again.
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "proto/wire/message_shape.h"
#include "tests/fuzz/allocated_bytes.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/held_memory.h"
#include "tests/fuzz/large_message.h"
#include "tests/fuzz/service_calls.h"

namespace tensord::fuzz {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

// What it logs of malformed names would be all that one sees.
[[maybe_unused]] const auto kLogged = google::protobuf::SetLogHandler(nullptr);

// So many methods an input is tried with.
constexpr size_t kMethodsOfOne = 40;
// So long is what the fields of an input are repeated to.
constexpr size_t kRequestBytes = size_t{64} << 10;
// What the allocator takes for itself, and what is made once.
constexpr int64_t kSlack = 4096;

const std::vector<const MethodDescriptor*>& Methods() {
  static const auto& all = *[] {
    auto* const methods = new std::vector<const MethodDescriptor*>;
    for (const SampleCall& call : SampleCalls()) {
      methods->push_back(&MethodOf(call.method));
    }
    return methods;
  }();
  return all;
}

/// A request of `method`, as the input has its fields.
std::string RequestOf(const MethodDescriptor& method, Input& input) {
  std::string fields;
  do {
    fields += FieldFor(method.input_type(), input);
  } while (!input.is_empty() && fields.size() < kRequestBytes);
  return Repeated(fields, kRequestBytes + fields.size());
}

void CheckRequest(const MethodDescriptor& method, Input input) {
  const Descriptor& type = *method.input_type();
  const std::string bytes = RequestOf(method, input);
  const grpc::Slice slice(bytes);
  const auto size =
      wire::MessageShape::Of(type).Measure(grpc::ByteBuffer(&slice, 1));
  bool is_message = false;
  int64_t taken = 0;
  // Threads of the server that other inputs are for may take some meanwhile.
  for (int looks = 0; looks < 100; ++looks) {
    const std::unique_ptr<Message> message = NewMessage(type);
    const int64_t before = AllocatedBytes();
    is_message = message->ParseFromString(bytes);
    taken = AllocatedBytes() - before;
    if (!size.ok() || taken <= size->parsed_bytes + kSlack) break;
  }
  if (!size.ok()) {
    Check(!is_message, "what cannot be measured is no message",
          method.full_name());
    return;
  }
  Check(taken <= size->parsed_bytes + kSlack,
        "a request takes no more than was counted",
        absl::StrCat(method.full_name(), " of ", bytes.size(), " bytes, ",
                     size->field_count, " fields: takes ", taken, ", counted ",
                     size->parsed_bytes));
}

}  // namespace
}  // namespace tensord::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord::fuzz;  // NOLINT
  Input input({data, size});
  if (input.Next() % 2 == 1) {
    // As long as the process: gRPC's threads are.
    static HeldMemory& held = *new HeldMemory;
    held.Try(input);
    return 0;
  }
  const size_t first = input.Below(Methods().size());
  for (size_t i = 0; i < kMethodsOfOne; ++i) {
    CheckRequest(*Methods()[(first + 5 * i) % Methods().size()], input);
  }
  return 0;
}
