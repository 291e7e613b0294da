// PlanCacheService: success, each documented error, and what jobs share.
#include "tensord/v1/plan_cache.grpc.pb.h"
#include "tests/conformance/rpc_conformance.h"

namespace tensord {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class RpcPlanCacheTest : public RpcConformance {
 protected:
  using Stub = v1::PlanCacheService::Stub;

  v1::GetPlanCacheStatsResponse Stats() {
    v1::GetPlanCacheStatsResponse response;
    EXPECT_THAT(Unary(&Stub::GetPlanCacheStats, *cache_,
                      v1::GetPlanCacheStatsRequest(), &response),
                IsOk());
    return response;
  }
  std::vector<v1::PlanCacheEntry> Entries() {
    v1::ListPlanCacheEntriesResponse response;
    EXPECT_THAT(Unary(&Stub::ListPlanCacheEntries, *cache_,
                      v1::ListPlanCacheEntriesRequest(), &response),
                IsOk());
    EXPECT_EQ(response.next_page_token(), "");
    return {response.entries().begin(), response.entries().end()};
  }
  Outcome Pin(const std::string& id) {
    v1::PinPlanCacheEntryRequest request;
    request.set_id(id);
    v1::PinPlanCacheEntryResponse response;
    return Unary(&Stub::PinPlanCacheEntry, *cache_, request, &response);
  }
  Outcome Unpin(const std::string& id) {
    v1::UnpinPlanCacheEntryRequest request;
    request.set_id(id);
    v1::UnpinPlanCacheEntryResponse response;
    return Unary(&Stub::UnpinPlanCacheEntry, *cache_, request, &response);
  }
  Outcome Remove(const std::string& id) {
    v1::RemovePlanCacheEntryRequest request;
    request.set_id(id);
    v1::RemovePlanCacheEntryResponse response;
    return Unary(&Stub::RemovePlanCacheEntry, *cache_, request, &response);
  }
  int64_t Clear(bool pinned_too = false) {
    v1::ClearPlanCacheRequest request;
    request.set_pinned_too(pinned_too);
    v1::ClearPlanCacheResponse response;
    EXPECT_THAT(Unary(&Stub::ClearPlanCache, *cache_, request, &response),
                IsOk());
    return response.removed_count();
  }
  std::string Dump() {
    grpc::ClientContext context;
    const auto reader =
        cache_->DumpPlanCache(&context, v1::DumpPlanCacheRequest());
    std::string snapshot;
    v1::DumpPlanCacheResponse part;
    while (reader->Read(&part)) snapshot += part.data();
    EXPECT_TRUE(reader->Finish().ok());
    return snapshot;
  }
  Outcome Load(const std::string& snapshot, v1::LoadPlanCacheResponse* response,
               v1::PlanCacheLoad load = v1::PLAN_CACHE_LOAD_UNSPECIFIED) {
    grpc::ClientContext context;
    const auto writer = cache_->LoadPlanCache(&context, response);
    // In two parts, as large ones come.
    v1::LoadPlanCacheRequest part;
    part.set_load(load);
    part.set_data(snapshot.substr(0, snapshot.size() / 2));
    writer->Write(part);
    part.set_data(snapshot.substr(snapshot.size() / 2));
    part.clear_load();
    writer->Write(part);
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    return OutcomeOf(status, context);
  }
  void Multiply() {
    const std::string a = Filled({2, 2});
    EXPECT_THAT(Contract(Contraction(a, a)), IsOk());
  }

  std::unique_ptr<Stub> cache_ = v1::PlanCacheService::NewStub(channel_);
};

TEST_F(RpcPlanCacheTest, JobsShareItAndAreCountedByThemselves) {
  v1::OpenSessionRequest open;
  v1::OpenSessionResponse opened;
  for (const std::string job : {"first", "second"}) {
    open.set_job(job);
    ASSERT_THAT(Open(open, &opened), IsOk());
    session_ = opened.session().name();
    Multiply();
    Multiply();
  }
  const v1::GetPlanCacheStatsResponse stats = Stats();
  EXPECT_EQ(stats.entry_count(), 1);
  EXPECT_EQ(stats.miss_count(), 1);
  EXPECT_EQ(stats.hit_count(), 3);
  EXPECT_GT(stats.bytes(), 0);
  EXPECT_LT(stats.bytes(), stats.byte_limit());
  ASSERT_EQ(stats.jobs_size(), 2);
  EXPECT_EQ(stats.jobs(0).job(), "first");
  EXPECT_EQ(stats.jobs(0).miss_count(), 1);
  EXPECT_EQ(stats.jobs(0).hit_count(), 1);
  EXPECT_EQ(stats.jobs(1).miss_count(), 0);
  EXPECT_EQ(stats.jobs(1).hit_count(), 2);
  EXPECT_EQ(stats.store().path(), "");
}

TEST_F(RpcPlanCacheTest, EntriesSayWhatTheyAre) {
  Multiply();
  Multiply();
  const std::vector<v1::PlanCacheEntry> entries = Entries();
  ASSERT_EQ(entries.size(), 1u);
  const v1::PlanCacheEntry& entry = entries[0];
  EXPECT_EQ(entry.id().size(), 16u);
  EXPECT_THAT(entry.problem(), HasSubstr("contraction float32"));
  EXPECT_THAT(entry.device(), HasSubstr(server_.device().info().name));
  EXPECT_THAT(entry.kernel(), HasSubstr(KernelPrefix() + ".contract."));
  EXPECT_EQ(entry.selection(), v1::SELECTION_HEURISTIC);
  EXPECT_EQ(entry.source(), v1::PLAN_SOURCE_PLANNED);
  EXPECT_EQ(entry.hit_count(), 1);
  EXPECT_GT(entry.last_used().seconds(), 1'700'000'000);
  EXPECT_GT(entry.bytes(), 0);

  v1::ListPlanCacheEntriesRequest list;
  v1::ListPlanCacheEntriesResponse page;
  list.set_page_size(-1);
  EXPECT_THAT(Unary(&Stub::ListPlanCacheEntries, *cache_, list, &page),
              FailsWith(grpc::INVALID_ARGUMENT, "PAGE_SIZE_NEGATIVE"));
  list.set_page_size(1);
  list.set_page_token("nonsense");
  EXPECT_THAT(Unary(&Stub::ListPlanCacheEntries, *cache_, list, &page),
              FailsWith(grpc::INVALID_ARGUMENT, "PAGE_TOKEN_MALFORMED"));
}

TEST_F(RpcPlanCacheTest, PinnedEntriesStayWhenOthersAreCleared) {
  Multiply();
  const std::string id = Entries()[0].id();
  ASSERT_THAT(Pin(id), IsOk());
  EXPECT_TRUE(Entries()[0].is_pinned());
  EXPECT_EQ(Stats().pinned_count(), 1);
  EXPECT_EQ(Clear(), 0);
  ASSERT_THAT(Unpin(id), IsOk());
  EXPECT_EQ(Clear(), 1);
  EXPECT_EQ(Entries().size(), 0u);
  Multiply();
  ASSERT_THAT(Pin(id), IsOk());
  EXPECT_EQ(Clear(true), 1);
  Multiply();
  ASSERT_THAT(Remove(id), IsOk());
  EXPECT_EQ(Entries().size(), 0u);
  EXPECT_THAT(Remove(id), FailsWith(grpc::NOT_FOUND, "PLAN_NOT_FOUND"));
  EXPECT_THAT(Pin(id), FailsWith(grpc::NOT_FOUND, "PLAN_NOT_FOUND"));
  EXPECT_THAT(Unpin(id), FailsWith(grpc::NOT_FOUND, "PLAN_NOT_FOUND"));
  EXPECT_THAT(Pin("xyz"),
              FailsWith(grpc::INVALID_ARGUMENT, "PLAN_ID_MALFORMED"));
}

TEST_F(RpcPlanCacheTest, SnapshotsCarryItFromServerToServer) {
  Multiply();
  const std::string snapshot = Dump();
  EXPECT_LE(std::ssize(snapshot), Stats().bytes());  // which it is counted as
  EXPECT_EQ(Clear(), 1);
  v1::LoadPlanCacheResponse loaded;
  ASSERT_THAT(Load(snapshot, &loaded), IsOk());
  EXPECT_THAT(loaded.writer(), HasSubstr("tensord "));
  EXPECT_EQ(loaded.entry_count(), 1);
  EXPECT_EQ(loaded.taken_count(), 1);
  EXPECT_EQ(Stats().record_count(), 1);
  const int64_t misses = Stats().miss_count();
  Multiply();
  const v1::GetPlanCacheStatsResponse stats = Stats();
  EXPECT_EQ(stats.miss_count(), misses);
  EXPECT_EQ(stats.load_count(), 1);
  EXPECT_EQ(Entries()[0].source(), v1::PLAN_SOURCE_LOADED);
  // There already.
  ASSERT_THAT(Load(snapshot, &loaded), IsOk());
  EXPECT_EQ(loaded.taken_count(), 0);
}

TEST_F(RpcPlanCacheTest, SnapshotsComeInMessagesOfAnySize) {
  Multiply();
  const std::string snapshot = Dump();
  ASSERT_GT(snapshot.size(), 100u);
  EXPECT_EQ(Clear(), 1);
  v1::LoadPlanCacheResponse loaded;
  grpc::ClientContext context;
  const auto writer = cache_->LoadPlanCache(&context, &loaded);
  writer->Write(v1::LoadPlanCacheRequest());
  for (size_t at = 0; at < 100; ++at) {
    v1::LoadPlanCacheRequest part;
    part.set_data(snapshot.substr(at, 1));
    writer->Write(part);
  }
  v1::LoadPlanCacheRequest rest;
  rest.set_data(snapshot.substr(100));
  writer->Write(rest);
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  ASSERT_THAT(OutcomeOf(status, context), IsOk());
  EXPECT_EQ(loaded.taken_count(), 1);
}

TEST_F(RpcPlanCacheTest, AClientThatSendsNothingHoldsUpNoOtherLoad) {
  Multiply();
  const std::string snapshot = Dump();
  v1::LoadPlanCacheResponse idle, loaded;
  grpc::ClientContext context;
  const auto writer = cache_->LoadPlanCache(&context, &idle);
  v1::LoadPlanCacheRequest part;
  part.set_data(snapshot.substr(0, 10));
  writer->Write(part);
  EXPECT_TRUE(Soon([&] {
    return server_.sessions()
               .host_memory()
               ->used(server::HostUse::kSnapshots)
               .bytes >= 10;
  }));
  EXPECT_THAT(Load(snapshot, &loaded), IsOk());
  part.set_data(snapshot.substr(10));
  writer->Write(part);
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  EXPECT_THAT(OutcomeOf(status, context), IsOk());
}

TEST_F(RpcPlanCacheTest, ProblemsOfASnapshotArePlannedToWarmUp) {
  Multiply();
  const std::string snapshot = Dump();
  EXPECT_EQ(Clear(), 1);
  v1::LoadPlanCacheResponse loaded;
  ASSERT_THAT(Load(snapshot, &loaded, v1::PLAN_CACHE_LOAD_PROBLEMS), IsOk());
  EXPECT_EQ(loaded.entry_count(), 1);
  EXPECT_EQ(loaded.taken_count(), 1);
  EXPECT_EQ(Entries()[0].source(), v1::PLAN_SOURCE_PLANNED);
  const int64_t misses = Stats().miss_count();
  Multiply();
  EXPECT_EQ(Stats().miss_count(), misses);
  EXPECT_THAT(Load(snapshot, &loaded, static_cast<v1::PlanCacheLoad>(9)),
              FailsWith(grpc::INVALID_ARGUMENT, "ENUM_UNKNOWN"));
}

TEST_F(RpcPlanCacheTest, OfASnapshotThatIsNotWholeNothingIsKept) {
  Multiply();
  const std::string snapshot = Dump();
  EXPECT_EQ(Clear(), 1);
  std::string changed = snapshot, newer = snapshot;
  changed[snapshot.size() / 2] ^= 4;
  newer[8] = 77;
  v1::LoadPlanCacheResponse loaded;
  for (const auto load :
       {v1::PLAN_CACHE_LOAD_PLANS, v1::PLAN_CACHE_LOAD_PROBLEMS}) {
    EXPECT_THAT(Load("junk that is long enough", &loaded, load),
                FailsWith(grpc::INVALID_ARGUMENT, "SNAPSHOT_FOREIGN"));
    EXPECT_THAT(Load("", &loaded, load),
                FailsWith(grpc::INVALID_ARGUMENT, "SNAPSHOT_FOREIGN"));
    EXPECT_THAT(Load(newer, &loaded, load),
                FailsWith(grpc::INVALID_ARGUMENT, "SNAPSHOT_NEWER"));
    EXPECT_THAT(Load(changed, &loaded, load),
                FailsWith(grpc::DATA_LOSS, "SNAPSHOT_CORRUPT"));
    EXPECT_THAT(Load(snapshot.substr(0, snapshot.size() - 3), &loaded, load),
                FailsWith(grpc::DATA_LOSS, "SNAPSHOT_CORRUPT"));
  }
  EXPECT_EQ(Stats().record_count(), 0);
  EXPECT_EQ(Stats().entry_count(), 0);
  Multiply();
}

}  // namespace
}  // namespace tensord
