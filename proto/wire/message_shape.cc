#include "proto/wire/message_shape.h"

#include <google/protobuf/message.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace tensord::wire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// As deep as protobuf's parsers go.
constexpr int kMostDepth = 100;

// What is allocated takes so much more than its size: what the allocator notes,
// and what it rounds up.
constexpr int64_t kAllocation = 24;
// Arrays grow by doubling.
constexpr int64_t kGrowth = 2;
constexpr int64_t kPointer = kGrowth * int64_t{sizeof(void*)};
// Without a message's unknown fields there is no set of them.
constexpr int64_t kUnknownSet = 64;
// A number, or a pointer to something longer.
constexpr int64_t kUnknownField = kGrowth * 16;

int64_t TextBytes(int64_t length) {
  constexpr int64_t kInPlace = 15;  // of shorter ones
  const auto object = int64_t{sizeof(std::string)} + kAllocation;
  return length <= kInPlace ? object : object + length + 1 + kAllocation;
}

uint8_t ElementBytes(FieldDescriptor::CppType type) {
  switch (type) {
    case FieldDescriptor::CPPTYPE_BOOL: return sizeof(bool);
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_ENUM: return sizeof(int32_t);
    case FieldDescriptor::CPPTYPE_FLOAT: return sizeof(float);
    default: return sizeof(int64_t);
  }
}

absl::Status NoMessage(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

}  // namespace

/// One message's bytes, looked at from the beginning to the end.
class MessageShape::Walk {
 public:
  Walk(CodedInputStream& in, int64_t most_fields)
      : in_(in), most_fields_(most_fields) {}

  /// The fields up to the end of the message or, in a group, to `end_tag`.
  absl::Status Look(const MessageShape& shape, int depth, uint32_t end_tag) {
    if (depth > kMostDepth) return NoMessage("messages are nested too deep");
    bool has_unknown = false;
    while (true) {
      const uint32_t tag = in_.ReadTag();
      if (tag == 0) {
        return in_.ConsumedEntireMessage() && end_tag == 0
                   ? absl::OkStatus()
                   : NoMessage("a tag is none");
      }
      if (end_tag != 0 && tag == end_tag) return absl::OkStatus();
      Count(1);
      if (!size_.is_complete) return absl::OkStatus();
      const auto number = static_cast<size_t>(tag >> 3);
      const Field field =
          number < shape.fields_.size() ? shape.fields_[number] : Field();
      const auto type = static_cast<uint8_t>(tag & 7);
      absl::Status looked;
      if (field.kind == Field::Kind::kUnknown ||
          (type != field.wire_type && !IsPacked(field, type))) {
        if (!has_unknown) size_.parsed_bytes += kUnknownSet;
        has_unknown = true;
        looked = LookAtUnknown(tag, depth);
      } else {
        looked = LookAt(field, type, depth);
      }
      if (!looked.ok() || !size_.is_complete) return looked;
    }
  }

  const MessageSize& size() const { return size_; }

 private:
  enum WireType : uint8_t {
    kVarint,
    kFixed64,
    kLength,
    kGroup,
    kEnd,
    kFixed32
  };

  void Count(int64_t fields) {
    size_.field_count += fields;
    size_.is_complete = size_.field_count <= most_fields_;
  }

  static bool IsPacked(const Field& field, uint8_t type) {
    return field.kind == Field::Kind::kScalar && field.is_repeated &&
           type == kLength;
  }

  absl::Status LookAt(const Field& field, uint8_t type, int depth) {
    if (type != kLength) {
      if (field.is_repeated)
        size_.parsed_bytes += kGrowth * field.element_bytes;
      return Skip(type);
    }
    int length = 0;
    if (!Length(&length)) return NoMessage("a length is none");
    switch (field.kind) {
      case Field::Kind::kText:
        size_.parsed_bytes +=
            TextBytes(length) + (field.is_repeated ? kPointer : 0);
        return SkipBytes(length);
      case Field::Kind::kMessage: {
        size_.parsed_bytes += field.message->object_bytes_ + kAllocation +
                              (field.is_repeated ? kPointer : 0);
        const CodedInputStream::Limit outer = in_.PushLimit(length);
        const absl::Status looked = Look(*field.message, depth + 1, 0);
        in_.PopLimit(outer);
        return looked;
      }
      default: return LookAtPacked(field, length);
    }
  }

  absl::Status LookAtPacked(const Field& field, int length) {
    if (field.wire_type != kVarint) {
      const int bytes = field.wire_type == kFixed64 ? 8 : 4;
      size_.parsed_bytes += kGrowth * field.element_bytes * (length / bytes);
      Count(length / bytes);
      return SkipBytes(length);
    }
    const void* data = nullptr;
    int there = 0;
    while (length > 0) {
      if (!in_.GetDirectBufferPointer(&data, &there)) return Short();
      there = std::min(there, length);
      const auto* const bytes = static_cast<const uint8_t*>(data);
      const auto ends = std::count_if(bytes, bytes + there,
                                      [](uint8_t byte) { return byte < 0x80; });
      size_.parsed_bytes += kGrowth * field.element_bytes * ends;
      Count(ends);
      if (!in_.Skip(there)) return Short();
      length -= there;
    }
    return absl::OkStatus();
  }

  absl::Status LookAtUnknown(uint32_t tag, int depth) {
    size_.parsed_bytes += kUnknownField;
    switch (tag & 7) {
      case kLength: {
        int length = 0;
        if (!Length(&length)) return NoMessage("a length is none");
        size_.parsed_bytes += TextBytes(length);
        return SkipBytes(length);
      }
      case kGroup: {
        static const MessageShape kNothing;
        size_.parsed_bytes += kUnknownSet;
        return Look(kNothing, depth + 1, tag + 1);
      }
      default: return Skip(tag & 7);
    }
  }

  absl::Status Skip(uint32_t type) {
    uint64_t number = 0;
    switch (type) {
      case kVarint:
        return in_.ReadVarint64(&number) ? absl::OkStatus() : Short();
      case kFixed64: return SkipBytes(8);
      case kFixed32: return SkipBytes(4);
      default: return NoMessage("a group ends that has not begun");
    }
  }

  /// Of something that ends where the message does, at the latest.
  bool Length(int* length) {
    return in_.ReadVarintSizeAsInt(length) && *length <= in_.BytesUntilLimit();
  }
  absl::Status SkipBytes(int count) {
    return in_.Skip(count) ? absl::OkStatus() : Short();
  }
  static absl::Status Short() { return NoMessage("a field is cut off"); }

  CodedInputStream& in_;
  const int64_t most_fields_;
  MessageSize size_;
};

MessageShape::Field MessageShape::FieldOf(const FieldDescriptor& field) {
  Field result;
  result.is_repeated = field.is_repeated();
  const auto type = static_cast<WireFormatLite::FieldType>(field.type());
  result.wire_type =
      static_cast<uint8_t>(WireFormatLite::WireTypeForFieldType(type));
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      result.kind = Field::Kind::kMessage;
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      result.kind = Field::Kind::kText;
      break;
    default:
      result.kind = Field::Kind::kScalar;
      result.element_bytes = ElementBytes(field.cpp_type());
  }
  return result;
}

const MessageShape& MessageShape::Of(const Descriptor& type) {
  static absl::Mutex mutex;
  static auto& shapes =
      *new std::map<const Descriptor*, std::unique_ptr<MessageShape>>;
  struct Making {
    static MessageShape& Make(const Descriptor& type) {
      std::unique_ptr<MessageShape>& place = shapes[&type];
      if (place != nullptr) return *place;
      place.reset(new MessageShape);
      MessageShape& shape = *place;
      // Moves with the map's nodes never; messages may hold their own type.
      shape.object_bytes_ = static_cast<int64_t>(
          google::protobuf::MessageFactory::generated_factory()
              ->GetPrototype(&type)
              ->SpaceUsedLong());
      for (int i = 0; i < type.field_count(); ++i) {
        const FieldDescriptor& field = *type.field(i);
        const auto number = static_cast<size_t>(field.number());
        Field made = FieldOf(field);
        if (field.message_type() != nullptr) {
          made.message = &Make(*field.message_type());
        }
        if (shape.fields_.size() <= number) shape.fields_.resize(number + 1);
        shape.fields_[number] = made;
      }
      return shape;
    }
  };
  const absl::MutexLock lock(&mutex);
  return Making::Make(type);
}

absl::StatusOr<MessageSize> MessageShape::Measure(
    const grpc::ByteBuffer& message, int64_t most_fields) const {
  const auto measure =
      [&](CodedInputStream& in) -> absl::StatusOr<MessageSize> {
    in.PushLimit(static_cast<int>(message.Length()));
    Walk walk(in, most_fields);
    const absl::Status looked = walk.Look(*this, /*depth=*/0, /*end_tag=*/0);
    if (!looked.ok()) return looked;
    MessageSize size = walk.size();
    size.parsed_bytes += object_bytes_;
    return size;
  };
  if (grpc::Slice slice; message.TrySingleSlice(&slice).ok()) {
    CodedInputStream in(slice.begin(), static_cast<int>(slice.size()));
    return measure(in);
  }
  grpc::ByteBuffer same = message;
  grpc::ProtoBufferReader slices(&same);
  CodedInputStream in(&slices);
  return measure(in);
}

}  // namespace tensord::wire
