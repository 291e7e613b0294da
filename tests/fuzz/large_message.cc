#include "tests/fuzz/large_message.h"

#include <cstdint>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/wire_format_lite.h"

namespace tensord::fuzz {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

// Messages in each other are so many at most; some types have themselves.
constexpr int kDeepest = 6;

WireFormatLite::WireType OwnWireType(const FieldDescriptor& field) {
  return WireFormatLite::WireTypeForFieldType(
      static_cast<WireFormatLite::FieldType>(field.type()));
}

std::string Field(int number, WireFormatLite::WireType wire, uint8_t value,
                  const std::string& inner) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  CodedOutputStream out(&stream);
  out.WriteTag(WireFormatLite::MakeTag(number, wire));
  switch (wire) {
    case WireFormatLite::WIRETYPE_VARINT: out.WriteVarint64(value); break;
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

std::string Delimited(int number, const std::string& inner) {
  return Field(number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED, 0, inner);
}

std::string UnknownField(Input& input, size_t bytes) {
  switch (input.Below(5)) {
    case 0: return Delimited(900, std::string(bytes, 'u'));
    case 1: return Delimited(900, std::string(input.Below(256), 'u'));
    case 2: return Field(900, WireFormatLite::WIRETYPE_FIXED64, 0, "");
    case 3: return Field(900, WireFormatLite::WIRETYPE_FIXED32, 0, "");
    default: return FieldFor(nullptr, input);
  }
}

}  // namespace

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
    if (wire != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      wire = OwnWireType(*field);
    }
  }
  std::string inner;
  if (wire == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
    const Descriptor* const inner_type =
        field == nullptr ? nullptr : field->message_type();
    for (size_t i = input.Below(4); i > 0; --i) {
      inner += depth < kDeepest && inner_type != nullptr
                   ? FieldFor(inner_type, input, depth + 1)
                   : std::string(input.Below(40),
                                 static_cast<char>(input.Next() % 128));
    }
  }
  const bool has_value = wire == WireFormatLite::WIRETYPE_VARINT;
  return Field(number, wire, has_value ? input.Next() : 0, inner);
}

std::string Repeated(const std::string& piece, size_t bytes) {
  std::string all = piece;
  all.reserve(bytes);
  while (all.size() + piece.size() <= bytes) all += piece;
  return all;
}

std::string LargeField(const Descriptor& type, Input& input, size_t bytes,
                       int depth) {
  const auto count = static_cast<size_t>(type.field_count());
  // What a type does not know is refused by nobody: often that.
  const size_t which = input.Below(count + 2 + count / 4);
  if (which >= count) return Repeated(UnknownField(input, bytes), bytes);
  const FieldDescriptor& field = *type.field(static_cast<int>(which));
  const uint8_t how = input.Next();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    const Descriptor& inner = *field.message_type();
    if (how % 4 != 0 && depth < kDeepest) {
      return Delimited(field.number(),
                       LargeField(inner, input, bytes, depth + 1));
    }
    const std::string padding(input.Below(256), 'p');
    return Repeated(
        Delimited(
            field.number(),
            how < 64 ? "" : FieldFor(&inner, input) + Delimited(900, padding)),
        bytes);
  }
  const auto letter = static_cast<char>('a' + how % 26);
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    const size_t length = how % 2 == 0 ? bytes : input.Below(256);
    return Repeated(Delimited(field.number(), std::string(length, letter)),
                    bytes);
  }
  if (field.is_repeated() && how % 4 != 0) {  // packed
    return Delimited(field.number(), std::string(bytes & ~size_t{7}, letter));
  }
  return Repeated(Field(field.number(), OwnWireType(field), how, ""), bytes);
}

}  // namespace tensord::fuzz
