// Shared memory: what good clients do, and what is left of bad ones.
#include <sys/resource.h>

#include <array>
#include <random>

#include "tests/conformance/shared_memory_conformance.h"
#include "tests/testing/memory_file.h"

namespace tensord {
namespace {

using shared_memory::Descriptor;
using shared_memory::Message;
using shared_memory::Reply;
using ::testing::ElementsAre;
using testing::kMostDescriptors;
using testing::Mapped;
using testing::MemoryFile;
using ::testing::StartsWith;

TEST_F(SharedMemoryConformance, OperationsReadAndWriteItInPlace) {
  const auto peer = Known();
  const Descriptor file = MemoryFile({.bytes = 8192});
  auto* const floats = reinterpret_cast<float*>(Mapped(file, 8192));
  std::iota(floats, floats + 4, 1.0f);
  peer->Add(1, 8192, file.get());
  ASSERT_EQ(peer->Reason(), "");
  EXPECT_EQ(QuotaUsed(), 8192);

  v1::Tensor a, d;
  ASSERT_THAT(Adopt(AdoptRequest(1, {2, 2}), &a), IsOk());
  EXPECT_EQ(a.state(), v1::TENSOR_STATE_READY);
  v1::AdoptTensorRequest behind = AdoptRequest(1, {2, 2});
  behind.set_offset_bytes(4096);
  ASSERT_THAT(Adopt(behind, &d), IsOk());
  const int64_t before = server_.used_bytes();
  v1::PermuteRequest request = Permutation(a.name());
  request.mutable_d()->set_tensor(d.name());
  ASSERT_THAT(Permute(request), IsOk());
  EXPECT_EQ(server_.used_bytes(), before);
  EXPECT_THAT(std::vector<float>(floats + 1024, floats + 1028),
              ElementsAre(1, 3, 2, 4));
  // It is read as it is then.
  floats[0] = 7;
  ASSERT_THAT(Permute(request), IsOk());
  EXPECT_EQ(floats[1024], 7);
  EXPECT_EQ(Values(d.name())[0], 7);
  munmap(floats, 8192);
}

TEST_F(SharedMemoryConformance, TensorsAreStoredInIt) {
  const auto peer = Known();
  const Descriptor file = MemoryFile();
  auto* const floats = reinterpret_cast<float*>(Mapped(file, 4096));
  peer->Add(1, 4096, file.get());
  ASSERT_EQ(peer->Reason(), "");
  const std::string filled = Filled({2, 3});
  ASSERT_THAT(Store(filled, 1, {2, 3}, 256), IsOk());
  EXPECT_THAT(std::vector<float>(floats + 64, floats + 70),
              ElementsAre(0, 1, 2, 3, 4, 5));
  const std::optional<Reply> told = peer->Hear();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->kind, Reply::Kind::kReleased);
  EXPECT_EQ(told->region, 1u);
  EXPECT_EQ(told->adoptions, 1u);

  EXPECT_THAT(Store(filled, 1, {3, 2}),
              FailsWith(grpc::INVALID_ARGUMENT, "MODE_EXTENT_MISMATCH"));
  EXPECT_THAT(Store(filled, 1, {2, 3}, 4096),
              FailsWith(grpc::INVALID_ARGUMENT, "SHARED_MEMORY_OUT_OF_RANGE"));
  EXPECT_THAT(Store(filled, 2, {2, 3}),
              FailsWith(grpc::NOT_FOUND, "SHARED_MEMORY_REGION_NOT_FOUND"));
  munmap(floats, 4096);
}

// Devices with their own memory take a copy, and let the region go.
TEST_F(SharedMemoryConformance, WhatIsNotInPlaceBelongsToTheDevice) {
  v1::OpenSharedMemoryResponse opened;
  ASSERT_THAT(Invite(session_, &opened), IsOk());
  EXPECT_EQ(opened.copies(), HasOwnMemory());
  const auto peer = Known();
  const Descriptor file = MemoryFile();
  auto* const floats = reinterpret_cast<float*>(Mapped(file, 4096));
  std::iota(floats, floats + 6, 1.0f);
  peer->Add(1, 4096, file.get());
  ASSERT_EQ(peer->Reason(), "");
  v1::AdoptTensorRequest request = AdoptRequest(1, {2, 3});
  request.set_in_place(false);
  request.set_tensor_id("a");
  v1::Tensor a;
  ASSERT_THAT(Adopt(request, &a), IsOk());
  EXPECT_EQ(a.name(), session_ + "/tensors/a");
  EXPECT_EQ(a.state(), v1::TENSOR_STATE_READY);
  floats[0] = 7;
  EXPECT_EQ(Values(a.name()),
            (std::vector<float>{HasOwnMemory() ? 1.f : 7.f, 2, 3, 4, 5, 6}));
  EXPECT_THAT(Adopt(request),
              FailsWith(grpc::ALREADY_EXISTS, "TENSOR_ALREADY_EXISTS"));
  if (HasOwnMemory()) {
    const std::optional<Reply> told = peer->Hear();
    ASSERT_TRUE(told);
    EXPECT_EQ(told->kind, Reply::Kind::kReleased);
  }
  peer->Drop(1);
  const std::optional<Reply> dropped = peer->Hear();
  ASSERT_TRUE(dropped);
  EXPECT_EQ(Describe(a.name()).state(),
            HasOwnMemory() ? v1::TENSOR_STATE_READY : v1::TENSOR_STATE_INVALID);
  munmap(floats, 4096);
}

// Kernels that touch elements more than once have copies in the device's
// memory, which is not the client's to see.
TEST_F(SharedMemoryConformance, OperationsLeaveWhatLiesBetweenElements) {
  const auto peer = Known();
  const Descriptor file = MemoryFile({.bytes = 8192});
  auto* const floats = reinterpret_cast<float*>(Mapped(file, 8192));
  std::iota(floats, floats + 2048, 0.0f);
  peer->Add(1, 8192, file.get());
  ASSERT_EQ(peer->Reason(), "");
  v1::AdoptTensorRequest wide = AdoptRequest(1, {4, 4});
  for (const int64_t stride : {1, 6}) {
    wide.mutable_layout()->add_strides(stride);
  }
  v1::Tensor a, packed, gaps;
  ASSERT_THAT(Adopt(wide, &a), IsOk());
  v1::AdoptTensorRequest result = AdoptRequest(1, {4, 4});
  result.set_offset_bytes(2048);
  ASSERT_THAT(Adopt(result, &packed), IsOk());
  wide.set_offset_bytes(4096);
  ASSERT_THAT(Adopt(wide, &gaps), IsOk());
  const int64_t before = server_.used_bytes();
  // The sum of the products of column i and row j.
  const auto expected = [&](int i, int j) {
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
      sum += static_cast<float>(i + 6 * k) * static_cast<float>(k + 6 * j);
    }
    return sum;
  };
  const std::vector<float> others(floats + 528, floats + 1024);
  for (const v1::Tensor* const d : {&packed, &gaps}) {
    v1::ContractRequest request = Contraction(a.name(), a.name());
    request.mutable_d()->set_tensor(d->name());
    ASSERT_THAT(Contract(request), IsOk());
  }
  EXPECT_EQ(server_.used_bytes(), before);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      EXPECT_EQ(floats[512 + i + 4 * j], expected(i, j));
      EXPECT_EQ(floats[1024 + i + 6 * j], expected(i, j));
    }
    if (i == 3) break;  // Behind the last column there is no gap.
    EXPECT_EQ(floats[1024 + 4 + 6 * i], 1028 + 6 * i);
  }
  EXPECT_EQ(std::vector<float>(floats + 528, floats + 1024), others);
  munmap(floats, 8192);
}

TEST_F(SharedMemoryConformance, TransfersByGrpcReachItToo) {
  const auto peer = Known();
  const Descriptor file = MemoryFile();
  auto* const floats = reinterpret_cast<float*>(Mapped(file, 4096));
  peer->Add(1, 4096, file.get());
  ASSERT_EQ(peer->Reason(), "");
  v1::Tensor a;
  ASSERT_THAT(Adopt(AdoptRequest(1, {4}), &a), IsOk());
  const std::vector<float> values = {4, 3, 2, 1};
  ASSERT_THAT(Upload({Chunk(a.name(), 0, values)}), IsOk());
  EXPECT_EQ(std::vector<float>(floats, floats + 4), values);
  floats[1] = 9;
  EXPECT_THAT(Values(a.name()), ElementsAre(4, 9, 2, 1));
  munmap(floats, 4096);
}

TEST_F(SharedMemoryConformance, ReleaseIsToldWhenTheLastUseEnds) {
  const auto peer = Known();
  const Descriptor file = MemoryFile();
  peer->Add(1, 4096, file.get());
  ASSERT_EQ(peer->Reason(), "");
  v1::Tensor a;
  ASSERT_THAT(Adopt(AdoptRequest(1, {4}), &a), IsOk());
  Blocker blocker(server_.device().worker());
  std::thread user([&] {
    v1::PermuteRequest request;
    request.set_session(session_);
    *request.mutable_a() = Named(a.name(), {1});
    *request.mutable_d() = New({1});
    EXPECT_THAT(Permute(request), IsOk());
  });
  AwaitQueued(1);
  ASSERT_THAT(Delete(a.name()), IsOk());
  peer->Add(2, 4096, file.get());
  EXPECT_EQ(peer->Reason(), "");  // and nothing before
  blocker.Release();
  user.join();
  const std::optional<Reply> told = peer->Hear();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->kind, Reply::Kind::kReleased);
}

TEST_F(SharedMemoryConformance, TensorsOfOneThatIsTakenBackAreInvalid) {
  const auto peer = Known();
  const Descriptor file = MemoryFile();
  peer->Add(1, 4096, file.get());
  ASSERT_EQ(peer->Reason(), "");
  v1::Tensor a;
  ASSERT_THAT(Adopt(AdoptRequest(1, {2, 2}), &a), IsOk());
  v1::CreateViewRequest view;
  view.set_tensor(a.name());
  v1::CreateViewResponse viewed;
  ASSERT_THAT(Unary(&v1::ViewService::Stub::CreateView, *views_, view, &viewed),
              IsOk());
  peer->Drop(1);
  EXPECT_EQ(peer->Reason(), "");
  EXPECT_EQ(MappedFiles(), 0);
  EXPECT_EQ(QuotaUsed(), 0);
  EXPECT_EQ(Describe(a.name()).state(), v1::TENSOR_STATE_INVALID);
  for (const std::string& name : {a.name(), viewed.tensor().name()}) {
    EXPECT_THAT(Permute(Permutation(name)),
                FailsWith(grpc::FAILED_PRECONDITION, "SHARED_MEMORY_GONE"));
  }
  const std::vector<float> v(4);
  EXPECT_THAT(Upload({Chunk(a.name(), 0, v)}),
              FailsWith(grpc::FAILED_PRECONDITION, "SHARED_MEMORY_GONE"));
  peer->Drop(1);
  EXPECT_EQ(peer->Reason(), "SHARED_MEMORY_REGION_NOT_FOUND");
  EXPECT_THAT(Adopt(AdoptRequest(1, {4})),
              FailsWith(grpc::NOT_FOUND, "SHARED_MEMORY_REGION_NOT_FOUND"));
}

TEST_F(SharedMemoryConformance, NothingIsMappedWhenAConnectionHasEnded) {
  const Descriptor file = MemoryFile();
  const int open_before = OpenFiles();
  auto peer = Known();
  for (int i = 0; i < 20; ++i) {
    peer->Add(static_cast<uint64_t>(i), 4096, file.get());
    ASSERT_EQ(peer->Reason(), "");
  }
  v1::Tensor a;
  ASSERT_THAT(Adopt(AdoptRequest(3, {4}), &a), IsOk());
  EXPECT_EQ(MappedFiles(), 20);
  peer.reset();
  EXPECT_TRUE(Soon([&] { return MappedFiles() == 0; }));
  EXPECT_TRUE(Soon([&] { return OpenFiles() == open_before; }));
  EXPECT_EQ(QuotaUsed(), 0);
  EXPECT_EQ(Describe(a.name()).state(), v1::TENSOR_STATE_INVALID);
}

TEST_F(SharedMemoryConformance, WhatRunsEndsBeforeItsMemoryGoes) {
  auto peer = Known();
  const Descriptor file = MemoryFile();
  peer->Add(1, 4096, file.get());
  ASSERT_EQ(peer->Reason(), "");
  v1::Tensor a;
  ASSERT_THAT(Adopt(AdoptRequest(1, {2, 2}), &a), IsOk());
  Blocker blocker(server_.device().worker());
  std::thread user([&] {
    // Not launched yet when the memory is to go: it fails.
    EXPECT_THAT(Permute(Permutation(a.name())),
                FailsWith(grpc::FAILED_PRECONDITION, "SHARED_MEMORY_GONE"));
  });
  AwaitQueued(1);
  peer.reset();
  EXPECT_TRUE(Soon(
      [&] { return Describe(a.name()).state() != v1::TENSOR_STATE_READY; }));
  EXPECT_EQ(MappedFiles(), 1);
  blocker.Release();
  user.join();
  EXPECT_TRUE(Soon([&] { return MappedFiles() == 0; }));
}

TEST_F(SharedMemoryConformance, ItGoesWithItsSession) {
  const auto peer = Known();
  const Descriptor file = MemoryFile();
  peer->Add(1, 4096, file.get());
  ASSERT_EQ(peer->Reason(), "");
  ASSERT_THAT(Close(session_), IsOk());
  EXPECT_EQ(peer->Hear(), std::nullopt);
  EXPECT_TRUE(Soon([&] { return MappedFiles() == 0; }));
}

TEST_F(SharedMemoryConformance, RegionsOfOtherSessionsAreNotFound) {
  const auto peer = Known();
  const Descriptor file = MemoryFile();
  peer->Add(1, 4096, file.get());
  ASSERT_EQ(peer->Reason(), "");
  v1::AdoptTensorRequest request = AdoptRequest(1, {4});
  request.set_session(NewSession());
  EXPECT_THAT(Adopt(request),
              FailsWith(grpc::NOT_FOUND, "SHARED_MEMORY_REGION_NOT_FOUND"));
}

TEST_F(SharedMemoryConformance, TensorsThatDoNotLieInItAreRefused) {
  const auto peer = Known();
  const Descriptor file = MemoryFile();
  peer->Add(1, 4096, file.get());
  ASSERT_EQ(peer->Reason(), "");
  const auto reason = [&](std::vector<int64_t> extents, int64_t offset) {
    v1::AdoptTensorRequest request = AdoptRequest(1, std::move(extents));
    request.set_offset_bytes(offset);
    return Adopt(request).reason;
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(reason({1024}, 0), "");
  EXPECT_EQ(reason({1025}, 0), "SHARED_MEMORY_OUT_OF_RANGE");
  EXPECT_EQ(reason({1}, 4096), "SHARED_MEMORY_OUT_OF_RANGE");
  EXPECT_EQ(reason({1}, -256), "SHARED_MEMORY_OUT_OF_RANGE");
  EXPECT_EQ(reason({1}, kMost), "SHARED_MEMORY_OUT_OF_RANGE");
  EXPECT_EQ(reason({kMost / 8}, kMost - 255), "SHARED_MEMORY_OUT_OF_RANGE");
  EXPECT_EQ(reason({1}, 4), "SHARED_MEMORY_MISALIGNED");
  v1::AdoptTensorRequest bools = AdoptRequest(1, {4});
  bools.set_element_type(v1::ELEMENT_TYPE_BOOL);
  EXPECT_THAT(Adopt(bools),
              FailsWith(grpc::INVALID_ARGUMENT, "SHARED_MEMORY_BOOL"));
}

TEST_F(SharedMemoryConformance, StrangersAreToldWhyAndClosed) {
  Message wrong = Hello();
  wrong.ticket[5] ^= std::byte{1};
  Peer guessing(path());
  guessing.Send(wrong);
  EXPECT_EQ(guessing.Reason(), "SHARED_MEMORY_TICKET_UNKNOWN");
  EXPECT_EQ(guessing.Reason(), "closed");

  const Message hello = Hello();
  Peer first(path());
  first.Send(hello);
  EXPECT_EQ(first.Reason(), "");
  Peer again(path());  // The ticket is good once.
  again.Send(hello);
  EXPECT_EQ(again.Reason(), "SHARED_MEMORY_TICKET_UNKNOWN");
  EXPECT_EQ(again.Reason(), "closed");

  const Descriptor file = MemoryFile();
  Peer eager(path());
  eager.Add(1, 4096, file.get());
  EXPECT_EQ(eager.Reason(), "SHARED_MEMORY_HELLO_EXPECTED");
  EXPECT_EQ(eager.Reason(), "closed");

  const auto known = Known();
  known->Send(Hello());
  EXPECT_EQ(known->Reason(), "SHARED_MEMORY_HELLO_EXPECTED");
  EXPECT_EQ(MappedFiles(), 0);
}

TEST_F(SharedMemoryConformance, HalfAMessageAndAMessageAndAHalfEndIt) {
  const Descriptor file = MemoryFile();
  const auto whole = Encode(Hello());
  for (const size_t bytes : {size_t{1}, size_t{16}, whole.size() - 1}) {
    Peer peer(path());
    peer.Send(std::span(whole).first(bytes), {file.get()});
    EXPECT_EQ(peer.Reason(), "SHARED_MEMORY_MESSAGE_MALFORMED");
    EXPECT_EQ(peer.Reason(), "closed");
  }
  std::vector<std::byte> longer(whole.begin(), whole.end());
  longer.resize(1000);
  Peer peer(path());
  peer.Send(longer);
  EXPECT_EQ(peer.Reason(), "SHARED_MEMORY_MESSAGE_MALFORMED");
  EXPECT_EQ(peer.Reason(), "closed");
}

TEST_F(SharedMemoryConformance, WrongDescriptorsAreRefusedAndTheRestGoesOn) {
  const auto peer = Known();
  const Descriptor good = MemoryFile();
  const Descriptor unsealed = MemoryFile({.seals = 0});
  const Descriptor hollow = MemoryFile({.is_allocated = false});
  const Descriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
  const int open_before = OpenFiles();
  const auto reason = [&](int64_t bytes, int descriptor) {
    peer->Add(1, bytes, descriptor);
    return peer->Reason();
  };
  EXPECT_EQ(reason(4096, null.get()), "SHARED_MEMORY_NOT_MEMFD");
  EXPECT_EQ(reason(4096, unsealed.get()), "SHARED_MEMORY_NOT_SEALED");
  EXPECT_EQ(reason(4096, hollow.get()), "SHARED_MEMORY_NOT_ALLOCATED");
  EXPECT_EQ(reason(8192, good.get()), "SHARED_MEMORY_SIZE_DIFFERS");
  Message add;
  add.kind = Message::Kind::kAdd;
  add.region = 1;
  add.bytes = 4096;
  peer->Send(add);
  EXPECT_EQ(peer->Reason(), "SHARED_MEMORY_DESCRIPTORS_WRONG");
  peer->Send(add, {good.get(), good.get()});
  EXPECT_EQ(peer->Reason(), "SHARED_MEMORY_DESCRIPTORS_WRONG");
  Message drop;
  drop.kind = Message::Kind::kDrop;
  peer->Send(drop, {good.get()});
  EXPECT_EQ(peer->Reason(), "SHARED_MEMORY_DESCRIPTORS_WRONG");
  const Descriptor large = MemoryFile({.bytes = int64_t{65} << 20});
  EXPECT_EQ(reason(int64_t{65} << 20, large.get()), "MEMORY_LIMIT");
  EXPECT_EQ(MappedFiles(), 0);
  EXPECT_TRUE(Soon([&] { return OpenFiles() == open_before + 1; }));
  EXPECT_EQ(reason(4096, good.get()), "");
  EXPECT_EQ(reason(4096, good.get()), "SHARED_MEMORY_REGION_EXISTS");
}

TEST_F(SharedMemoryConformance, SessionsOfATenantHaveOneShareOfRegions) {
  constexpr int64_t kBytes = int64_t{1} << 20;
  server::TenantQuotas quotas;
  (HasOwnMemory() ? quotas.staging_bytes : quotas.device_bytes) = kBytes;
  ASSERT_TRUE(
      server_.sessions().SetTenants({{"default", {.quotas = quotas}}}).ok());
  const auto one = Known();
  const auto other = Known(NewSession());
  const Descriptor file = MemoryFile({.bytes = kBytes});
  one->Add(1, kBytes, file.get());
  EXPECT_EQ(one->Reason(), "");
  other->Add(1, kBytes, file.get());
  EXPECT_EQ(other->Reason(), "TENANT_QUOTA_EXCEEDED");
  EXPECT_EQ(MappedFiles(), 1);
  one->Drop(1);
  EXPECT_EQ(one->Reason(), "");
  other->Add(1, kBytes, file.get());
  EXPECT_EQ(other->Reason(), "");
}

TEST_F(SharedMemoryConformance, ThousandsOfDescriptorsLeaveNothingBehind) {
  const auto other = Known();
  const Descriptor file = MemoryFile();
  const int open_before = OpenFiles();
  {
    const auto peer = Known();
    Message add;
    add.kind = Message::Kind::kAdd;
    add.bytes = 4096;
    for (int i = 0; i < 20; ++i) {
      add.region = static_cast<uint64_t>(i);
      peer->Send(add, std::vector<int>(kMostDescriptors, file.get()));
      EXPECT_EQ(peer->Reason(), "SHARED_MEMORY_DESCRIPTORS_WRONG");
    }
    for (uint64_t i = 0; i < 1024; ++i) {
      peer->Add(i, 4096, file.get());
      ASSERT_EQ(peer->Reason(), "") << i;
    }
    peer->Add(1024, 4096, file.get());
    EXPECT_EQ(peer->Reason(), "TOO_MANY_REGIONS");
    other->Add(1024, 4096, file.get());  // They are counted a session.
    EXPECT_EQ(other->Reason(), "TOO_MANY_REGIONS");
    const auto stranger = Known(NewSession());
    stranger->Add(1024, 4096, file.get());
    EXPECT_EQ(stranger->Reason(), "");
  }
  EXPECT_TRUE(Soon([&] { return MappedFiles() == 0; }));
  EXPECT_TRUE(Soon([&] { return OpenFiles() == open_before; }));
  other->Add(1, 4096, file.get());
  EXPECT_EQ(other->Reason(), "");
}

TEST_F(SharedMemoryConformance, CrowdsOfStrangersKeepNobodyOut) {
  std::vector<std::unique_ptr<Peer>> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(std::make_unique<Peer>(path()));
  }
  EXPECT_NE(Known(), nullptr);
  EXPECT_EQ(strangers[0]->Hear(), std::nullopt);  // The oldest had to go.
}

TEST_F(SharedMemoryConformance, ASessionLeavesOthersTicketsAndConnections) {
  const std::string other = NewSession();
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 16; ++i) peers.push_back(Known());
  Peer more(path());
  more.Send(Hello());
  EXPECT_EQ(more.Reason(), "TOO_MANY_CONNECTIONS");
  EXPECT_EQ(more.Reason(), "closed");
  v1::OpenSharedMemoryResponse response;
  // The ticket that was refused is one of them.
  for (int i = 0; i < 15; ++i) {
    ASSERT_THAT(Invite(session_, &response), IsOk()) << i;
  }
  EXPECT_THAT(Invite(session_, &response),
              FailsWith(grpc::RESOURCE_EXHAUSTED, "TOO_MANY_TICKETS"));
  EXPECT_NE(Known(other), nullptr);
  // It goes on with those that it has, and one for each that ends.
  const Descriptor file = MemoryFile();
  peers[0]->Add(1, 4096, file.get());
  EXPECT_EQ(peers[0]->Reason(), "");
}

TEST_F(SharedMemoryConformance, WhoFindsNoFileLeftIsToldSo) {
  const auto known = Known();
  const Descriptor file = MemoryFile();
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(OpenFiles()) + 100;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<Descriptor> taken;
  const auto take = [&] {
    taken.emplace_back(fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
    return taken.back().get() >= 0;
  };
  while (take()) {
  }
  taken.pop_back();
  taken.pop_back();  // The test's own end has its place.
  Peer peer(path());
  EXPECT_EQ(peer.Reason(), "TOO_MANY_FILES");
  EXPECT_EQ(peer.Reason(), "closed");
  // Others have what they need.
  known->Drop(1);
  EXPECT_EQ(known->Reason(), "SHARED_MEMORY_REGION_NOT_FOUND");
  taken.clear();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_NE(Known(), nullptr);
}

TEST_F(SharedMemoryConformance, WhoNeverListensIsCutOff) {
  const auto deaf = Known();
  const auto other = Known();
  Message drop;
  drop.kind = Message::Kind::kDrop;
  // More answers than its socket and the server keep for it.
  for (int i = 0; i < 20'000; ++i) deaf->Send(drop);
  const Descriptor file = MemoryFile();
  other->Add(1, 4096, file.get());
  EXPECT_EQ(other->Reason(), "");
  std::optional<Reply> last;
  int heard = 0;
  while ((last = deaf->Hear())) ++heard;
  EXPECT_GT(heard, 0);
  EXPECT_LT(heard, 20'000);
}

TEST_F(SharedMemoryConformance, WhatAClientWritesMeanwhileCrashesNobody) {
  const auto peer = Known();
  constexpr int64_t kBytes = 1 << 16;
  const Descriptor file = MemoryFile({.bytes = kBytes});
  std::byte* const memory = Mapped(file, kBytes);
  peer->Add(1, kBytes, file.get());
  ASSERT_EQ(peer->Reason(), "");
  std::atomic<bool> ends = false;
  std::thread writer([&] {
    std::mt19937 rng(3);
    while (!ends) {
      for (int64_t i = 0; i < kBytes; i += 8) {
        const uint64_t noise = (uint64_t{rng()} << 32) | rng();
        std::memcpy(memory + i, &noise, sizeof(noise));
      }
      fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                kBytes);
    }
  });
  for (const v1::ElementType type :
       {v1::ELEMENT_TYPE_FLOAT32, v1::ELEMENT_TYPE_COMPLEX64,
        v1::ELEMENT_TYPE_INT64}) {
    v1::AdoptTensorRequest request = AdoptRequest(1, {32, 32});
    request.set_element_type(type);
    v1::Tensor a;
    ASSERT_THAT(Adopt(request, &a), IsOk());
    for (int i = 0; i < 20; ++i) {
      EXPECT_THAT(Permute(Permutation(a.name())), IsOk());
      v1::ReduceRequest reduce;
      reduce.set_session(session_);
      *reduce.mutable_a() = Named(a.name(), {1, 2});
      *reduce.mutable_d() = New({1});
      reduce.set_op(v1::BINARY_OPERATOR_MAX);
      v1::ReduceResponse reduced;
      if (type == v1::ELEMENT_TYPE_COMPLEX64) continue;
      EXPECT_THAT(
          Unary(&v1::ComputeService::Stub::Reduce, *compute_, reduce, &reduced),
          IsOk());
    }
  }
  ends = true;
  writer.join();
  munmap(memory, kBytes);
}

class NoSharedMemoryConformance : public RpcConformance {
 protected:
  NoSharedMemoryConformance()
      : RpcConformance(
            testing::InProcessOptions{.rpc = {.takes_shared_memory = false}}) {}
};

TEST_F(NoSharedMemoryConformance, WhereItIsOffNobodyHasAny) {
  v1::OpenSharedMemoryRequest request;
  request.set_session(session_);
  v1::OpenSharedMemoryResponse response;
  EXPECT_THAT(Unary(&v1::SessionService::Stub::OpenSharedMemory, *sessions_,
                    request, &response),
              FailsWith(grpc::FAILED_PRECONDITION, "SHARED_MEMORY_OFF"));
  v1::AdoptTensorRequest adopt;
  adopt.set_session(session_);
  adopt.set_element_type(v1::ELEMENT_TYPE_FLOAT32);
  v1::AdoptTensorResponse adopted;
  EXPECT_THAT(
      Unary(&v1::TensorService::Stub::AdoptTensor, *tensors_, adopt, &adopted),
      FailsWith(grpc::FAILED_PRECONDITION, "SHARED_MEMORY_OFF"));
}

}  // namespace
}  // namespace tensord
