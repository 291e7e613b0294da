// The contents of a tensor, and who is using them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "core/tensor/tensor.h"

namespace tensord::server {

/// What a client may know of a tensor's contents.
enum class TensorState {
  kEmpty,
  kPartial,  // an upload is under way or broke off
  kPending,  // an operation that writes it is queued or running
  kReady,
  kInvalid,  // the operation that should have written it failed
};

/// Memory with contents, apart from the name by which they are found.
///
/// Operations announce their reads and writes when they are received, which is
/// the order in which they take effect, and end them when they are done. In
/// between they are launched, in the same order: what an operation finds then
/// is what those before it have queued on the same stream, done or not.
///
/// Threads   safe for concurrent use. Contents: whoever has begun a write or an
///           upload and not ended it may write them; readers are in order
///           behind or before it.
/// Lifetime  shared; `memory` lives as long.
class Storage {
 public:
  /// Requires  ValidateTensor(desc).ok(). Owns no memory before Allocate().
  /// `name` is that of the tensor, for messages.
  Storage(std::string name, core::TensorDesc desc,
          std::shared_ptr<core::MemoryResource> memory);

  /// One whose memory has its contents already: `memory`, which is the host's,
  /// gives it once, and whoever owns it may withdraw it.
  /// Requires  as above.
  static std::shared_ptr<Storage> OfGiven(
      std::string name, core::TensorDesc desc,
      std::shared_ptr<core::MemoryResource> memory);

  const std::string& name() const { return name_; }
  /// What the memory is laid out for.
  const core::TensorDesc& desc() const { return desc_; }
  /// Whether it is OfGiven() memory of the host.
  bool is_given() const { return is_given_; }

  /// Allocates the memory unless that has happened; zeroes it if the layout has
  /// gaps or an offset, which nobody would write.
  ///
  /// Concurrent calls wait for the first; whoever accesses the contents has
  /// called it before.
  /// Errors  RESOURCE_EXHAUSTED.
  absl::Status Allocate();

  /// Whether Allocate() has nothing left to do; never waits.
  bool has_memory() const { return has_memory_.load(); }

  /// Address of the memory.
  /// Requires  Allocate().ok() before.
  std::byte* data() const { return tensor_.buffer.data(); }

  TensorState state() const;
  int64_t committed_bytes() const;
  /// Changes with every change of the contents.
  uint64_t version() const;

  /// Announces an operation that reads the contents.
  /// Errors  FAILED_PRECONDITION, reason TENSOR_NOT_READY: there are none and
  ///         none are to come.
  absl::Status BeginRead();
  void EndRead();
  /// The same of an operation of another session, whose order is another: while
  /// there is one, no write begins.
  absl::Status BeginForeignRead();
  void EndForeignRead();
  /// OK when an operation that is launched now finds contents.
  /// Errors  FAILED_PRECONDITION, reason TENSOR_NOT_READY.
  absl::Status CheckReady() const;
  /// OK when there are contents that no operation is writing.
  /// Errors  as CheckReady().
  absl::Status CheckSettled() const;

  /// Announces an operation that writes the contents: all of them, or a part.
  /// Errors  FAILED_PRECONDITION, reason TENSOR_BUSY: an upload is under way,
  /// or
  ///         others read; reason TENSOR_NOT_READY: of what is written in part
  ///         there are none and none are to come; reason TENSOR_SHARED: it is
  ///         frozen.
  absl::Status BeginWrite(bool is_part = false);
  /// The write, of all or a part, is being launched: the contents are undefined
  /// until Written().
  void StartWrite(bool is_part = false);
  /// All that writes the contents is queued.
  void Written();
  enum class WriteResult {
    kUntouched,  // StartWrite() was not called
    kDone,
    kFailed,  // undefined, unless a later write of all of it is launched
  };
  /// Ends a write that was announced; those launched end in their order.
  void EndWrite(WriteResult result, bool is_part = false);

  /// True when an operation has announced a write.
  bool awaits_write() const;
  /// True when an operation has announced a read or a write.
  bool in_use() const;

  /// Nothing writes the contents until Thaw().
  /// Errors  FAILED_PRECONDITION, reason TENSOR_NOT_READY: there are none, or
  ///         something is to write them.
  absl::Status Freeze();
  void Thaw();

  /// The memory is about to go: nobody begins to use it any more. What has
  /// begun goes on, but what is not launched yet fails.
  void Withdraw();
  /// Nobody uses the memory.
  bool is_idle() const;

  /// Starts an upload at `offset_bytes` of the first element.
  /// Errors  FAILED_PRECONDITION, reason TENSOR_BUSY: operations or another
  ///         upload use the tensor; reason TENSOR_SHARED. INVALID_ARGUMENT,
  ///         reason CHUNK_OUT_OF_ORDER: the offset is neither 0 nor
  ///         committed_bytes().
  absl::Status BeginUpload(int64_t offset_bytes);
  /// The next `bytes` bytes are in place and verified.
  void Commit(int64_t bytes);
  void EndUpload();

 private:
  Storage(std::string name, core::TensorDesc desc,
          std::shared_ptr<core::MemoryResource> memory, bool is_given);

  absl::Status NotReady(TensorState state) const;
  /// OK unless it was withdrawn.
  absl::Status CheckThere() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  /// OK when others than its own session leave it alone.
  absl::Status CheckUnshared() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const std::string name_;
  const core::TensorDesc desc_;
  const std::shared_ptr<core::MemoryResource> memory_;
  const bool is_given_;
  absl::Mutex allocation_mutex_;
  core::Tensor tensor_;  // written once, under allocation_mutex_
  std::atomic<bool> has_memory_;

  mutable absl::Mutex mutex_;
  TensorState contents_ ABSL_GUARDED_BY(mutex_) = TensorState::kEmpty;
  int64_t committed_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  int reads_ ABSL_GUARDED_BY(mutex_) = 0;
  int foreign_reads_ ABSL_GUARDED_BY(mutex_) = 0;  // of those
  bool is_frozen_ ABSL_GUARDED_BY(mutex_) = false;
  int writes_ ABSL_GUARDED_BY(mutex_) = 0;             // announced
  int launched_writes_ ABSL_GUARDED_BY(mutex_) = 0;    // of those
  int launched_rewrites_ ABSL_GUARDED_BY(mutex_) = 0;  // of all of it
  // A write failed, and none of all of it was launched behind.
  bool is_damaged_ ABSL_GUARDED_BY(mutex_) = false;
  bool uploading_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_withdrawn_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tensord::server
