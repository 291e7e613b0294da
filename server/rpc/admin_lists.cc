// What operators see of sessions: themselves, their calls and their tensors.
#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/convert.h"
#include "server/rpc/coroutine/in_background.h"

namespace tensord::rpc {
namespace {

using SessionRef = std::shared_ptr<server::Session>;
using Loads = std::map<uint64_t, server::DeviceWorker::Load>;

// In their queue of lists.
const server::ClientId kLists{.number = 2};

absl::Status TokenMalformed(absl::string_view token) {
  return core::InvalidArgument("PAGE_TOKEN_MALFORMED", "page_token is '",
                               token.substr(0, 100),
                               "', wanted that of the page before");
}

v1::SessionState Describe(const server::Session& session, const Loads& loads) {
  const server::SessionOptions& options = session.options();
  const server::Session::Ages ages = session.ages();
  v1::SessionState message;
  message.set_number(static_cast<int64_t>(session.number()));
  message.set_tenant(options.tenant);
  message.set_job(options.job);
  message.set_peer(options.peer);
  message.set_device(session.device().info().name);
  message.set_priority(options.priority);
  *message.mutable_age() = ToProto(ages.age);
  *message.mutable_idle() = ToProto(ages.idle);
  *message.mutable_lease() = ToProto(options.lease);
  *message.mutable_lease_left() = ToProto(ages.lease_left);
  message.set_tensor_count(session.tensor_count());
  message.set_memory_used_bytes(session.memory()->used_bytes());
  message.set_memory_quota_bytes(session.memory()->limit_bytes());
  if (const auto load = loads.find(session.number()); load != loads.end()) {
    message.set_queued_operations(load->second.queued_count);
    message.set_running_operations(load->second.running_count);
  }
  return message;
}

/// A tensor and where it stands among all others.
struct Ranked {
  int64_t bytes;
  SessionRef session;
  std::string id;
  std::shared_ptr<server::StoredTensor> tensor;  // null: of a token

  auto rank() const {
    return std::tuple(-bytes, session == nullptr ? number : session->number(),
                      absl::string_view(id));
  }
  uint64_t number = 0;  // without a session
};

std::string IdOf(const server::StoredTensor& tensor) {
  const std::string& name = tensor.name();
  return name.substr(name.rfind('/') + 1);
}

std::string TokenOf(const Ranked& last) {
  return absl::StrCat(last.bytes, "/", last.session->number(), "/", last.id);
}

absl::StatusOr<std::optional<Ranked>> RankedFrom(absl::string_view token) {
  if (token.empty()) return std::nullopt;
  const std::vector<absl::string_view> parts =
      absl::StrSplit(token, absl::MaxSplits('/', 2));
  Ranked last{};
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &last.bytes) ||
      last.bytes < 0 || !absl::SimpleAtoi(parts[1], &last.number)) {
    return TokenMalformed(token);
  }
  last.id = std::string(parts[2]);
  return last;
}

/// Up to `most` tensors that follow `after`, the largest first.
std::vector<Ranked> LargestOf(const std::vector<SessionRef>& sessions,
                              const std::optional<Ranked>& after, size_t most) {
  std::vector<Ranked> ranked;
  const auto is_before = [](const Ranked& x, const Ranked& y) {
    return x.rank() < y.rank();
  };
  const auto drop = [&] {
    const size_t count = std::min(ranked.size(), most);
    std::ranges::partial_sort(ranked, ranked.begin() + count, is_before);
    ranked.resize(count);
  };
  for (const SessionRef& session : sessions) {
    for (auto& tensor : session->List("", std::numeric_limits<int>::max())) {
      Ranked one{.bytes = tensor->view() == nullptr
                              ? tensor->desc().offset_bytes() +
                                    tensor->desc().span_bytes()
                              : 0,
                 .session = session,
                 .id = IdOf(*tensor),
                 .tensor = std::move(tensor)};
      if (after && !is_before(*after, one)) continue;
      ranked.push_back(std::move(one));
    }
    if (ranked.size() > 16 * most) drop();
  }
  drop();
  return ranked;
}

v1::LargeTensor Describe(const Ranked& ranked) {
  const server::StoredTensor& tensor = *ranked.tensor;
  v1::LargeTensor message;
  message.set_id(ranked.id);
  message.set_session_number(static_cast<int64_t>(ranked.session->number()));
  message.set_tenant(ranked.session->options().tenant);
  message.set_device(tensor.device());
  message.set_element_type(ToProto(tensor.desc().element_type));
  const auto& extents = tensor.desc().layout.extents;
  message.mutable_extents()->Add(extents.begin(), extents.end());
  message.set_bytes(ranked.bytes);
  message.set_is_view(tensor.view() != nullptr);
  message.set_state(ToProto(tensor.state()));
  return message;
}

}  // namespace

v1::ListSessionsResponse AdminService::Sessions(
    const v1::ListSessionsRequest& request, uint64_t after, int size) const {
  std::vector<SessionRef> sessions;
  if (request.largest_first()) {
    sessions = context_.sessions.Largest(static_cast<size_t>(
        request.tenant().empty() ? size : context_.sessions.session_count()));
  } else {
    sessions = context_.sessions.List();
    std::erase_if(sessions, [after](const SessionRef& session) {
      return session->number() <= after;
    });
    std::ranges::sort(sessions, {}, &server::Session::number);
  }
  if (!request.tenant().empty()) {
    std::erase_if(sessions, [&request](const SessionRef& session) {
      return session->options().tenant != request.tenant();
    });
  }
  Loads loads;
  for (const auto& device : context_.engine.devices()) {
    loads.merge(device->worker().loads());
  }
  v1::ListSessionsResponse response;
  for (const SessionRef& session : sessions) {
    if (response.sessions_size() == size) {
      if (!request.largest_first()) {
        response.set_next_page_token(absl::StrCat(
            response.sessions(response.sessions_size() - 1).number()));
      }
      break;
    }
    *response.add_sessions() = Describe(*session, loads);
  }
  return response;
}

Task<absl::StatusOr<v1::ListSessionsResponse>> AdminService::ListSessions(
    Call& call, const v1::ListSessionsRequest& request) {
  const absl::StatusOr<int> size = PageSize(request.page_size());
  if (!size.ok()) co_return size.status();
  uint64_t after = 0;
  const std::string& token = request.page_token();
  if (!token.empty() && !absl::SimpleAtoi(token, &after)) {
    co_return TokenMalformed(token);
  }
  v1::ListSessionsResponse response;
  auto look = [&] { response = Sessions(request, after, *size); };
  const absl::Status looked =
      co_await InBackground(call, context_.operators, kLists, look);
  if (!looked.ok()) co_return looked;
  co_return response;
}

Task<absl::StatusOr<v1::ListOperationsResponse>> AdminService::ListOperations(
    Call& call, const v1::ListOperationsRequest& request) {
  const absl::StatusOr<int> size = PageSize(request.page_size());
  if (!size.ok()) co_return size.status();
  std::optional<uint64_t> session;
  if (request.session_number() != 0) {
    session = static_cast<uint64_t>(request.session_number());
    const auto found = context_.sessions.FindNumber(*session);
    if (!found.ok()) co_return found.status();
  }
  std::vector<RunningCalls::Shown> running;
  auto look = [&] { running = context_.door.running().List(session); };
  const absl::Status looked =
      co_await InBackground(call, context_.operators, kLists, look);
  if (!looked.ok()) co_return looked;
  v1::ListOperationsResponse response;
  response.set_operation_count(std::ssize(running));
  for (const RunningCalls::Shown& shown : running) {
    if (response.operations_size() == *size) break;
    v1::RunningCall& entry = *response.add_operations();
    entry.set_request_id(shown.request_id);
    entry.set_rpc(std::string(shown.rpc));
    entry.set_session_number(static_cast<int64_t>(shown.session));
    entry.set_tenant(shown.tenant);
    *entry.mutable_elapsed() = ToProto(shown.elapsed);
  }
  co_return response;
}

Task<absl::StatusOr<v1::ListLargestTensorsResponse>> AdminService::ListTensors(
    Call& call, const v1::ListLargestTensorsRequest& request) {
  const absl::StatusOr<int> size = PageSize(request.page_size());
  if (!size.ok()) co_return size.status();
  const auto after = RankedFrom(request.page_token());
  if (!after.ok()) co_return after.status();
  std::vector<SessionRef> sessions;
  if (request.session_number() == 0) {
    sessions = context_.sessions.List();
  } else {
    auto found = context_.sessions.FindNumber(
        static_cast<uint64_t>(request.session_number()));
    if (!found.ok()) co_return found.status();
    sessions.push_back(*std::move(found));
  }
  // There may be a million.
  std::vector<Ranked> largest;
  auto look = [&] {
    largest = LargestOf(sessions, *after, static_cast<size_t>(*size) + 1);
  };
  const absl::Status looked =
      co_await InBackground(call, context_.operators, kLists, look);
  if (!looked.ok()) co_return looked;
  v1::ListLargestTensorsResponse response;
  const size_t shown = std::min(largest.size(), static_cast<size_t>(*size));
  for (size_t i = 0; i < shown; ++i) {
    *response.add_tensors() = Describe(largest[i]);
  }
  if (largest.size() > shown) {
    response.set_next_page_token(TokenOf(largest[shown - 1]));
  }
  co_return response;
}

}  // namespace tensord::rpc
