#include "proto/wire/message_shape.h"

#include <google/protobuf/io/zero_copy_stream.h>
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
using google::protobuf::io::ZeroCopyInputStream;

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

// A short text.
constexpr int64_t kTextBytes = int64_t{sizeof(std::string)} + kAllocation;

// What one of that length takes beside.
int64_t MoreTextBytes(int64_t length) {
  constexpr int64_t kInPlace = 15;
  return length <= kInPlace ? 0 : length + 1 + kAllocation;
}

// How a field begins, as its tag has it.
enum WireType : uint8_t {
  kVarint,
  kFixed64,
  kLength,
  kGroup,
  kEnd,
  kFixed32,
};

int64_t ElementBytes(FieldDescriptor::CppType type) {
  switch (type) {
    case FieldDescriptor::CPPTYPE_BOOL: return sizeof(bool);
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_ENUM: return sizeof(int32_t);
    case FieldDescriptor::CPPTYPE_FLOAT: return sizeof(float);
    default: return sizeof(int64_t);
  }
}

/// Where one is in a message's bytes, which may be in several pieces.
class Cursor {
 public:
  /// At the first piece; `more` has the others, and none if it is null.
  Cursor(const void* data, int size, ZeroCopyInputStream* more) : more_(more) {
    Take(data, size);
  }

  /// How many bytes are behind it.
  int64_t position() const { return passed_ + (at_ - begin_); }

  bool ReadVarint(uint64_t& value) {
    if (at_ == end_ || *at_ >= kContinued) return ReadLongVarint(value);
    value = *at_++;
    return true;
  }
  bool Skip(int64_t count) {
    while (count > end_ - at_) {
      count -= end_ - at_;
      if (!Next()) return false;
    }
    at_ += count;
    return true;
  }
  /// Skips so many bytes; `ends` are those of them that end a varint.
  bool SkipVarints(int64_t count, int64_t& ends) {
    ends = 0;
    while (count > 0) {
      if (at_ == end_ && !Next()) return false;
      const int64_t here = std::min(count, int64_t{end_ - at_});
      ends += std::count_if(at_, at_ + here,
                            [](uint8_t byte) { return byte < kContinued; });
      at_ += here;
      count -= here;
    }
    return true;
  }

 private:
  static constexpr uint8_t kContinued = 0x80;

  void Take(const void* data, int size) {
    begin_ = at_ = static_cast<const uint8_t*>(data);
    end_ = begin_ + size;
  }
  bool Next() {
    const void* data = nullptr;
    int size = 0;
    if (more_ == nullptr || !more_->Next(&data, &size)) return false;
    passed_ += end_ - begin_;
    Take(data, size);
    return true;
  }
  bool ReadLongVarint(uint64_t& value) {
    constexpr int kBits = 7;
    value = 0;
    for (int shift = 0; shift < 64; shift += kBits) {
      while (at_ == end_) {
        if (!Next()) return false;
      }
      const uint8_t byte = *at_++;
      value |= static_cast<uint64_t>(byte & ~kContinued) << shift;
      if (byte < kContinued) return true;
    }
    return false;
  }

  ZeroCopyInputStream* const more_;
  const uint8_t* begin_ = nullptr;
  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
  int64_t passed_ = 0;  // in earlier pieces
};

}  // namespace

/// One message's bytes, looked at from the beginning to the end. What looks at
/// a part returns false when no more is to be looked at: why, is in problem(),
/// or that are the fields.
class MessageShape::Walk {
 public:
  Walk(const Cursor& at, int64_t most_fields)
      : at_(at), most_fields_(most_fields) {}

  /// The fields up to `end` or, in a group, to `end_tag`.
  bool Look(const MessageShape& shape, int64_t end, int depth,
            uint32_t end_tag) {
    if (depth > kMostDepth) return Fail("messages are nested too deep");
    bool has_unknown = false;
    while (at_.position() < end) {
      uint64_t read = 0;
      if (!at_.ReadVarint(read)) return Fail("a tag is none");
      const auto tag = static_cast<uint32_t>(read);
      const size_t number = tag >> 3;
      if (number == 0 || read >> 35 != 0) return Fail("a tag is none");
      if (tag == end_tag) return at_.position() <= end || FailCutOff();
      if (!Count(1)) return false;
      const Field& field = number < shape.fields_.size() ? shape.fields_[number]
                                                         : shape.fields_[0];
      const auto type = static_cast<uint8_t>(tag & 7);
      bool is_good = false;
      if (type == field.wire_type) [[likely]] {
        size_.parsed_bytes += field.each_bytes;
        int64_t length = 0;
        if (field.kind == Field::Kind::kScalar) {
          is_good = SkipNumber(type);
        } else if (!ReadLength(end, length)) {
          return false;
        } else if (field.kind == Field::Kind::kText) {
          size_.parsed_bytes += MoreTextBytes(length);
          is_good = SkipBytes(length);
        } else {
          is_good = Look(*field.message, at_.position() + length, depth + 1,
                         /*end_tag=*/0);
        }
      } else if (type == kLength && field.is_packable) {
        is_good = LookAtPacked(field, end);
      } else {
        if (!has_unknown) size_.parsed_bytes += kUnknownSet;
        has_unknown = true;
        is_good = LookAtUnknown(tag, end, depth);
      }
      if (!is_good) return false;
    }
    if (end_tag != 0) return Fail("a group has no end");
    return at_.position() == end || FailCutOff();
  }

  const MessageSize& size() const { return size_; }
  /// "": there is none.
  absl::string_view problem() const { return problem_; }

 private:
  bool Fail(absl::string_view problem) {
    problem_ = problem;
    return false;
  }
  bool FailCutOff() { return Fail("a field is cut off"); }

  bool Count(int64_t fields) {
    size_.field_count += fields;
    if (size_.field_count <= most_fields_) return true;
    size_.is_complete = false;
    return false;
  }

  bool LookAtPacked(const Field& field, int64_t end) {
    int64_t length = 0;
    int64_t count = 0;
    if (!ReadLength(end, length)) return false;
    if (field.wire_type == kVarint) {
      if (!at_.SkipVarints(length, count)) return FailCutOff();
    } else {
      count = length / (field.wire_type == kFixed64 ? 8 : 4);
      if (!SkipBytes(length)) return false;
    }
    size_.parsed_bytes += field.each_bytes * count;
    return Count(count);
  }

  bool LookAtUnknown(uint32_t tag, int64_t end, int depth) {
    size_.parsed_bytes += kUnknownField;
    switch (tag & 7) {
      case kLength: {
        int64_t length = 0;
        if (!ReadLength(end, length)) return false;
        size_.parsed_bytes += kTextBytes + MoreTextBytes(length);
        return SkipBytes(length);
      }
      case kGroup: {
        static const MessageShape kNothing;
        size_.parsed_bytes += kUnknownSet;
        return Look(kNothing, end, depth + 1, tag + 1);
      }
      default: return SkipNumber(tag & 7);
    }
  }

  bool SkipNumber(uint32_t type) {
    uint64_t number = 0;
    switch (type) {
      case kVarint: return at_.ReadVarint(number) || FailCutOff();
      case kFixed64: return SkipBytes(8);
      case kFixed32: return SkipBytes(4);
      default: return Fail("a group ends that has not begun");
    }
  }

  /// Of something that ends where the message does, at the latest.
  bool ReadLength(int64_t end, int64_t& length) {
    uint64_t read = 0;
    if (!at_.ReadVarint(read)) return Fail("a length is none");
    const int64_t most = end - at_.position();
    if (most < 0 || read > static_cast<uint64_t>(most)) {
      return Fail("a length is none");
    }
    length = static_cast<int64_t>(read);
    return true;
  }
  bool SkipBytes(int64_t count) { return at_.Skip(count) || FailCutOff(); }

  Cursor at_;
  const int64_t most_fields_;
  MessageSize size_;
  absl::string_view problem_;
};

MessageShape::Field MessageShape::FieldOf(const FieldDescriptor& field,
                                          const MessageShape* message) {
  Field result;
  const auto type = static_cast<WireFormatLite::FieldType>(field.type());
  result.wire_type =
      static_cast<uint8_t>(WireFormatLite::WireTypeForFieldType(type));
  const int64_t pointer = field.is_repeated() ? kPointer : 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      result.kind = Field::Kind::kMessage;
      result.message = message;
      result.each_bytes = message->object_bytes_ + kAllocation + pointer;
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      result.kind = Field::Kind::kText;
      result.each_bytes = kTextBytes + pointer;
      break;
    default:
      result.kind = Field::Kind::kScalar;
      result.is_packable = field.is_repeated();
      if (result.is_packable) {
        result.each_bytes = kGrowth * ElementBytes(field.cpp_type());
      }
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
        const MessageShape* const message = field.message_type() == nullptr
                                                ? nullptr
                                                : &Make(*field.message_type());
        if (shape.fields_.size() <= number) shape.fields_.resize(number + 1);
        shape.fields_[number] = FieldOf(field, message);
      }
      return shape;
    }
  };
  const absl::MutexLock lock(&mutex);
  return Making::Make(type);
}

absl::StatusOr<MessageSize> MessageShape::Measure(
    const grpc::ByteBuffer& message, int64_t most_fields) const {
  const auto end = static_cast<int64_t>(message.Length());
  const auto measure = [&](Cursor at) -> absl::StatusOr<MessageSize> {
    Walk walk(at, most_fields);
    if (!walk.Look(*this, end, /*depth=*/0, /*end_tag=*/0) &&
        !walk.problem().empty()) {
      return absl::InvalidArgumentError(walk.problem());
    }
    MessageSize size = walk.size();
    size.parsed_bytes += object_bytes_;
    return size;
  };
  if (grpc::Slice slice; message.TrySingleSlice(&slice).ok()) {
    return measure({slice.begin(), static_cast<int>(slice.size()), nullptr});
  }
  grpc::ByteBuffer same = message;
  grpc::ProtoBufferReader slices(&same);
  return measure({nullptr, 0, &slices});
}

}  // namespace tensord::wire
