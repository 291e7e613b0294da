#include "server/execution/program/preparation.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/cleanup/cleanup.h"
#include "core/base/status.h"
#include "core/base/steady_time.h"
#include "server/execution/program/program_steps.h"

namespace tensord::server {
namespace {

constexpr int64_t kCacheBytes = int64_t{128} << 20;
/// Threads that search paths, of which a session has one at a time.
constexpr int kSearchThreads = 4;
/// Programs of a session that may wait for them.
constexpr int64_t kSearchQueueLimit = 1024;

/// Products of so many factors are searched in no time.
constexpr int kFewFactors = 10;

/// What is another session's goes when that wants it to, and is nothing that a
/// program can keep.
absl::Status CheckConstantsAreOwn(const ProgramRequest& request,
                                  const FoundOperands& found) {
  for (size_t i = 0; i < request.operands.size(); ++i) {
    const auto& tensor = found.tensors[i];
    if (!request.operands[i].is_constant || tensor == nullptr) continue;
    if (tensor->origin() == nullptr) continue;
    return core::InvalidArgument(
        "TENSOR_NOT_OWN", "tensor ", tensor->name(), " is shared by ",
        tensor->origin()->name(),
        " and cannot be constant in a program; copy it first");
  }
  return absl::OkStatus();
}

/// True when a program is prepared in less time than others would notice,
/// however its products are written.
bool IsShort(const ProgramRequest& request) {
  constexpr size_t kShort = 2048;
  const core::PathMethod method = request.options.method;
  const bool searches_at_random = method == core::PathMethod::kRandomGreedy ||
                                  method == core::PathMethod::kPartition;
  if (searches_at_random || request.options.memory_limit_bytes ||
      request.options.time_budget > absl::ZeroDuration()) {
    return false;
  }
  const auto* const statements = std::get_if<std::string>(&request.source);
  if (statements == nullptr) return request.operands.size() <= kFewFactors;
  return statements->size() <= kShort &&
         std::ranges::count(*statements, '*') < kFewFactors;
}

/// True when lowering the program again takes no longer: other scalars may ask
/// for another search.
bool IsShort(const PreparedProgram& program) {
  size_t count = 0;
  for (const core::ProgramBlock& block : program.program().blocks) {
    count += block.steps.size();
  }
  return count < kFewFactors && !program.options().memory_limit_bytes;
}

}  // namespace

Preparer::Preparer(Engine& engine)
    : engine_(engine),
      cache_(kCacheBytes),
      background_(kSearchThreads, kSearchQueueLimit) {}

absl::StatusOr<Preparation> Preparation::Of(Preparer& preparer,
                                            std::shared_ptr<Session> session,
                                            ProgramRequest request,
                                            Purpose purpose) {
  if (purpose == Purpose::kExecute) {
    TENSORD_RETURN_IF_ERROR(CheckNoConstants(request.operands));
  } else if (purpose == Purpose::kCreate) {
    TENSORD_RETURN_IF_ERROR(CheckConstants(request.operands));
  }
  Preparation made(preparer, std::move(session));
  made.request_ = std::move(request);
  TENSORD_ASSIGN_OR_RETURN(made.found_,
                           FindOperands(*made.session_, made.request_.operands,
                                        purpose == Purpose::kExecute));
  TENSORD_RETURN_IF_ERROR(CheckConstantsAreOwn(made.request_, made.found_));
  made.key_ = ProgramKeyOf(made.request_.source, made.found_.described,
                           made.request_.outputs, made.request_.options,
                           made.session_->device().plan_device());
  made.like_ = preparer.cache().Find(made.key_);
  made.is_known_ = made.like_ != nullptr;
  if (made.is_known_) {
    made.program_ = made.like_->WithScalars(made.found_.described);
  }
  return made;
}

absl::StatusOr<Preparation> Preparation::OfKept(
    Preparer& preparer, std::shared_ptr<Session> session,
    absl::string_view name, std::vector<ProgramOperandRequest> operands,
    std::vector<ProgramOutputRequest> outputs) {
  Preparation made(preparer, std::move(session));
  TENSORD_ASSIGN_OR_RETURN(made.like_, made.session_->programs().Find(name));
  const PreparedProgram& kept = *made.like_;
  TENSORD_RETURN_IF_ERROR(CheckNoConstants(operands));
  TENSORD_ASSIGN_OR_RETURN(made.request_.operands,
                           InOrder(std::move(operands), kept));
  made.request_.outputs = outputs.empty() ? kept.outputs() : std::move(outputs);
  TENSORD_ASSIGN_OR_RETURN(
      made.found_, FindOperands(*made.session_, made.request_.operands, true));
  TENSORD_RETURN_IF_ERROR(CheckAreLike(made.found_.described, kept.operands()));
  TENSORD_RETURN_IF_ERROR(CheckOutputs(made.request_.outputs, kept.program()));
  made.is_known_ = true;
  made.program_ = kept.WithScalars(made.found_.described);
  return made;
}

bool Preparation::is_short() const {
  return like_ != nullptr ? IsShort(*like_) : IsShort(request_);
}

absl::Status Preparation::CheckBudget() const {
  const auto& options = like_ != nullptr ? like_->options() : request_.options;
  return session_->account().searches().Check(core::SteadyNow(),
                                              options.time_budget);
}

absl::Status Preparation::Make(const std::atomic<bool>& stop) {
  const absl::Time start = core::SteadyNow();
  const absl::Duration used = ThreadTime();
  std::atomic<int64_t> helpers = 0;
  const absl::Cleanup count = [&] {
    session_->account().searches().Count(
        core::SteadyNow(),
        ThreadTime() - used + absl::Nanoseconds(helpers.load()));
  };
  const SearchControl search{&stop, &helpers};
  const Device& device = session_->device();
  auto made = like_ != nullptr
                  ? like_->WithOperands(found_.described, device, search)
                  : PreparedProgram::Make(request_.source, found_.described,
                                          request_.outputs, request_.options,
                                          device, search);
  // The search may have ended early.
  if (stop) return absl::CancelledError("the call ended");
  TENSORD_RETURN_IF_ERROR(made.status());
  if (key_.empty()) {
    TENSORD_RETURN_IF_ERROR(
        CheckMakesLike((*made)->program(), like_->program()));
  }
  program_ = *std::move(made);
  time_ = core::SteadyNow() - start;
  if (like_ != nullptr) {
    like_->KeepVariant(program_);
  } else {
    preparer_->cache().Add(std::move(key_), program_);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::shared_ptr<const core::Plan>>>
Preparation::Plans() const {
  return PlansOf(preparer_->engine(), *session_, *program_);
}

absl::Status Preparation::PlanRun() {
  TENSORD_ASSIGN_OR_RETURN(
      run_state_, PlanProgramRun(preparer_->engine(), session_, *program_));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Run>> Preparation::Start(
    int64_t max_inline_bytes) {
  return PrepareProgramRun(std::move(run_state_), program_, request_.operands,
                           std::move(found_), request_.outputs,
                           max_inline_bytes);
}

absl::StatusOr<std::shared_ptr<const PreparedProgram>> Preparation::Keep(
    absl::string_view id) {
  // What cannot be planned is refused now.
  TENSORD_RETURN_IF_ERROR(Plans().status());
  // A copy: what the cache has is nobody's.
  const std::shared_ptr<PreparedProgram> own = program_->Copy();
  if (std::ranges::any_of(request_.operands,
                          &ProgramOperandRequest::is_constant)) {
    std::vector<std::shared_ptr<StoredTensor>> constants(
        request_.operands.size());
    for (size_t i = 0; i < constants.size(); ++i) {
      if (request_.operands[i].is_constant) constants[i] = found_.tensors[i];
    }
    own->SetConstants(std::move(constants), session_->memory());
  }
  TENSORD_RETURN_IF_ERROR(own->CountAgainst(session_->prepared_bytes()));
  return session_->programs().Add(id, [&](std::string name) {
    own->set_name(std::move(name));
    return std::shared_ptr<const PreparedProgram>(own);
  });
}

absl::StatusOr<std::vector<std::shared_ptr<const core::Plan>>> PlansOf(
    Engine& engine, const Session& session, const PreparedProgram& program) {
  std::vector<std::shared_ptr<const core::Plan>> plans;
  for (const core::PlanKey& key : program.keys()) {
    TENSORD_ASSIGN_OR_RETURN(
        core::PlanCache::Lookup lookup,
        engine.PlanFor(session.device(), key, session.options().job));
    plans.push_back(std::move(lookup.plan));
  }
  return plans;
}

}  // namespace tensord::server
