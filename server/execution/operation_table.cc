#include "server/execution/operation_table.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "server/session/stored_tensor.h"

namespace tensord::server {
namespace {

constexpr InputRow kNone;
constexpr InputRow kAlone{.exists = true};
constexpr InputRow kPerhaps{.exists = true, .is_optional = true};
constexpr InputRow kTimesAlpha{.exists = true, .factor = Factor::kAlpha};
constexpr InputRow kPlusTimesBeta{
    .exists = true, .is_addend = true, .factor = Factor::kBeta};
constexpr InputRow kTimesGamma{.exists = true, .factor = Factor::kGamma};
constexpr InputRow kPerhapsTimesBeta{
    .exists = true, .is_optional = true, .factor = Factor::kBeta};

// In the order of OperationKind.
constexpr std::array<OperationRow, kOperationCount> kRows = {{
    {.name = "permute",
     .inputs = {kTimesAlpha, kNone, kNone},
     .broadcasts = true,
     .make_desc = MakePermutation},
    {.name = "elementwise",
     .inputs = {kTimesAlpha, kPerhapsTimesBeta, kTimesGamma},
     .broadcasts = true,
     .make_desc = MakeElementwise},
    {.name = "reduce",
     .inputs = {kTimesAlpha, kNone, kPlusTimesBeta},
     .make_desc = MakeReduction},
    {.name = "contract",
     .inputs = {kTimesAlpha, kTimesAlpha, kPlusTimesBeta},
     .make_desc = MakeContraction},
    {.name = "factorize",
     .inputs = {kAlone, kNone, kNone},
     .make_desc = MakeFactorization},
    {.name = "solve",
     .inputs = {kAlone, kPerhaps, kNone},
     .make_desc = MakeLinearSolve},
}};

const core::Scalar& FactorOf(const OperationRequest& request, Factor factor) {
  switch (factor) {
    case Factor::kNone: return core::kOne;
    case Factor::kAlpha: return request.alpha;
    case Factor::kBeta: return request.beta;
    case Factor::kGamma: return request.gamma;
  }
  __builtin_unreachable();
}

}  // namespace

absl::string_view NameOf(Factor factor) {
  switch (factor) {
    case Factor::kNone: return "none";
    case Factor::kAlpha: return "alpha";
    case Factor::kBeta: return "beta";
    case Factor::kGamma: return "gamma";
  }
  __builtin_unreachable();
}

const OperationRow& RowOf(OperationKind kind) {
  return kRows[static_cast<size_t>(kind)];
}

absl::string_view ResultNameOf(const OperationRequest& request, size_t i) {
  if (request.kind != OperationKind::kFactorize) return "d";
  constexpr size_t kWithValues = 3;
  return core::ResultNamesOf(request.method,
                             request.results.size() == kWithValues)[i];
}

bool HasInput(const OperationRequest& request, size_t i) {
  const InputRow& row = RowOf(request.kind).inputs[i];
  return row.exists && (!row.is_optional || request.inputs[i].has_value());
}

bool Reads(const OperationRequest& request, size_t i) {
  return HasInput(request, i) &&
         !FactorOf(request, RowOf(request.kind).inputs[i].factor).IsZero();
}

bool HasFactor(const OperationRequest& request, Factor factor) {
  for (size_t i = 0; i < kInputNames.size(); ++i) {
    if (HasInput(request, i) &&
        RowOf(request.kind).inputs[i].factor == factor) {
      return true;
    }
  }
  return false;
}

OperationRequest CopyRequest(const StoredTensor& from, const StoredTensor& to) {
  core::Modes modes;
  for (int i = 0; i < from.desc().layout.mode_count(); ++i) modes.push_back(i);
  OperationRequest request{.kind = OperationKind::kPermute};
  request.inputs[0] = {.source = from.name(), .modes = modes};
  request.results = {{.tensor = to.name(), .modes = modes}};
  return request;
}

}  // namespace tensord::server
