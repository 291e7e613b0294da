// Calls of every rpc, and what may be changed in their messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace tensord::fuzz {

/// A call as a sensible client makes it, in sessions $A and $B.
struct SampleCall {
  const char* method;
  std::vector<const char*> messages;
};

const std::vector<SampleCall>& SampleCalls();

/// What is left of the input; zeros behind its end.
class Input {
 public:
  explicit Input(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool is_empty() const { return bytes_.empty(); }
  size_t Below(size_t bound) { return Next() % bound; }
  uint8_t Next() {
    if (bytes_.empty()) return 0;
    const uint8_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }

 private:
  std::span<const uint8_t> bytes_;
};

using Names = std::vector<std::pair<absl::string_view, std::string>>;

/// Sets, adds or removes something somewhere in `message`.
void Change(google::protobuf::Message& message, Input& input,
            const Names& names);

const google::protobuf::MethodDescriptor& MethodOf(const std::string& name);

std::unique_ptr<google::protobuf::Message> NewMessage(
    const google::protobuf::Descriptor& descriptor);

}  // namespace tensord::fuzz
