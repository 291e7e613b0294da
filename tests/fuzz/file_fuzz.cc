// Every text is the header of a .npy file, the name of a part of one or
// padding, or it is refused; a header is written and read again as the same.
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "client/cli/indexed_file.h"
#include "client/cli/npy.h"
#include "tests/fuzz/check.h"

namespace tensord::cli {
namespace {

using fuzz::Check;

void CheckRefusal(const absl::Status& status) {
  Check(absl::IsInvalidArgument(status), "the code is INVALID_ARGUMENT",
        status.ToString());
}

void TryHeader(std::string_view text) {
  const auto header = ParseNpyHeader(text);
  if (!header.ok()) return CheckRefusal(header.status());
  Check(header->data_offset >= 0 &&
            header->data_offset <= static_cast<int64_t>(text.size()),
        "the data follow the header");
  for (const int64_t extent : header->extents) {
    Check(extent >= 0, "extents are not negative");
  }
  const std::string written = MakeNpyHeader(*header);
  auto again = ParseNpyHeader(written);
  Check(again.ok(), "what is written can be read", written);
  Check(again->data_offset == static_cast<int64_t>(written.size()),
        "the data follow what is written");
  again->data_offset = header->data_offset;
  again->big_endian = header->big_endian;
  Check(*again == *header, "it reads as the same", written);
}

void TryArguments(const std::string& text) {
  const auto file = ParseIndexedFile(text);
  if (!file.ok()) CheckRefusal(file.status());
  const auto padding = ParsePadding(text);
  if (!padding.ok()) CheckRefusal(padding.status());
}

}  // namespace
}  // namespace tensord::cli

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  tensord::cli::TryHeader(text);
  tensord::cli::TryArguments(text);
  return 0;
}
