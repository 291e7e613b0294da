#include "server/session/storage.h"

#include <utility>

#include "core/base/status.h"

namespace tensord::server {
namespace {

const char* Describe(TensorState state) {
  switch (state) {
    case TensorState::kEmpty: return "it has no contents yet";
    case TensorState::kPartial: return "its upload is not complete";
    case TensorState::kPending: return "an operation is writing it";
    case TensorState::kReady: return "it is ready";
    case TensorState::kInvalid:
      return "the operation that should have written it failed";
  }
  __builtin_unreachable();
}

}  // namespace

Storage::Storage(std::string name, core::TensorDesc desc,
                 std::shared_ptr<core::MemoryResource> memory)
    : Storage(std::move(name), std::move(desc), std::move(memory),
              /*is_given=*/false) {}

Storage::Storage(std::string name, core::TensorDesc desc,
                 std::shared_ptr<core::MemoryResource> memory, bool is_given)
    : name_(std::move(name)),
      desc_(std::move(desc)),
      memory_(std::move(memory)),
      is_given_(is_given),
      has_memory_(desc_.offset_bytes() + desc_.span_bytes() == 0) {}

std::shared_ptr<Storage> Storage::OfGiven(
    std::string name, core::TensorDesc desc,
    std::shared_ptr<core::MemoryResource> memory) {
  const std::shared_ptr<Storage> storage(
      new Storage(std::move(name), std::move(desc), std::move(memory),
                  /*is_given=*/true));
  absl::MutexLock allocating(&storage->allocation_mutex_);
  const int64_t bytes =
      storage->desc_.offset_bytes() + storage->desc_.span_bytes();
  absl::StatusOr<core::Buffer> given =
      core::Buffer::Allocate(*storage->memory_, bytes);
  if (given.ok()) storage->tensor_ = {storage->desc_, *std::move(given)};
  storage->has_memory_ = true;
  absl::MutexLock lock(&storage->mutex_);
  storage->contents_ = TensorState::kReady;
  storage->committed_bytes_ = storage->desc_.span_bytes();
  return storage;
}

void Storage::Withdraw() {
  absl::MutexLock lock(&mutex_);
  is_withdrawn_ = true;
  contents_ = TensorState::kInvalid;
  committed_bytes_ = 0;
  ++version_;
}

bool Storage::is_idle() const {
  absl::MutexLock lock(&mutex_);
  return reads_ == 0 && writes_ == 0 && !uploading_;
}

absl::Status Storage::CheckThere() const {
  if (!is_withdrawn_) return absl::OkStatus();
  return core::FailedPrecondition(
      "SHARED_MEMORY_GONE", "tensor ", name_,
      " was in shared memory, which its client has taken back, or which has "
      "gone with its client's connection");
}

absl::Status Storage::NotReady(TensorState state) const {
  return core::FailedPrecondition("TENSOR_NOT_READY", "tensor ", name_,
                                  " cannot be read: ", Describe(state));
}

absl::Status Storage::Allocate() {
  const int64_t bytes = desc_.offset_bytes() + desc_.span_bytes();
  absl::MutexLock lock(&allocation_mutex_);
  if (has_memory()) return absl::OkStatus();
  TENSORD_ASSIGN_OR_RETURN(core::Buffer buffer,
                           core::Buffer::Allocate(*memory_, bytes));
  if (desc_.offset > 0 || !core::IsDense(desc_.layout)) {
    TENSORD_RETURN_IF_ERROR(buffer.Clear());
  }
  tensor_ = {desc_, std::move(buffer)};
  has_memory_ = true;
  return absl::OkStatus();
}

TensorState Storage::state() const {
  absl::MutexLock lock(&mutex_);
  return writes_ > 0 ? TensorState::kPending : contents_;
}

int64_t Storage::committed_bytes() const {
  absl::MutexLock lock(&mutex_);
  return committed_bytes_;
}

uint64_t Storage::version() const {
  absl::MutexLock lock(&mutex_);
  return version_;
}

absl::Status Storage::BeginRead() {
  absl::MutexLock lock(&mutex_);
  TENSORD_RETURN_IF_ERROR(CheckThere());
  if (writes_ == 0 && contents_ != TensorState::kReady) {
    return NotReady(contents_);
  }
  ++reads_;
  return absl::OkStatus();
}

void Storage::EndRead() {
  absl::MutexLock lock(&mutex_);
  --reads_;
}

absl::Status Storage::BeginForeignRead() {
  absl::MutexLock lock(&mutex_);
  TENSORD_RETURN_IF_ERROR(CheckThere());
  // What its own session has queued is on another stream.
  if (writes_ > 0 || uploading_) return NotReady(TensorState::kPending);
  if (contents_ != TensorState::kReady) return NotReady(contents_);
  ++reads_;
  ++foreign_reads_;
  return absl::OkStatus();
}

void Storage::EndForeignRead() {
  absl::MutexLock lock(&mutex_);
  --reads_;
  --foreign_reads_;
}

absl::Status Storage::Freeze() {
  absl::MutexLock lock(&mutex_);
  TENSORD_RETURN_IF_ERROR(CheckThere());
  if (writes_ > 0 || uploading_) return NotReady(TensorState::kPending);
  if (contents_ != TensorState::kReady) return NotReady(contents_);
  is_frozen_ = true;
  return absl::OkStatus();
}

void Storage::Thaw() {
  absl::MutexLock lock(&mutex_);
  is_frozen_ = false;
}

absl::Status Storage::CheckUnshared() const {
  if (is_frozen_) {
    return core::FailedPrecondition("TENSOR_SHARED", "tensor ", name_,
                                    " cannot be written while it is shared; "
                                    "unshare it, or write a copy");
  }
  if (foreign_reads_ > 0) {
    return core::FailedPrecondition(
        "TENSOR_BUSY", "tensor ", name_,
        " was shared, and is still being read; retry soon");
  }
  return absl::OkStatus();
}

absl::Status Storage::CheckReady() const {
  absl::MutexLock lock(&mutex_);
  TENSORD_RETURN_IF_ERROR(CheckThere());
  return contents_ == TensorState::kReady ? absl::OkStatus()
                                          : NotReady(contents_);
}

absl::Status Storage::CheckSettled() const {
  absl::MutexLock lock(&mutex_);
  TENSORD_RETURN_IF_ERROR(CheckThere());
  if (launched_writes_ > 0) return NotReady(TensorState::kPending);
  return contents_ == TensorState::kReady ? absl::OkStatus()
                                          : NotReady(contents_);
}

absl::Status Storage::BeginWrite(bool is_part) {
  absl::MutexLock lock(&mutex_);
  TENSORD_RETURN_IF_ERROR(CheckThere());
  TENSORD_RETURN_IF_ERROR(CheckUnshared());
  if (uploading_) {
    return core::FailedPrecondition("TENSOR_BUSY", "tensor ", name_,
                                    " is being uploaded");
  }
  if (is_part && writes_ == 0 && contents_ != TensorState::kReady) {
    return core::FailedPrecondition(
        "TENSOR_NOT_READY", "a part of tensor ", name_,
        " cannot be written: ", Describe(contents_), "; write all of it first");
  }
  ++writes_;
  return absl::OkStatus();
}

void Storage::StartWrite(bool is_part) {
  absl::MutexLock lock(&mutex_);
  contents_ = TensorState::kInvalid;
  committed_bytes_ = 0;
  ++launched_writes_;
  if (!is_part) {
    ++launched_rewrites_;
    is_damaged_ = false;
  }
  ++version_;
}

void Storage::Written() {
  absl::MutexLock lock(&mutex_);
  if (is_damaged_ || is_withdrawn_) return;
  contents_ = TensorState::kReady;
  committed_bytes_ = desc_.span_bytes();
}

void Storage::EndWrite(WriteResult result, bool is_part) {
  absl::MutexLock lock(&mutex_);
  --writes_;
  if (result == WriteResult::kUntouched) return;
  --launched_writes_;
  if (!is_part) --launched_rewrites_;
  // What was launched behind it, of all, has written, or fails, too.
  if (result == WriteResult::kFailed && launched_rewrites_ == 0) {
    is_damaged_ = true;
    contents_ = TensorState::kInvalid;
    committed_bytes_ = 0;
  }
}

bool Storage::awaits_write() const {
  absl::MutexLock lock(&mutex_);
  return writes_ > 0;
}

bool Storage::in_use() const {
  absl::MutexLock lock(&mutex_);
  return reads_ > 0 || writes_ > 0;
}

absl::Status Storage::BeginUpload(int64_t offset_bytes) {
  absl::MutexLock lock(&mutex_);
  TENSORD_RETURN_IF_ERROR(CheckThere());
  TENSORD_RETURN_IF_ERROR(CheckUnshared());
  if (uploading_ || reads_ > 0 || writes_ > 0) {
    return core::FailedPrecondition(
        "TENSOR_BUSY", "tensor ", name_,
        uploading_ ? " is being uploaded already" : " is used by an operation");
  }
  const bool resumes =
      contents_ == TensorState::kPartial && offset_bytes == committed_bytes_;
  if (offset_bytes != 0 && !resumes) {
    const std::string resume = contents_ == TensorState::kPartial
                                   ? absl::StrCat(" or ", committed_bytes_)
                                   : std::string();
    return core::InvalidArgument("CHUNK_OUT_OF_ORDER", "upload to ", name_,
                                 " starts at byte ", offset_bytes, ", wanted 0",
                                 resume);
  }
  uploading_ = true;
  if (!resumes) committed_bytes_ = 0;
  is_damaged_ = false;
  contents_ =
      desc_.span_bytes() == 0 ? TensorState::kReady : TensorState::kPartial;
  ++version_;
  return absl::OkStatus();
}

void Storage::Commit(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  if (is_withdrawn_) return;
  committed_bytes_ += bytes;
  if (committed_bytes_ == desc_.span_bytes()) contents_ = TensorState::kReady;
}

void Storage::EndUpload() {
  absl::MutexLock lock(&mutex_);
  uploading_ = false;
}

}  // namespace tensord::server
