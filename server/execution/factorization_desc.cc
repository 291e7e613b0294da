// The part of operation_desc.h that is about factorizations.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/layout.h"
#include "core/base/status.h"
#include "core/ops/factorization.h"
#include "server/execution/operation_desc.h"

namespace tensord::server {
namespace {

/// A factor of a, from the existing tensor or from what a is like.
core::OperandDesc FactorOf(const OutputRequest& request,
                           const std::optional<core::TensorDesc>& there,
                           const core::OperandDesc& a, core::ElementType type,
                           int64_t inner_extent) {
  core::OperandDesc factor{.modes = request.modes};
  if (there) {
    factor.element_type = there->element_type;
    factor.layout = there->layout;
    factor.alignment_bytes = core::AlignmentOf(*there);
    return factor;
  }
  factor.element_type = request.element_type.value_or(type);
  core::ModeVector extents;
  for (const core::Mode mode : request.modes) {
    const int at = core::PositionOf(mode, a.modes);
    extents.push_back(at < 0 ? inner_extent : a.layout.extents[at]);
  }
  factor.layout = core::PackedLayout(extents, request.order);
  return factor;
}

/// Refuses a truncation and a sample that say nothing of what is kept, and says
/// of which operation on what.
absl::Status ValidateKept(const OperationRequest& request, bool has_values,
                          const core::Layout& a) {
  absl::Status status = core::Validate(request.truncation, request.method,
                                       has_values, request.rank);
  if (status.ok() && request.sampling) {
    status = core::Validate(*request.sampling, request.method, request.rank);
  }
  if (status.ok()) return status;
  return core::Error(
      status.code(), core::ReasonOf(status),
      absl::StrCat(core::NameOf(request.method), " of a with extents ",
                   core::ToString(a.extents), ": ", status.message()));
}

}  // namespace

absl::StatusOr<OperationDesc> MakeFactorization(
    const OperationRequest& request, const OperationTensors& tensors) {
  const std::optional<core::TensorDesc>& t = tensors.inputs[0];
  if (!t) {
    return core::InvalidArgument("INPUT_MISSING", "operand a is left out");
  }
  const core::FactorPlaces places =
      core::PlacesOf(request.method, request.results.size());
  TENSORD_RETURN_IF_ERROR(
      ValidateKept(request, places.values.has_value(), t->layout));
  const InputRequest& input = *request.inputs[0];
  core::FactorizationDesc desc{.method = request.method,
                               .a = {t->element_type, t->layout, input.modes,
                                     input.unary, core::AlignmentOf(*t)},
                               .sampling = request.sampling};
  TENSORD_RETURN_IF_ERROR(core::ValidateOperand(desc.a, "a"));
  const auto modes_of = [&](const std::optional<size_t>& place) {
    return place ? &request.results[*place].modes : nullptr;
  };
  TENSORD_ASSIGN_OR_RETURN(
      const core::FactorizationModes modes,
      core::GroupModes(request.method, desc.a, *modes_of(places.left),
                       modes_of(places.right), modes_of(places.values)));
  const int64_t inner_extent =
      std::min(modes.inner_extent, request.rank.value_or(modes.inner_extent));
  const auto factor_at = [&](size_t place, core::ElementType type) {
    return FactorOf(request.results[place], tensors.results[place], desc.a,
                    type, inner_extent);
  };
  const core::ElementType type = desc.a.element_type;
  desc.left = factor_at(places.left, type);
  if (places.right) desc.right = factor_at(*places.right, type);
  if (places.values) {
    desc.values = factor_at(*places.values, core::RealPartOf(type));
  }
  TENSORD_RETURN_IF_ERROR(core::Validate(desc));
  TENSORD_RETURN_IF_ERROR(core::ValidateRank(desc, request.rank));
  OperationDesc made;
  for (const core::OperandDesc* const result : desc.results()) {
    const auto& there = tensors.results[made.results.size()];
    made.results.push_back(
        {result->element_type, result->layout, there ? there->offset : 0});
  }
  made.desc = std::move(desc);
  return made;
}

}  // namespace tensord::server
