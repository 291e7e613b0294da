#include "server/session/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status.h"

namespace tensord::server {
namespace {

constexpr absl::string_view kTensors = "/tensors/";
constexpr absl::string_view kPlans = "/plans/";
constexpr size_t kMaxIdLength = 128;
constexpr size_t kMaxShownName = 300;

/// `reason` and `field` say whose id it is.
absl::Status ValidateId(absl::string_view id, absl::string_view reason,
                        absl::string_view field) {
  const auto is_allowed = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
           c == '-' || c == '.';
  };
  if (id.size() > kMaxIdLength ||
      !std::all_of(id.begin(), id.end(), is_allowed)) {
    return core::InvalidArgument(
        reason, field, " '", id.substr(0, kMaxIdLength), "' wanted as 1 to ",
        kMaxIdLength, " letters, digits, '_', '-' or '.'");
  }
  return absl::OkStatus();
}

absl::string_view SessionOf(absl::string_view name,
                            absl::string_view collection) {
  const size_t at = name.find(collection);
  return at == absl::string_view::npos ? absl::string_view()
                                       : name.substr(0, at);
}

absl::Status NoSuchPlan(absl::string_view name) {
  return core::NotFound("PLAN_NOT_FOUND", "plan '",
                        name.substr(0, kMaxShownName), "' does not exist");
}

absl::Status NoSuchTensor(absl::string_view name) {
  return core::NotFound("TENSOR_NOT_FOUND", "tensor '",
                        name.substr(0, kMaxShownName), "' does not exist");
}

}  // namespace

absl::string_view SessionOfTensor(absl::string_view tensor_name) {
  return SessionOf(tensor_name, kTensors);
}

absl::string_view SessionOfPlan(absl::string_view plan_name) {
  return SessionOf(plan_name, kPlans);
}

Session::Session(std::string name, uint64_t number, Device& device,
                 SessionOptions options)
    : name_(std::move(name)),
      number_(number),
      device_(device),
      options_(std::move(options)),
      memory_(std::make_shared<core::LimitingResource>(
          device.memory(), options_.memory_quota_bytes, "session quota")),
      staging_memory_(std::make_shared<core::LimitingResource>(
          device.staging_memory(), device.staging_limit_bytes() / 2,
          "the session's staging memory")),
      touched_(absl::Now()) {}

absl::StatusOr<std::shared_ptr<StoredTensor>> Session::Add(
    absl::string_view tensor_id, core::TensorDesc desc) {
  TENSORD_RETURN_IF_ERROR(core::ValidateTensor(desc));
  return AddNamed(tensor_id, [&](std::string name) {
    return std::make_shared<StoredTensor>(std::move(name), device_.info().name,
                                          std::move(desc), memory_);
  });
}

absl::StatusOr<std::shared_ptr<StoredTensor>> Session::AddView(
    absl::string_view tensor_id, const StoredTensor& viewed,
    absl::Span<const ViewStage> stages, std::optional<core::Scalar> padding) {
  const TensorView* const below = viewed.view();
  TENSORD_ASSIGN_OR_RETURN(
      TensorView view,
      TensorView::Create(below != nullptr ? below->viewed() : viewed.name(),
                         viewed.storage().desc(), below, stages, padding));
  return AddNamed(tensor_id, [&](std::string name) {
    return std::make_shared<StoredTensor>(std::move(name), viewed,
                                          std::move(view));
  });
}

absl::StatusOr<std::shared_ptr<StoredTensor>> Session::AddNamed(
    absl::string_view tensor_id,
    absl::FunctionRef<std::shared_ptr<StoredTensor>(std::string name)> make) {
  TENSORD_RETURN_IF_ERROR(
      ValidateId(tensor_id, "TENSOR_ID_MALFORMED", "tensor_id"));
  absl::MutexLock lock(&mutex_);
  if (closed_) {
    return core::NotFound("SESSION_NOT_FOUND", "session '", name_,
                          "' was closed");
  }
  std::string name;
  do {
    name = absl::StrCat(
        name_, kTensors,
        tensor_id.empty() ? absl::StrCat("t", next_id_++) : tensor_id);
  } while (tensor_id.empty() && tensors_.contains(name));
  if (tensors_.contains(name)) {
    return core::Error(absl::StatusCode::kAlreadyExists,
                       "TENSOR_ALREADY_EXISTS",
                       absl::StrCat("tensor '", name, "' exists already"));
  }
  std::shared_ptr<StoredTensor> tensor = make(name);
  if (tensor->view() != nullptr && ++view_count_ > kMaxViews) {
    --view_count_;
    return core::Error(
        absl::StatusCode::kResourceExhausted, "TOO_MANY_VIEWS",
        absl::StrCat("the session has ", kMaxViews, " views; delete some"));
  }
  tensors_.emplace(std::move(name), tensor);
  return tensor;
}

absl::StatusOr<std::shared_ptr<StoredTensor>> Session::Find(
    absl::string_view tensor_name) const {
  const absl::string_view session_name = SessionOfTensor(tensor_name);
  if (session_name.empty()) {
    return core::InvalidArgument("TENSOR_NAME_MALFORMED", "tensor '",
                                 tensor_name.substr(0, kMaxShownName),
                                 "' wanted as sessions/{session}", kTensors,
                                 "{tensor}");
  }
  // Another session's tensors do not exist as far as this one can tell.
  if (session_name != name_) return NoSuchTensor(tensor_name);
  absl::MutexLock lock(&mutex_);
  const auto found = tensors_.find(std::string(tensor_name));
  if (found == tensors_.end()) return NoSuchTensor(tensor_name);
  return found->second;
}

absl::Status Session::Remove(absl::string_view tensor_name) {
  // Declared first: the last reference must not go under the lock.
  std::shared_ptr<StoredTensor> removed;
  absl::MutexLock lock(&mutex_);
  const auto found = tensors_.find(std::string(tensor_name));
  if (found == tensors_.end()) return NoSuchTensor(tensor_name);
  removed = std::move(found->second);
  if (removed->view() != nullptr) --view_count_;
  tensors_.erase(found);
  return absl::OkStatus();
}

void Session::Remove(const StoredTensor& tensor) {
  std::shared_ptr<StoredTensor> removed;
  absl::MutexLock lock(&mutex_);
  const auto found = tensors_.find(tensor.name());
  if (found == tensors_.end() || found->second.get() != &tensor) return;
  removed = std::move(found->second);
  if (removed->view() != nullptr) --view_count_;
  tensors_.erase(found);
}

std::vector<std::shared_ptr<StoredTensor>> Session::List(
    absl::string_view after, int count) const {
  std::vector<std::shared_ptr<StoredTensor>> list;
  absl::MutexLock lock(&mutex_);
  for (auto at = tensors_.upper_bound(std::string(after));
       at != tensors_.end() && std::ssize(list) < count; ++at) {
    list.push_back(at->second);
  }
  return list;
}

int64_t Session::tensor_count() const {
  absl::MutexLock lock(&mutex_);
  return std::ssize(tensors_);
}

absl::StatusOr<Session::PlanRef> Session::AddPlan(
    absl::string_view plan_id,
    absl::FunctionRef<PlanRef(std::string name)> make) {
  TENSORD_RETURN_IF_ERROR(ValidateId(plan_id, "PLAN_ID_MALFORMED", "plan_id"));
  absl::MutexLock lock(&mutex_);
  if (closed_) {
    return core::NotFound("SESSION_NOT_FOUND", "session '", name_,
                          "' was closed");
  }
  if (std::ssize(plans_) >= kMaxPlans) {
    return core::Error(
        absl::StatusCode::kResourceExhausted, "TOO_MANY_PLANS",
        absl::StrCat("the session has ", kMaxPlans, " plans; delete some"));
  }
  std::string name;
  do {
    name = absl::StrCat(
        name_, kPlans,
        plan_id.empty() ? absl::StrCat("p", next_plan_id_++) : plan_id);
  } while (plan_id.empty() && plans_.contains(name));
  if (plans_.contains(name)) {
    return core::Error(absl::StatusCode::kAlreadyExists, "PLAN_ALREADY_EXISTS",
                       absl::StrCat("plan '", name, "' exists already"));
  }
  PlanRef plan = make(name);
  plans_.emplace(std::move(name), plan);
  return plan;
}

absl::StatusOr<Session::PlanRef> Session::FindPlan(
    absl::string_view plan_name) const {
  const absl::string_view session_name = SessionOfPlan(plan_name);
  if (session_name.empty()) {
    return core::InvalidArgument(
        "PLAN_NAME_MALFORMED", "plan '", plan_name.substr(0, kMaxShownName),
        "' wanted as sessions/{session}", kPlans, "{plan}");
  }
  if (session_name != name_) return NoSuchPlan(plan_name);
  absl::MutexLock lock(&mutex_);
  const auto found = plans_.find(plan_name);
  if (found == plans_.end()) return NoSuchPlan(plan_name);
  return found->second;
}

absl::Status Session::RemovePlan(absl::string_view plan_name) {
  TENSORD_RETURN_IF_ERROR(FindPlan(plan_name).status());
  absl::MutexLock lock(&mutex_);
  return plans_.erase(std::string(plan_name)) > 0 ? absl::OkStatus()
                                                  : NoSuchPlan(plan_name);
}

std::vector<Session::PlanRef> Session::ListPlans(absl::string_view after,
                                                 int count) const {
  std::vector<PlanRef> list;
  absl::MutexLock lock(&mutex_);
  for (auto at = plans_.upper_bound(std::string(after));
       at != plans_.end() && std::ssize(list) < count; ++at) {
    list.push_back(at->second);
  }
  return list;
}

void Session::Touch() {
  absl::MutexLock lock(&mutex_);
  touched_ = absl::Now();
}

void Session::BeginUse() {
  absl::MutexLock lock(&mutex_);
  ++uses_;
}

void Session::EndUse() {
  absl::MutexLock lock(&mutex_);
  --uses_;
  touched_ = absl::Now();
}

bool Session::IsExpired(absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  return uses_ == 0 && now - touched_ > options_.lease;
}

void Session::Close() {
  decltype(tensors_) closing;
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  closing.swap(tensors_);
  plans_.clear();
}

}  // namespace tensord::server
