#include "server/shared_memory/region.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace tensord::shared_memory {
namespace {

/// OK when the descriptor is of a file that can be mapped for good.
absl::Status CheckFile(int descriptor, int64_t bytes) {
  // Only files that never had a name can be sealed.
  const int seals = fcntl(descriptor, F_GET_SEALS);
  struct stat file = {};
  struct statfs system = {};
  if (seals < 0 || fstat(descriptor, &file) != 0 || !S_ISREG(file.st_mode) ||
      fstatfs(descriptor, &system) != 0 || system.f_type != TMPFS_MAGIC) {
    return core::InvalidArgument("SHARED_MEMORY_NOT_MEMFD",
                                 "the descriptor is none of memfd_create() "
                                 "with MFD_ALLOW_SEALING");
  }
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  constexpr int kHarmful = F_SEAL_WRITE | F_SEAL_FUTURE_WRITE;
  if ((seals & kNeeded) != kNeeded || (seals & kHarmful) != 0) {
    return core::InvalidArgument(
        "SHARED_MEMORY_NOT_SEALED", "the region has seals ", seals,
        ", wanted SHRINK, GROW and SEAL, and none against writing");
  }
  if (file.st_size != bytes) {
    return core::InvalidArgument("SHARED_MEMORY_SIZE_DIFFERS",
                                 "the region has ", file.st_size,
                                 " bytes, said were ", bytes);
  }
  constexpr int64_t kBlockBytes = 512;
  if (file.st_blocks * kBlockBytes < bytes) {
    return core::InvalidArgument(
        "SHARED_MEMORY_NOT_ALLOCATED", "the region has ",
        file.st_blocks * kBlockBytes, " of its ", bytes,
        " bytes, wanted all: fallocate() them before it is sealed");
  }
  return absl::OkStatus();
}

}  // namespace

class Region::Slice final : public core::MemoryResource {
 public:
  Slice(std::shared_ptr<Region> region, int64_t offset_bytes)
      : region_(std::move(region)), offset_bytes_(offset_bytes) {}
  ~Slice() override { region_->Release(); }

  absl::StatusOr<void*> Allocate(int64_t) override {
    return region_->start_ + offset_bytes_;
  }
  void Deallocate(void*, int64_t) override {}
  absl::Status Clear(void* pointer, int64_t bytes) override {
    std::memset(pointer, 0, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Region> region_;
  const int64_t offset_bytes_;
};

absl::StatusOr<std::shared_ptr<Region>> Region::Map(int descriptor,
                                                    Options options) {
  TENSORD_RETURN_IF_ERROR(CheckFile(descriptor, options.bytes));
  TENSORD_RETURN_IF_ERROR(options.quota->Charge(options.bytes));
  void* const start =
      mmap(nullptr, static_cast<size_t>(options.bytes), PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (start == MAP_FAILED) {
    const int error = errno;
    options.quota->Refund(options.bytes);
    return core::ResourceExhausted(
        "SHARED_MEMORY_NOT_MAPPED",
        "the region cannot be mapped: ", std::strerror(error));
  }
  // Advice, which the system takes where it has huge pages for shared memory.
  madvise(start, static_cast<size_t>(options.bytes), MADV_HUGEPAGE);
  // Nobody needs what a client has in a file of a crash.
  madvise(start, static_cast<size_t>(options.bytes), MADV_DONTDUMP);
  return std::shared_ptr<Region>(
      new Region(static_cast<std::byte*>(start), std::move(options)));
}

Region::Region(std::byte* start, Options options)
    : start_(start), options_(std::move(options)) {
  ++options_.usage->regions;
  options_.usage->bytes += options_.bytes;
}

Region::~Region() {
  // No storage is left: each has kept it alive.
  {
    absl::MutexLock pinning(&pinning_);
    pinned_.reset();
  }
  munmap(start_, static_cast<size_t>(options_.bytes));
  absl::MutexLock lock(&mutex_);
  if (!is_unmapped_) Uncount();
}

void Region::Uncount() const {
  --options_.usage->regions;
  options_.usage->bytes -= options_.bytes;
  options_.quota->Refund(options_.bytes);
}

absl::Status Region::Check(const core::TensorDesc& desc,
                           int64_t offset_bytes) const {
  // Neither sum overflows: ValidateTensor() looks at the first.
  const int64_t bytes = desc.offset_bytes() + desc.span_bytes();
  if (offset_bytes < 0 || offset_bytes > options_.bytes ||
      bytes > options_.bytes - offset_bytes) {
    return core::InvalidArgument("SHARED_MEMORY_OUT_OF_RANGE", bytes,
                                 " bytes at ", offset_bytes,
                                 " do not lie in the ", options_.bytes,
                                 " bytes of region ", options_.id);
  }
  if (offset_bytes % kAlignment != 0) {
    return core::InvalidArgument("SHARED_MEMORY_MISALIGNED", "offset_bytes is ",
                                 offset_bytes, ", wanted a multiple of ",
                                 kAlignment,
                                 "; the layout's offset takes the rest");
  }
  return absl::OkStatus();
}

absl::Status Region::Gone() const {
  return core::FailedPrecondition(
      "SHARED_MEMORY_GONE", "region ", options_.id,
      " was taken back, or has gone with its connection");
}

absl::Status Region::Pin(
    absl::FunctionRef<absl::StatusOr<std::unique_ptr<core::PinnedRange>>(
        void* start, int64_t bytes)>
        pin) {
  absl::MutexLock pinning(&pinning_);
  {
    absl::MutexLock lock(&mutex_);
    if (is_dropped_) return Gone();
  }
  if (is_pinned_) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<core::PinnedRange>> pinned =
      pin(start_, options_.bytes);
  if (absl::IsInternal(pinned.status()) ||
      absl::IsUnimplemented(pinned.status())) {
    return core::FailedPrecondition("SHARED_MEMORY_NOT_PINNED",
                                    pinned.status().message());
  }
  TENSORD_RETURN_IF_ERROR(pinned.status());
  pinned_ = *std::move(pinned);
  is_pinned_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<server::Storage>> Region::Adopt(
    std::string name, const core::TensorDesc& desc, int64_t offset_bytes) {
  {
    absl::MutexLock lock(&mutex_);
    if (is_dropped_) return Gone();
    ++tensor_count_;
    ++adoptions_;
  }
  // From here on its end is Release().
  auto slice = std::make_shared<Slice>(shared_from_this(), offset_bytes);
  auto storage =
      server::Storage::OfGiven(std::move(name), desc, std::move(slice));
  absl::MutexLock lock(&mutex_);
  std::erase_if(storages_, [](const auto& known) { return known.expired(); });
  storages_.push_back(storage);
  if (is_dropped_) storage->Withdraw();  // meanwhile
  return storage;
}

void Region::Release() {
  uint64_t adoptions = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (--tensor_count_ > 0 || is_dropped_) return;
    adoptions = adoptions_;
  }
  options_.on_released(options_.id, adoptions);
}

void Region::Drop() {
  std::vector<std::shared_ptr<server::Storage>> storages;
  {
    absl::MutexLock lock(&mutex_);
    is_dropped_ = true;
    for (const auto& storage : storages_) storages.push_back(storage.lock());
  }
  for (const auto& storage : storages) {
    if (storage != nullptr) storage->Withdraw();
  }
}

bool Region::TryUnmap() {
  std::vector<std::shared_ptr<server::Storage>> storages;
  // Pinning takes longer than the one thread that asks may wait.
  if (!pinning_.TryLock()) return false;
  const absl::Cleanup unlock = [this] { pinning_.Unlock(); };
  absl::MutexLock lock(&mutex_);
  if (is_unmapped_) return true;
  for (const auto& known : storages_) {
    if (auto storage = known.lock()) storages.push_back(std::move(storage));
  }
  const bool is_used = std::ranges::any_of(
      storages, [](const auto& storage) { return !storage->is_idle(); });
  if (!is_used) {
    pinned_.reset();
    // In one step, so that no look at it finds nothing.
    void* const replaced = mmap(
        start_, static_cast<size_t>(options_.bytes), PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    is_unmapped_ = replaced == start_;
  }
  if (is_unmapped_) Uncount();
  return is_unmapped_;
}

}  // namespace tensord::shared_memory
