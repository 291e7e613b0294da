// A tensor in the use of one run: announced, copied in and out, ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/memory/memory_resource.h"
#include "core/tensor/tensor.h"
#include "server/engine/engine.h"
#include "server/execution/inline_contents.h"
#include "server/session/session.h"
#include "server/session/stored_tensor.h"

namespace tensord::server {

/// What a run does with one tensor, from the announcement to the end. A view
/// that does not lie in place is read and written by way of a packed copy, and
/// the host's memory by way of one in the memory of a device that has its own.
///
/// Threads  one after the other, as its run's.
class OperandUse {
 public:
  using WriteResult = StoredTensor::WriteResult;
  struct Access {
    bool is_read = false;
    bool is_written = false;
  };
  /// Where kernels find or put the elements.
  enum class Place {
    kTensor,
    kPacked,  // in a packed copy, made and brought back by the view
    kStaged,  // in a copy of the tensor, in the device's memory
  };
  /// What becomes of a tensor that the run makes.
  enum class Made {
    kNot,      // it was there before
    kNamed,    // kept by the session, by a name of the client's
    kUnnamed,  // by a name of the server's
    kInline,   // goes with the response
  };

  /// None: nothing is read or written.
  OperandUse() = default;
  /// `desc` is what kernels see: of the tensor or of a packed copy of it.
  OperandUse(std::shared_ptr<StoredTensor> tensor, core::TensorDesc desc,
             Access access, Place place, Made made = Made::kNot)
      : tensor_(std::move(tensor)),
        desc_(std::move(desc)),
        access_(access),
        place_(place),
        made_(made) {}
  /// The use of a tensor that the run makes, named `tensor_id` or by the
  /// session, or of an inline one.
  /// Errors  as Session::Add().
  static absl::StatusOr<OperandUse> OfNew(Session& session,
                                          absl::string_view tensor_id,
                                          core::TensorDesc desc,
                                          bool is_inline);
  OperandUse(OperandUse&&) = default;
  OperandUse& operator=(OperandUse&&) = default;

  /// Null of none, and after End() unless the run wrote it.
  const std::shared_ptr<StoredTensor>& tensor() const { return tensor_; }
  const core::TensorDesc& desc() const { return desc_; }
  bool is_read() const { return access_.is_read; }
  bool is_written() const { return access_.is_written; }
  bool is_used() const { return is_read() || is_written(); }
  bool is_copied() const { return place_ != Place::kTensor; }
  bool is_packed() const { return place_ == Place::kPacked; }
  Made made() const { return made_; }
  bool is_inline() const { return made_ == Made::kInline; }
  /// Whether the response brings the bytes of what is kept, too.
  bool is_sent() const { return is_sent_; }

  /// Says so, of a tensor that the run makes and nobody else knows.
  void Send() { is_sent_ = true; }

  /// Announces what it is for, in the session's order.
  /// Errors  those of StoredTensor::BeginRead() and BeginWrite().
  absl::Status Announce();
  /// Errors  FAILED_PRECONDITION: what should have written it before failed.
  absl::Status CheckReady() const;
  /// Takes the memory that it needs; may be called again. `reads`: it is read
  /// this time.
  /// Errors  RESOURCE_EXHAUSTED.
  absl::Status Allocate(Session& session, bool reads);
  /// The first element, where kernels find or put it.
  /// Requires  Allocate().ok().
  std::byte* first() const;
  /// The same as far as others' elements are concerned: a staged tensor stands
  /// for the elements that it has in its own memory.
  std::byte* first_for_overlaps() const;
  /// Bytes of the host's memory that the device reaches for.
  int64_t remote_bytes(const Device& device) const;
  /// Whether kernels themselves do so.
  bool is_remote(const Device& device) const;
  /// Bytes of a packed copy that are gathered, if it `reads`, and scattered.
  int64_t gathered_bytes(bool reads) const;

  /// Queues copying it to where kernels read it.
  absl::Status QueueIn(Device& device, core::Stream& stream) const;
  /// Its contents are undefined until Written().
  void StartWrite();
  /// Queues copying it from where kernels wrote it.
  absl::Status QueueOut(Device& device, core::Stream& stream);
  /// All that writes it is queued.
  void Written();

  /// Ends what was announced. A tensor that the run made is removed unless
  /// `result` is kDone.
  void End(Session& session, WriteResult result);
  /// The bytes of an inline one.
  /// Requires  it was written, and that is done.
  std::string Bytes() const { return contents_.Bytes(*tensor_); }
  /// The bytes of one that is sent, as of its End().
  const std::string& sent() const { return sent_; }

 private:
  /// The first element in the tensor.
  std::byte* first_in_tensor() const {
    return tensor_->storage().data() + desc_.offset_bytes();
  }

  std::shared_ptr<StoredTensor> tensor_;
  core::TensorDesc desc_;
  Access access_;
  Place place_ = Place::kTensor;
  Made made_ = Made::kNot;
  bool is_sent_ = false;
  std::string sent_;
  Access announced_;
  core::Buffer copy_;
  InlineOutput contents_;
};

/// kStaged or kTensor: where kernels of `device` are better off with a tensor
/// that `desc` describes as it lies.
OperandUse::Place PlaceOf(const StoredTensor& tensor,
                          const core::TensorDesc& desc,
                          OperandUse::Access access, const Device& device);

/// OK when writing to `tensor`, which messages call `what`, writes no element
/// twice.
/// Errors  INVALID_ARGUMENT, reason OUTPUT_NOT_INJECTIVE.
absl::Status CheckInjective(const StoredTensor& tensor, absl::string_view what);

/// True when both are known to share no element.
bool AreDisjoint(const OperandUse& x, const OperandUse& y);

/// Two of the operands of a program of which the first is written, and may
/// share an element with the other when it is used; nothing when there are
/// none. As core::FindOverlap() has it, whatever the storage.
std::optional<std::pair<size_t, size_t>> FindOverlap(
    absl::Span<const OperandUse> operands);

}  // namespace tensord::server
