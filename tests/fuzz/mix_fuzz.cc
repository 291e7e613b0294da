// Every text is a mix of tensord-load, or it is refused with a place.
#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "client/load/mix.h"
#include "tests/fuzz/check.h"

namespace tensord::load {
namespace {

using fuzz::Check;

void Try(const std::string& text) {
  const auto mix = ParseMix(text, "file");
  if (!mix.ok()) {
    Check(absl::IsInvalidArgument(mix.status()), "the code is INVALID_ARGUMENT",
          mix.status().ToString());
    Check(mix.status().message().find("file") != std::string::npos,
          "the file is named", mix.status().ToString());
    return;
  }
  std::set<std::string> names;
  double weight = 0;
  for (const OperationSpec& operation : mix->operations) {
    Check(names.insert(operation.name).second, "names differ", operation.name);
    weight += operation.weight;
  }
  Check(weight > 0, "the weights have a positive sum");
}

}  // namespace
}  // namespace tensord::load

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tensord::load::Try(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
