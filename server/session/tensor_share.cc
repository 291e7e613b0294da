#include "server/session/tensor_share.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "server/session/random_name.h"
#include "server/session/session.h"
#include "server/session/stored_tensor.h"

namespace tensord::server {
namespace {

constexpr size_t kMaxShownTenant = 100;
constexpr size_t kMaxTenants = 100;

}  // namespace

absl::Status NoSuchShare(absl::string_view name) {
  return core::NotFound("SHARE_NOT_FOUND", "share '",
                        name.substr(0, kMaxShownTenant), "' does not exist");
}

absl::Status TensorShare::Allow(absl::Span<const std::string> tenants) {
  absl::MutexLock lock(&mutex_);
  size_t count = tenants_.size();
  for (const std::string& tenant : tenants) {
    count += tenants_.contains(tenant) ? 0 : 1;
  }
  if (count > kMaxTenants) {
    return core::ResourceExhausted("TOO_MANY_TENANTS_OF_SHARE", "the share of ",
                                   tenants_.size(), " tenants would be one of ",
                                   count, ", its limit is ", kMaxTenants,
                                   "; end some of them");
  }
  for (const std::string& tenant : tenants) tenants_.try_emplace(tenant);
  return absl::OkStatus();
}

bool TensorShare::Forbid(absl::Span<const std::string> tenants) {
  std::vector<View> views;
  bool is_left = false;
  {
    absl::MutexLock lock(&mutex_);
    std::erase_if(tenants_, [&](auto& entry) {
      if (!tenants.empty() && std::ranges::count(tenants, entry.first) == 0) {
        return false;
      }
      std::ranges::move(entry.second, std::back_inserter(views));
      return true;
    });
    is_left = !tenants_.empty();
  }
  for (const View& view : views) {
    const auto session = view.session.lock();
    const auto tensor = view.tensor.lock();
    if (session != nullptr && tensor != nullptr) session->Remove(*tensor);
  }
  return is_left;
}

std::vector<std::string> TensorShare::tenants() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> names;
  for (const auto& [tenant, views] : tenants_) names.push_back(tenant);
  return names;
}

absl::StatusOr<std::shared_ptr<StoredTensor>> TensorShare::Open(
    const std::shared_ptr<Session>& session, absl::string_view tensor_id) {
  {
    absl::MutexLock lock(&mutex_);
    if (!tenants_.contains(session->options().tenant)) {
      return NoSuchShare(name_);
    }
  }
  const std::shared_ptr<StoredTensor> tensor = tensor_.lock();
  if (tensor == nullptr) return NoSuchShare(name_);
  if (tensor->device() != session->device().info().name) {
    return core::InvalidArgument("DEVICE_DIFFERS", "share ", name_, " is on ",
                                 tensor->device(), ", the session on ",
                                 session->device().info().name,
                                 ", wanted a session on the share's device");
  }
  return session->AddShared(tensor_id, *tensor, shared_from_this());
}

bool TensorShare::Keep(const std::shared_ptr<Session>& session,
                       const std::shared_ptr<StoredTensor>& view) {
  absl::MutexLock lock(&mutex_);
  const auto tenant = tenants_.find(session->options().tenant);
  if (tenant == tenants_.end()) return false;
  std::vector<View>& views = tenant->second;
  // Amortized: as many are looked at as were added since.
  if (views.size() == views.capacity()) {
    std::erase_if(views,
                  [](const View& view) { return view.tensor.expired(); });
    views.reserve(2 * views.size() + 8);
  }
  views.push_back({session, view});
  return true;
}

absl::StatusOr<std::shared_ptr<TensorShare>> TensorShares::Add(
    const std::shared_ptr<StoredTensor>& tensor,
    absl::Span<const std::string> tenants) {
  TENSORD_ASSIGN_OR_RETURN(std::string name, RandomName("shares/"));
  TENSORD_ASSIGN_OR_RETURN(
      std::shared_ptr<TensorShare> share,
      tensor->Share(std::make_shared<TensorShare>(std::move(name), tensor),
                    tenants));
  absl::MutexLock lock(&mutex_);
  if (shares_.size() > 2 * kept_count_ + 16) {
    std::erase_if(shares_,
                  [](const auto& entry) { return entry.second.expired(); });
    kept_count_ = shares_.size();
  }
  shares_.try_emplace(share->name(), share);
  return share;
}

absl::StatusOr<std::shared_ptr<TensorShare>> TensorShares::Find(
    absl::string_view name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = shares_.find(name);
  auto share = found == shares_.end() ? nullptr : found->second.lock();
  if (share == nullptr) return NoSuchShare(name);
  return share;
}

}  // namespace tensord::server
