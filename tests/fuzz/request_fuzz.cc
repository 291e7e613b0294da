// Every request becomes what it asks for or is refused with INVALID_ARGUMENT.
// The first byte says which message the others are.
#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/tensor/tensor.h"
#include "server/rpc/convert.h"
#include "tests/fuzz/check.h"

namespace tensord::rpc {
namespace {

using fuzz::Check;

// What it logs of malformed names would be all that one sees.
[[maybe_unused]] const auto kLogged = google::protobuf::SetLogHandler(nullptr);

void CheckRefusal(const absl::Status& status) {
  if (status.ok()) return;
  Check(absl::IsInvalidArgument(status), "the code is INVALID_ARGUMENT",
        status.ToString());
}

/// Converts a message that the bytes are, and asks for more of it.
template <typename Message, typename... More>
std::function<void(absl::string_view)> Converts(More... more) {
  return [=](absl::string_view bytes) {
    Message message;
    if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return;
    }
    (more(message), ...);
  };
}

constexpr auto kItself = [](const auto& message) {
  CheckRefusal(FromProto(message).status());
};

const std::vector<std::function<void(absl::string_view)>>& Conversions() {
  static const std::vector<std::function<void(absl::string_view)>> all = {
      Converts<v1::PermuteRequest>(kItself),
      Converts<v1::ElementwiseRequest>(kItself),
      Converts<v1::ReduceRequest>(kItself),
      Converts<v1::ContractRequest>(kItself),
      Converts<v1::FactorizeRequest>(kItself),
      Converts<v1::SolveLinearRequest>(kItself),
      Converts<v1::ExecutePlanRequest>(kItself),
      Converts<v1::ProgramSpec>(kItself),
      Converts<v1::ExecuteProgramRequest>(
          [](const v1::ExecuteProgramRequest& request) {
            CheckRefusal(FromProto(request.operands()).status());
            CheckRefusal(FromProto(request.outputs()).status());
          }),
      Converts<v1::CreateViewRequest>([](const v1::CreateViewRequest& request) {
        CheckRefusal(FromProto(request.stages()).status());
      }),
      Converts<v1::CreateTensorRequest>(
          [](const v1::CreateTensorRequest& request) {
            CheckRefusal(
                FromProto(request.element_type(), request.layout()).status());
          }),
      Converts<v1::InlineTensor>([](const v1::InlineTensor& message) {
        CheckRefusal(FromProto(message, "a").status());
      }),
      Converts<v1::OpenSessionRequest>(
          [](const v1::OpenSessionRequest& request) {
            CheckRefusal(FromProto(request.lease(), "lease").status());
          }),
  };
  return all;
}

}  // namespace
}  // namespace tensord::rpc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto& conversions = tensord::rpc::Conversions();
  conversions[data[0] % conversions.size()](
      {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
