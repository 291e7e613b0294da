// Whatever a request is made of to take as much memory as possible: it takes no
// more than what is counted for it before it is parsed.
//
// An input says which rpc it is for and what fields the request has, one in the
// other, again and again.
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>
#include <malloc.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/wire_format_lite.h"
#include "proto/wire/message_shape.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/service_calls.h"

extern "C" [[gnu::weak]] size_t __sanitizer_get_current_allocated_bytes();

namespace tensord::fuzz {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

// What it logs of malformed names would be all that one sees.
[[maybe_unused]] const auto kLogged = google::protobuf::SetLogHandler(nullptr);

// So long is what the fields of an input are repeated to.
constexpr size_t kRequestBytes = size_t{64} << 10;
// What the allocator takes for itself, and what is made once.
constexpr int64_t kSlack = 4096;

int64_t AllocatedBytes() {
  if (__sanitizer_get_current_allocated_bytes != nullptr) {
    return static_cast<int64_t>(__sanitizer_get_current_allocated_bytes());
  }
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

/// A field of `type`, or an unknown one, with others in it.
std::string FieldFor(const Descriptor* type, Input& input, int depth) {
  const int count = type == nullptr ? 0 : type->field_count();
  const size_t which = input.Below(static_cast<size_t>(count) + 2);
  const FieldDescriptor* const field =
      which < static_cast<size_t>(count) ? type->field(static_cast<int>(which))
                                         : nullptr;
  int number = 900 + static_cast<int>(input.Below(3));
  auto wire = static_cast<WireFormatLite::WireType>(input.Below(6));
  if (field != nullptr) {
    number = field->number();
    const auto own = WireFormatLite::WireTypeForFieldType(
        static_cast<WireFormatLite::FieldType>(field->type()));
    if (wire != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) wire = own;
  }
  std::string inner;
  if (wire == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
    const Descriptor* const inner_type =
        field == nullptr ? nullptr : field->message_type();
    for (size_t i = input.Below(4); i > 0; --i) {
      inner += depth < 6 && inner_type != nullptr
                   ? FieldFor(inner_type, input, depth + 1)
                   : std::string(input.Below(40),
                                 static_cast<char>(input.Next() % 128));
    }
  }
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  CodedOutputStream out(&stream);
  out.WriteTag(WireFormatLite::MakeTag(number, wire));
  switch (wire) {
    case WireFormatLite::WIRETYPE_VARINT:
      out.WriteVarint64(input.Next());
      break;
    case WireFormatLite::WIRETYPE_FIXED64: out.WriteLittleEndian64(1); break;
    case WireFormatLite::WIRETYPE_FIXED32: out.WriteLittleEndian32(1); break;
    case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
      out.WriteVarint32(static_cast<uint32_t>(inner.size()));
      out.WriteString(inner);
      break;
    case WireFormatLite::WIRETYPE_START_GROUP:
      out.WriteTag(
          WireFormatLite::MakeTag(number, WireFormatLite::WIRETYPE_END_GROUP));
      break;
    default: break;  // an end that has no beginning
  }
  out.Trim();
  return bytes;
}

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

void CheckRequest(const MethodDescriptor& method, const std::string& bytes) {
  const Descriptor& type = *method.input_type();
  const std::unique_ptr<Message> message = NewMessage(type);
  const grpc::Slice slice(bytes);
  const auto size =
      wire::MessageShape::Of(type).Measure(grpc::ByteBuffer(&slice, 1));
  const int64_t before = AllocatedBytes();
  const bool is_message = message->ParseFromString(bytes);
  const int64_t taken = AllocatedBytes() - before;
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
  const auto& method = *Methods()[input.Below(Methods().size())];
  std::string fields;
  do {
    fields += FieldFor(method.input_type(), input, 0);
  } while (!input.is_empty() && fields.size() < kRequestBytes);
  std::string request;
  while (request.size() + fields.size() <= kRequestBytes) request += fields;
  CheckRequest(method, request + fields);
  return 0;
}
