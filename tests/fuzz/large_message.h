// Bytes of messages that are to take much.
#pragma once

#include <cstddef>
#include <string>

#include "google/protobuf/descriptor.h"
#include "tests/fuzz/service_calls.h"

namespace tensord::fuzz {

/// A field of `type`, or an unknown one, with others in it. Null: nothing is
/// known of the type.
std::string FieldFor(const google::protobuf::Descriptor* type, Input& input,
                     int depth = 0);

/// `piece` again and again, once at least, up to so many bytes.
std::string Repeated(const std::string& piece, size_t bytes);

/// What makes a message of `type` that it follows about so many bytes longer:
/// one field, of it or of a message in it, that is long or there many times.
std::string LargeField(const google::protobuf::Descriptor& type, Input& input,
                       size_t bytes, int depth = 0);

}  // namespace tensord::fuzz
