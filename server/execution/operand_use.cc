#include "server/execution/operand_use.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/view/disjoint.h"

namespace tensord::server {
namespace {

core::StridedView Strided(const core::TensorDesc& desc) {
  return {desc.layout.extents, desc.layout.strides, desc.offset};
}

}  // namespace

absl::StatusOr<OperandUse> OperandUse::OfNew(Session& session,
                                             absl::string_view tensor_id,
                                             core::TensorDesc desc,
                                             bool is_inline) {
  std::shared_ptr<StoredTensor> tensor;
  if (is_inline) {
    tensor = std::make_shared<StoredTensor>("", session.device().info().name,
                                            desc, session.memory());
  } else {
    TENSORD_ASSIGN_OR_RETURN(tensor, session.Add(tensor_id, desc));
  }
  const Made made = is_inline           ? Made::kInline
                    : tensor_id.empty() ? Made::kUnnamed
                                        : Made::kNamed;
  return OperandUse(std::move(tensor), std::move(desc), {.is_written = true},
                    Place::kTensor, made);
}

absl::Status OperandUse::Announce() {
  if (is_read()) {
    TENSORD_RETURN_IF_ERROR(tensor_->BeginRead());
    announced_.is_read = true;
  }
  if (is_written()) {
    TENSORD_RETURN_IF_ERROR(tensor_->BeginWrite());
    announced_.is_written = true;
  }
  return absl::OkStatus();
}

absl::Status OperandUse::CheckReady() const {
  const bool is_needed = is_read() || (is_written() && tensor_->is_part());
  return is_needed ? tensor_->CheckReady() : absl::OkStatus();
}

absl::Status OperandUse::Allocate(Session& session, bool reads) {
  if (is_written()) TENSORD_RETURN_IF_ERROR(tensor_->Allocate());
  if (is_inline() || is_sent()) {
    TENSORD_RETURN_IF_ERROR(contents_.Allocate(session, *tensor_));
  }
  if (!is_copied() || !(reads || is_written()) ||
      copy_.bytes() == desc_.span_bytes()) {
    return absl::OkStatus();
  }
  TENSORD_ASSIGN_OR_RETURN(
      copy_, core::Buffer::Allocate(*session.memory(), desc_.span_bytes()));
  return absl::OkStatus();
}

std::byte* OperandUse::first() const {
  if (!is_used()) return nullptr;
  return is_copied() ? copy_.data() : first_in_tensor();
}

std::byte* OperandUse::first_for_overlaps() const {
  return place_ == Place::kStaged ? first_in_tensor() : first();
}

int64_t OperandUse::remote_bytes(const Device& device) const {
  const bool is_remote = is_used() && tensor_->storage().is_given() &&
                         !device.info().uses_host_memory;
  return is_remote ? desc_.span_bytes() : 0;
}

bool OperandUse::is_remote(const Device& device) const {
  return !is_copied() && remote_bytes(device) > 0;
}

int64_t OperandUse::gathered_bytes(bool reads) const {
  return place_ == Place::kPacked ? desc_.span_bytes() * (reads + is_written())
                                  : 0;
}

absl::Status OperandUse::QueueIn(Device& device, core::Stream& stream) const {
  switch (place_) {
    case Place::kTensor: return absl::OkStatus();
    case Place::kPacked:
      return tensor_->view()->Gather(device, tensor_->storage().data(),
                                     copy_.data(), stream);
    case Place::kStaged:
      return stream.CopyToDevice(copy_.data(), first_in_tensor(),
                                 copy_.bytes());
  }
  __builtin_unreachable();
}

void OperandUse::StartWrite() {
  if (is_written()) tensor_->StartWrite();
}

absl::Status OperandUse::QueueOut(Device& device, core::Stream& stream) {
  if (!is_written()) return absl::OkStatus();
  if (place_ == Place::kPacked) {
    TENSORD_RETURN_IF_ERROR(tensor_->view()->Scatter(
        device, copy_.data(), tensor_->storage().data(), stream));
  } else if (place_ == Place::kStaged) {
    TENSORD_RETURN_IF_ERROR(
        stream.CopyToHost(first_in_tensor(), copy_.data(), copy_.bytes()));
  }
  return is_inline() || is_sent() ? contents_.Queue(*tensor_, stream)
                                  : absl::OkStatus();
}

void OperandUse::Written() {
  if (is_written()) tensor_->Written();
}

void OperandUse::End(Session& session, WriteResult result) {
  // While nobody else may write it.
  if (is_sent() && result == WriteResult::kDone) sent_ = Bytes();
  if (std::exchange(announced_.is_read, false)) tensor_->EndRead();
  if (std::exchange(announced_.is_written, false)) tensor_->EndWrite(result);
  copy_ = core::Buffer();
  if (tensor_ == nullptr) return;
  const bool is_kept = made_ == Made::kNamed || made_ == Made::kUnnamed;
  if (is_kept && result != WriteResult::kDone) {
    session.Remove(*tensor_);
    made_ = Made::kNot;
  }
  if (!is_written() || result != WriteResult::kDone) tensor_.reset();
}

OperandUse::Place PlaceOf(const StoredTensor& tensor,
                          const core::TensorDesc& desc,
                          OperandUse::Access access, const Device& device) {
  using Place = OperandUse::Place;
  if (!tensor.storage().is_given() || device.info().uses_host_memory) {
    return Place::kTensor;
  }
  // What lies between the elements is not the run's to write, and little of it
  // is worth being read.
  const int64_t element_bytes =
      core::ElementCount(desc.layout) * core::SizeOf(desc.element_type);
  const int64_t least =
      access.is_written ? desc.span_bytes() : desc.span_bytes() / 2;
  return least <= element_bytes ? Place::kStaged : Place::kTensor;
}

absl::Status CheckInjective(const StoredTensor& tensor,
                            absl::string_view what) {
  const TensorView* const view = tensor.view();
  if (view == nullptr || view->view().IsInjective()) return absl::OkStatus();
  const bool has_name = tensor.name() != view->viewed();
  return core::InvalidArgument(
      "OUTPUT_NOT_INJECTIVE", what,
      has_name ? absl::StrCat(" is the view ", tensor.name(), ", which")
               : " is seen as a view that",
      " has elements of ", view->viewed(),
      " more than once, wanted each at most once");
}

bool AreDisjoint(const OperandUse& x, const OperandUse& y) {
  if (!x.is_used() || !y.is_used() || x.tensor() == y.tensor() ||
      x.is_packed() || y.is_packed() ||
      &x.tensor()->storage() != &y.tensor()->storage()) {
    return false;
  }
  const core::TensorDesc& storage = x.tensor()->storage().desc();
  return core::AreDisjoint(storage.layout, storage.offset, Strided(x.desc()),
                           Strided(y.desc()));
}

namespace {

using Pair = std::optional<std::pair<size_t, size_t>>;

/// The same of operands, by number, of one storage.
Pair FindOverlapIn(absl::Span<const OperandUse> operands,
                   absl::Span<const size_t> numbers) {
  const auto written = std::ranges::find_if(
      numbers, [&](size_t i) { return operands[i].is_written(); });
  if (written == numbers.end() || numbers.size() == 1) return std::nullopt;
  std::vector<core::UsedView> views;
  std::vector<size_t> viewed;  // their numbers
  absl::flat_hash_map<const StoredTensor*, size_t> tensors;
  for (const size_t i : numbers) {
    const OperandUse& operand = operands[i];
    if (i == *written && operand.is_packed()) {
      // It is written back behind all that is only read.
      const auto other = std::ranges::find_if(numbers, [&](size_t j) {
        return j != i && operands[j].is_written();
      });
      return other == numbers.end() ? Pair() : Pair({i, *other});
    }
    if (operand.is_packed()) {
      // Made before anything is written.
      if (!operand.is_written()) continue;
      return Pair({i, *written});
    }
    const auto [known, is_new] = tensors.emplace(operand.tensor().get(), i);
    if (!is_new) {
      const size_t other = known->second;
      if (operand.is_written()) return Pair({i, other});
      if (operands[other].is_written()) return Pair({other, i});
      continue;
    }
    views.push_back({Strided(operand.desc()), operand.is_written()});
    viewed.push_back(i);
  }
  const core::TensorDesc& storage =
      operands[*written].tensor()->storage().desc();
  const Pair found = core::FindOverlap(storage.layout, storage.offset, views);
  if (!found) return std::nullopt;
  return Pair({viewed[found->first], viewed[found->second]});
}

}  // namespace

std::optional<std::pair<size_t, size_t>> FindOverlap(
    absl::Span<const OperandUse> operands) {
  absl::flat_hash_map<const Storage*, std::vector<size_t>> storages;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].is_used()) continue;
    storages[&operands[i].tensor()->storage()].push_back(i);
  }
  // The first that is written tells which.
  Pair first;
  for (const auto& [storage, numbers] : storages) {
    const Pair found = FindOverlapIn(operands, numbers);
    if (found && (!first || *found < *first)) first = found;
  }
  return first;
}

}  // namespace tensord::server
