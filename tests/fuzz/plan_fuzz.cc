// Every text is a snapshot, a record or a key, or it is refused with a reason;
// and what is one is written again as the same bytes.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "core/plan/plan_key_codec.h"
#include "core/plan/plan_record.h"
#include "core/plan/plan_snapshot.h"
#include "tests/fuzz/check.h"

namespace tensord::core::test {
namespace {

using fuzz::Check;

void CheckRefusal(const absl::Status& status) {
  Check(absl::IsInvalidArgument(status), "the code is INVALID_ARGUMENT",
        status.ToString());
  const std::string reason = ReasonOf(status);
  Check(reason == "PLAN_KEY_MALFORMED" || reason == "PLAN_RECORD_MALFORMED",
        "the reason is documented", status.ToString());
}

void TryKey(absl::string_view bytes) {
  const auto key = DecodePlanKey(bytes);
  if (!key.ok()) return CheckRefusal(key.status());
  Check(EncodePlanKey(*key) == bytes, "a key is written as it was");
}

void TryRecord(absl::string_view bytes) {
  TryKey(KeyOfRecord(bytes));
  const auto record = DecodePlanRecord(bytes);
  if (!record.ok()) return CheckRefusal(record.status());
  Check(EncodePlanRecord(*record) == bytes, "a record is written as it was");
  Check(DecodePlanKey(record->key).ok(), "the key of a record is a key");
  IsSettled(*record);
}

void TrySnapshot(absl::string_view bytes) {
  std::vector<absl::string_view> records;
  const auto info = ReadSnapshot(bytes, [&](absl::string_view record) {
    records.push_back(record);
    TryRecord(record);
  });
  if (!info.ok()) {
    const std::string reason = ReasonOf(info.status());
    Check(reason == "SNAPSHOT_FOREIGN" || reason == "SNAPSHOT_NEWER" ||
              reason == "SNAPSHOT_CORRUPT",
          "the reason is documented", info.status().ToString());
    return;
  }
  Check(info->record_count == static_cast<int64_t>(records.size()),
        "records are counted");
  SnapshotWriter writer(info->writer);
  for (const absl::string_view record : records) writer.Add(record);
  Check(std::move(writer).Finish() == bytes, "a snapshot is written as it was");
}

/// Of any bytes as records, which the mutations hardly make.
void TrySnapshotOf(absl::string_view bytes) {
  SnapshotWriter writer("fuzz");
  for (const absl::string_view part :
       {bytes.substr(0, bytes.size() / 2), bytes.substr(bytes.size() / 2)}) {
    writer.Add(part.substr(0, kMaxRecordBytes));
  }
  TrySnapshot(std::move(writer).Finish());
}

}  // namespace
}  // namespace tensord::core::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord::core::test;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  TryKey(bytes);
  TryRecord(bytes);
  TrySnapshot(bytes);
  TrySnapshotOf(bytes);
  return 0;
}
