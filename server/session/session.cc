#include "server/session/session.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace tensord::server {
namespace {

// What a tensor's name, description and state take, by and large; of a view,
// also how it is read.
constexpr int64_t kTensorBytes = 1152;
constexpr int64_t kViewBytes = 4096;
constexpr int64_t kModeBytes = 64;  // extents and strides, twice

int64_t RecordBytes(const core::TensorDesc& desc) {
  return kTensorBytes + kModeBytes * desc.layout.mode_count();
}

/// A session's part of its tenant's `share`, which lives as long as this.
std::shared_ptr<core::LimitingResource> QuotaOn(
    std::shared_ptr<TenantAccount> account, SharedMemory::Share& share,
    int64_t bytes, std::string what) {
  struct Part {
    std::shared_ptr<TenantAccount> account;
    core::LimitingResource memory;
  };
  const std::shared_ptr<Part> part(
      new Part{std::move(account), {share, bytes, std::move(what)}});
  return std::shared_ptr<core::LimitingResource>(part, &part->memory);
}

/// A view of a tensor, or of what that sees.
/// Errors  as TensorView::Create().
absl::StatusOr<TensorView> ViewOf(const StoredTensor& viewed,
                                  absl::Span<const ViewStage> stages,
                                  const std::optional<core::Scalar>& padding) {
  const TensorView* const below = viewed.view();
  return TensorView::Create(below != nullptr ? below->viewed() : viewed.name(),
                            viewed.storage().desc(), below, stages, padding);
}

}  // namespace

Session::Session(std::string name, uint64_t number, Device& device,
                 SessionOptions options, std::shared_ptr<TenantAccount> account)
    : name_(std::move(name)),
      device_(device),
      options_(std::move(options)),
      account_(account != nullptr
                   ? std::move(account)
                   : std::make_shared<TenantAccount>(options_.tenant, nullptr)),
      client_{.number = number,
              .owner = options_.owner,
              .priority = options_.priority,
              .share = account_->On(device).queue},
      memory_(QuotaOn(account_, account_->On(device).memory,
                      options_.memory_quota_bytes, "session quota")),
      staging_memory_(QuotaOn(account_, account_->On(device).staging,
                              device.staging_limit_bytes() / 2,
                              "the session's staging memory")),
      region_memory_(device.info().uses_host_memory
                         ? memory_
                         : QuotaOn(account_, account_->On(device).regions,
                                   device.regions_limit_bytes() / 2,
                                   "the session's shared memory")),
      host_memory_(std::make_shared<HostLedger>(
          "session", options_.host_limits, std::numeric_limits<int64_t>::max(),
          account_->host_memory())),
      plans_(name_, kPlans, host_memory_),
      programs_(name_, kPrograms, host_memory_),
      touched_(Clock::now()) {}

absl::StatusOr<std::shared_ptr<StoredTensor>> Session::Add(
    absl::string_view tensor_id, core::TensorDesc desc) {
  TENSORD_RETURN_IF_ERROR(core::ValidateTensor(desc));
  return AddNamed(tensor_id, RecordBytes(desc), [&](std::string name) {
    return std::make_shared<StoredTensor>(std::move(name), device_.info().name,
                                          std::move(desc), memory_);
  });
}

absl::StatusOr<std::shared_ptr<StoredTensor>> Session::Adopt(
    absl::string_view tensor_id, const core::TensorDesc& desc,
    absl::FunctionRef<
        absl::StatusOr<std::shared_ptr<Storage>>(std::string name)>
        make) {
  using Made = absl::StatusOr<std::shared_ptr<StoredTensor>>;
  TENSORD_RETURN_IF_ERROR(core::ValidateTensor(desc));
  return AddNamed(tensor_id, RecordBytes(desc), [&](std::string name) -> Made {
    TENSORD_ASSIGN_OR_RETURN(std::shared_ptr<Storage> storage, make(name));
    return std::make_shared<StoredTensor>(std::move(name), device_.info().name,
                                          std::move(storage));
  });
}

bool Session::is_closed() const {
  absl::MutexLock lock(&mutex_);
  return closed_;
}

absl::StatusOr<std::shared_ptr<StoredTensor>> Session::AddView(
    absl::string_view tensor_id, const StoredTensor& viewed,
    absl::Span<const ViewStage> stages, std::optional<core::Scalar> padding) {
  TENSORD_ASSIGN_OR_RETURN(TensorView view, ViewOf(viewed, stages, padding));
  const int64_t bytes = RecordBytes(view.desc()) + kViewBytes;
  TENSORD_ASSIGN_OR_RETURN(auto added,
                           AddNamed(tensor_id, bytes, [&](std::string name) {
                             return std::make_shared<StoredTensor>(
                                 std::move(name), viewed, std::move(view));
                           }));
  return KeepWithOrigin(std::move(added));
}

absl::StatusOr<std::shared_ptr<StoredTensor>> Session::AddShared(
    absl::string_view tensor_id, const StoredTensor& shared,
    const std::shared_ptr<TensorShare>& share) {
  TENSORD_ASSIGN_OR_RETURN(
      TensorView view,
      TensorView::Create(share->name(), shared.storage().desc(), nullptr, {},
                         std::nullopt));
  const int64_t bytes = RecordBytes(view.desc()) + kViewBytes;
  TENSORD_ASSIGN_OR_RETURN(
      auto added, AddNamed(tensor_id, bytes, [&](std::string name) {
        return std::make_shared<StoredTensor>(std::move(name), shared,
                                              std::move(view), share);
      }));
  return KeepWithOrigin(std::move(added));
}

absl::StatusOr<std::shared_ptr<StoredTensor>> Session::KeepWithOrigin(
    std::shared_ptr<StoredTensor> added) {
  const std::shared_ptr<TensorShare>& origin = added->origin();
  if (origin == nullptr || origin->Keep(shared_from_this(), added)) {
    return added;
  }
  Remove(*added);
  return NoSuchShare(origin->name());
}

absl::StatusOr<std::shared_ptr<StoredTensor>> Session::AddNamed(
    absl::string_view tensor_id, int64_t host_bytes,
    absl::FunctionRef<
        absl::StatusOr<std::shared_ptr<StoredTensor>>(std::string name)>
        make) {
  TENSORD_RETURN_IF_ERROR(ValidateId(tensor_id, kTensors));
  absl::MutexLock lock(&mutex_);
  if (closed_) return SessionClosed(name_);
  std::string name;
  do {
    name = NameIn(name_, kTensors,
                  tensor_id.empty() ? absl::StrCat("t", next_id_++)
                                    : std::string(tensor_id));
  } while (tensor_id.empty() && tensors_.contains(name));
  if (tensors_.contains(name)) return ExistsAlready(name, kTensors);
  HostHold hold;
  TENSORD_RETURN_IF_ERROR(
      hold.Take(host_memory_, HostUse::kTensors, host_bytes));
  TENSORD_ASSIGN_OR_RETURN(std::shared_ptr<StoredTensor> tensor, make(name));
  if (tensor->view() != nullptr && ++view_count_ > kMaxViews) {
    --view_count_;
    return core::Error(
        absl::StatusCode::kResourceExhausted, "TOO_MANY_VIEWS",
        absl::StrCat("the session has ", kMaxViews, " views; delete some"));
  }
  tensors_.emplace(std::move(name), Kept{tensor, std::move(hold)});
  return tensor;
}

std::shared_ptr<StoredTensor> Session::Take(Tensors::iterator at) {
  std::shared_ptr<StoredTensor> taken = std::move(at->second.tensor);
  if (taken->view() != nullptr) --view_count_;
  tensors_.erase(at);
  return taken;
}

absl::StatusOr<std::shared_ptr<StoredTensor>> Session::Find(
    absl::string_view tensor_name) const {
  const absl::string_view session_name = SessionOf(tensor_name, kTensors);
  if (session_name.empty()) return NameMalformed(tensor_name, kTensors);
  // Another session's tensors do not exist as far as this one can tell.
  if (session_name != name_) return NoSuch(tensor_name, kTensors);
  absl::MutexLock lock(&mutex_);
  const auto found = tensors_.find(std::string(tensor_name));
  if (found == tensors_.end()) return NoSuch(tensor_name, kTensors);
  return found->second.tensor;
}

absl::StatusOr<std::shared_ptr<StoredTensor>> Session::Find(
    absl::string_view tensor_name, const std::optional<ViewRequest>& view,
    absl::string_view what) const {
  auto found = Find(tensor_name);
  if (!view || !found.ok()) return found;
  auto seen = ViewOf(**found, view->stages, view->padding);
  if (!seen.ok()) {
    return core::Error(seen.status().code(), core::ReasonOf(seen.status()),
                       absl::StrCat("the view of ", tensor_name, " that ", what,
                                    " is: ", seen.status().message()));
  }
  return std::make_shared<StoredTensor>((*found)->name(), **found,
                                        *std::move(seen));
}

absl::Status Session::Remove(absl::string_view tensor_name) {
  std::shared_ptr<StoredTensor> removed;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = tensors_.find(std::string(tensor_name));
    if (found == tensors_.end()) return NoSuch(tensor_name, kTensors);
    removed = Take(found);
  }
  removed->Forget();
  return absl::OkStatus();
}

void Session::Remove(const StoredTensor& tensor) {
  std::shared_ptr<StoredTensor> removed;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = tensors_.find(tensor.name());
    if (found == tensors_.end() || found->second.tensor.get() != &tensor) {
      return;
    }
    removed = Take(found);
  }
  removed->Forget();
}

std::vector<std::shared_ptr<StoredTensor>> Session::List(
    absl::string_view after, int count) const {
  std::vector<std::shared_ptr<StoredTensor>> list;
  absl::MutexLock lock(&mutex_);
  for (auto at = tensors_.upper_bound(std::string(after));
       at != tensors_.end() && std::ssize(list) < count; ++at) {
    list.push_back(at->second.tensor);
  }
  return list;
}

int64_t Session::tensor_count() const {
  absl::MutexLock lock(&mutex_);
  return std::ssize(tensors_);
}

void Session::Touch() {
  absl::MutexLock lock(&mutex_);
  touched_ = Clock::now();
}

void Session::BeginUse(bool is_work) {
  absl::MutexLock lock(&mutex_);
  ++uses_;
  works_ += is_work ? 1 : 0;
}

void Session::EndUse(bool is_work) {
  absl::MutexLock lock(&mutex_);
  --uses_;
  touched_ = Clock::now();
  if (!is_work) return;
  --works_;
  worked_ = touched_;
}

bool Session::IsExpired(Clock::time_point now) const {
  absl::MutexLock lock(&mutex_);
  return uses_ == 0 && absl::FromChrono(now - touched_) > options_.lease;
}

Session::Ages Session::ages() const {
  absl::MutexLock lock(&mutex_);
  const Clock::time_point now = Clock::now();
  const auto since = [now](Clock::time_point then) {
    return absl::FromChrono(now - then);
  };
  return {
      .age = since(opened_),
      .idle = works_ > 0 ? absl::ZeroDuration() : since(worked_),
      .lease_left = std::max(absl::ZeroDuration(),
                             options_.lease - (uses_ > 0 ? absl::ZeroDuration()
                                                         : since(touched_)))};
}

void Session::Close() {
  device_.worker().StopAll(number());
  Tensors closing;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    closing.swap(tensors_);
    plans_.Close();
    programs_.Close();
  }
  for (const auto& [name, kept] : closing) kept.tensor->Forget();
}

}  // namespace tensord::server
