// What a message will take in memory, told from its bytes.
#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/statusor.h"

namespace tensord::wire {

/// What was found in a message's bytes.
struct MessageSize {
  int64_t parsed_bytes = 0;  // that it will take in memory, at most
  /// Those of the messages in it, too, and elements of packed ones.
  int64_t field_count = 0;
  /// Whether all was looked at: there are no more fields than were asked for.
  bool is_complete = true;
};

/// A type of messages as a parser's memory sees it. Many short fields take far
/// more there than on the wire: an unknown one of 2 bytes takes 64.
///
/// Threads   safe for concurrent use.
/// Lifetime  for good.
class MessageShape {
 public:
  /// That of a type of the generated code; the first time makes it.
  static const MessageShape& Of(const google::protobuf::Descriptor& type);

  /// Looks at a message without parsing it, at `most_fields` fields at most.
  ///
  /// Errors  INVALID_ARGUMENT: no parser takes it.
  absl::StatusOr<MessageSize> Measure(
      const grpc::ByteBuffer& message,
      int64_t most_fields = std::numeric_limits<int64_t>::max()) const;

 private:
  struct Field {
    enum class Kind : uint8_t { kUnknown, kScalar, kText, kMessage };
    Kind kind = Kind::kUnknown;
    uint8_t wire_type = 0xff;  // of one element; that of unknown ones is none
    bool is_packable = false;
    int64_t each_bytes = 0;  // that one, with nothing in it, takes in memory
    const MessageShape* message = nullptr;
  };
  class Walk;

  MessageShape() = default;
  /// `message` is the shape of its own type, if it has one.
  static Field FieldOf(const google::protobuf::FieldDescriptor& field,
                       const MessageShape* message);

  int64_t object_bytes_ = 0;               // of an empty one
  std::vector<Field> fields_ = {Field()};  // (number); 0: what others are
};

}  // namespace tensord::wire
