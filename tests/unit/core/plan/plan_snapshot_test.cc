#include "core/plan/plan_snapshot.h"

#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/plan/plan_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string Snapshot(const std::vector<std::string>& records) {
  SnapshotWriter writer("tensord 0.1.0");
  for (const std::string& record : records) writer.Add(record);
  return std::move(writer).Finish();
}

struct Contents {
  absl::StatusOr<SnapshotInfo> info;
  std::vector<std::string> records;
};

Contents Read(absl::string_view bytes) {
  std::vector<std::string> records;
  auto info = ReadSnapshot(
      bytes, [&](absl::string_view record) { records.emplace_back(record); });
  return {std::move(info), std::move(records)};
}

TEST(PlanSnapshotTest, RecordsComeBackInOrder) {
  const Contents contents = Read(Snapshot({"one", "", std::string(3000, 'x')}));
  ASSERT_TRUE(contents.info.ok()) << contents.info.status();
  EXPECT_EQ(contents.info->writer, "tensord 0.1.0");
  EXPECT_EQ(contents.info->record_count, 3);
  EXPECT_THAT(contents.records, ElementsAre("one", "", std::string(3000, 'x')));
}

TEST(PlanSnapshotTest, NoRecordsAreASnapshotToo) {
  const Contents contents = Read(Snapshot({}));
  ASSERT_TRUE(contents.info.ok());
  EXPECT_EQ(contents.info->record_count, 0);
}

TEST(PlanSnapshotTest, OtherFilesAreForeign) {
  for (const absl::string_view bytes : {"", "tnsrpla", "PK\x03\x04 and more"}) {
    EXPECT_EQ(ReasonOf(Read(bytes).info.status()), "SNAPSHOT_FOREIGN");
  }
}

TEST(PlanSnapshotTest, FormatsOfTheFutureAreNewer) {
  std::string bytes = Snapshot({"one"});
  bytes[8] = 2;
  const absl::Status status = Read(bytes).info.status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(status), "SNAPSHOT_NEWER");
}

TEST(PlanSnapshotTest, WhateverIsCutOffOrBehindItIsNoticed) {
  const std::string bytes = Snapshot({"one", "two"});
  for (size_t size = 8; size < bytes.size(); ++size) {
    const absl::Status status = Read(bytes.substr(0, size)).info.status();
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << size;
    ASSERT_EQ(ReasonOf(status), "SNAPSHOT_CORRUPT") << size;
  }
  EXPECT_FALSE(Read(bytes + '\0').info.ok());
}

TEST(PlanSnapshotTest, EveryFlippedBitIsNoticedAndNoRecordComesOutChanged) {
  const std::vector<std::string> records = {"one", "two", "three"};
  const std::string bytes = Snapshot(records);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    const Contents contents = Read(flipped);
    ASSERT_FALSE(contents.info.ok()) << bit;
    ASSERT_LE(contents.records.size(), records.size());
    for (size_t i = 0; i < contents.records.size(); ++i) {
      ASSERT_EQ(contents.records[i], records[i]) << bit;
    }
  }
}

TEST(PlanSnapshotTest, RecordsBeforeTheDamageAreVisited) {
  std::string bytes = Snapshot({"one", "two", "three"});
  bytes[bytes.find("three")] = 'T';
  const Contents contents = Read(bytes);
  EXPECT_EQ(contents.info.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(contents.records, ElementsAre("one", "two"));
}

TEST(PlanSnapshotTest, RecordsThatAreTooLongAreDamage) {
  const Contents contents =
      Read(Snapshot({std::string(kMaxRecordBytes + 1, 'x')}));
  EXPECT_EQ(ReasonOf(contents.info.status()), "SNAPSHOT_CORRUPT");
  EXPECT_THAT(contents.records, IsEmpty());
}

}  // namespace
}  // namespace tensord::core
