#include "core/plan/plan_snapshot.h"

#include <utility>

#include "absl/strings/match.h"
#include "core/base/crc32c.h"
#include "core/base/status.h"
#include "core/plan/byte_codec.h"
#include "core/plan/plan_record.h"

namespace tensord::core {
namespace {

// magic | version: 4 | count of records: 8 | length of writer: 4 | writer |
// checksum of all that: 4 | { length: 4 | checksum: 4 | record } |
// end mark: 4 | checksum of all before the mark: 4
constexpr absl::string_view kMagic = "tnsrplan";
constexpr uint32_t kSnapshotVersion = 1;
constexpr size_t kCountAt = kMagic.size() + 4;
constexpr uint32_t kEndMark = 0xffffffff;
constexpr size_t kMaxWriterBytes = 256;

void AppendFixed(std::string& bytes, uint64_t value, int count) {
  char fixed[8];
  ByteWriter(fixed).Fixed(value, count);
  bytes.append(fixed, static_cast<size_t>(count));
}

template <typename... Parts>
absl::Status Corrupt(const Parts&... parts) {
  return Error(absl::StatusCode::kDataLoss, "SNAPSHOT_CORRUPT",
               absl::StrCat("snapshot is damaged: ", parts...));
}

}  // namespace

SnapshotWriter::SnapshotWriter(absl::string_view writer) {
  writer = writer.substr(0, kMaxWriterBytes);
  bytes_ = std::string(kMagic);
  AppendFixed(bytes_, kSnapshotVersion, 4);
  AppendFixed(bytes_, 0, 8);  // written by Finish()
  AppendFixed(bytes_, writer.size(), 4);
  absl::StrAppend(&bytes_, writer);
  AppendFixed(bytes_, 0, 4);  // written by Finish()
}

void SnapshotWriter::Add(absl::string_view record) {
  AppendFixed(bytes_, record.size(), 4);
  AppendFixed(bytes_, Crc32c(record), 4);
  absl::StrAppend(&bytes_, record);
  ++count_;
}

std::string SnapshotWriter::Finish() && {
  ByteWriter(&bytes_[kCountAt]).Fixed(count_, 8);
  ByteReader header(absl::string_view(bytes_).substr(kCountAt + 8));
  const size_t header_bytes = kCountAt + 12 + header.Fixed(4);
  ByteWriter(&bytes_[header_bytes])
      .Fixed(Crc32c(absl::string_view(bytes_).substr(0, header_bytes)), 4);
  const uint32_t checksum = Crc32c(bytes_);
  AppendFixed(bytes_, kEndMark, 4);
  AppendFixed(bytes_, checksum, 4);
  return std::move(bytes_);
}

absl::StatusOr<SnapshotInfo> ReadSnapshot(
    absl::string_view bytes,
    absl::FunctionRef<void(absl::string_view record)> visit) {
  if (!absl::StartsWith(bytes, kMagic)) {
    return InvalidArgument("SNAPSHOT_FOREIGN", "these ", bytes.size(),
                           " bytes are not a snapshot of plans");
  }
  ByteReader from(bytes.substr(kMagic.size()));
  const uint64_t version = from.Fixed(4);
  if (from.ok() && version > kSnapshotVersion) {
    return InvalidArgument("SNAPSHOT_NEWER", "snapshot has format version ",
                           version, ", known is ", kSnapshotVersion);
  }
  const uint64_t count = from.Fixed(8);
  const absl::string_view writer = from.Raw(from.Fixed(4));
  const absl::string_view header =
      bytes.substr(0, bytes.size() - from.left_bytes());
  if (Crc32c(header) != from.Fixed(4) || !from.ok() ||
      version != kSnapshotVersion) {
    return Corrupt("its beginning is cut off or changed");
  }
  uint64_t read = 0;
  for (; read < count; ++read) {
    const uint64_t size = from.Fixed(4);
    const uint64_t checksum = from.Fixed(4);
    if (size > kMaxRecordBytes) from.Fail();
    const absl::string_view record = from.Raw(size);
    if (!from.ok() || Crc32c(record) != checksum) {
      return Corrupt("record ", read, " of ", count, " is cut off or changed");
    }
    visit(record);
  }
  const absl::string_view body =
      bytes.substr(0, bytes.size() - from.left_bytes());
  if (from.Fixed(4) != kEndMark || from.Fixed(4) != Crc32c(body) ||
      !from.AtEnd()) {
    return Corrupt("its end is cut off or changed");
  }
  return SnapshotInfo{std::string(writer), static_cast<int64_t>(count)};
}

}  // namespace tensord::core
