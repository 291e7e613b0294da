// Views, for tests that speak to a server as a client does.
#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/layout.h"
#include "core/view/stage.h"
#include "core/view/transform.h"
#include "tensord/v1/view.grpc.pb.h"
#include "tests/conformance/rpc_conformance.h"

namespace tensord {

inline v1::Order ToProto(core::Order order) {
  return order == core::Order::kFirstModeFastest ? v1::ORDER_FIRST_MODE_FASTEST
                                                 : v1::ORDER_LAST_MODE_FASTEST;
}

template <typename Repeated>
void Append(const core::ModeVector& numbers, Repeated* to) {
  to->Add(numbers.begin(), numbers.end());
}

/// The message that asks for a transform; an overload for each kind.
struct TransformWriter {
  v1::Transform& to;

  void operator()(const core::transform::PassThrough&) {
    to.mutable_pass_through();
  }
  void operator()(const core::transform::Merge& from) {
    to.mutable_merge()->set_order(ToProto(from.order));
  }
  void operator()(const core::transform::Unmerge& from) {
    Append(from.extents, to.mutable_unmerge()->mutable_extents());
    to.mutable_unmerge()->set_order(ToProto(from.order));
  }
  void operator()(const core::transform::Slice& from) {
    to.mutable_slice()->set_start(from.start);
    to.mutable_slice()->set_stop(from.stop);
    if (from.step != 1) to.mutable_slice()->set_step(from.step);
  }
  void operator()(const core::transform::Pad& from) {
    to.mutable_pad()->set_before(from.before);
    to.mutable_pad()->set_after(from.after);
  }
  void operator()(const core::transform::Freeze& from) {
    to.mutable_freeze()->set_index(from.index);
  }
  void operator()(const core::transform::Insert& from) {
    to.mutable_insert()->set_extent(from.extent);
  }
  void operator()(const core::transform::Replicate& from) {
    Append(from.extents, to.mutable_replicate()->mutable_extents());
  }
  void operator()(const core::transform::Embed& from) {
    Append(from.extents, to.mutable_embed()->mutable_extents());
    Append(from.coefficients, to.mutable_embed()->mutable_coefficients());
    to.mutable_embed()->set_constant(from.constant);
  }
  void operator()(const core::transform::Modulo& from) {
    to.mutable_modulo()->set_modulus(from.modulus);
    to.mutable_modulo()->set_extent(from.extent);
  }
  void operator()(const core::transform::Xor&) { to.mutable_xor_(); }
  void operator()(const core::transform::Offset& from) {
    to.mutable_offset()->set_offset(from.offset);
    to.mutable_offset()->set_extent(from.extent);
  }
  void operator()(const core::transform::Diagonal&) { to.mutable_diagonal(); }
};

/// Adds a stage to a CreateViewRequest or a ViewSpec.
template <typename Stages>
void AddStage(const core::Stage& stage, Stages& stages) {
  v1::TransformStage& message = *stages.add_stages()->mutable_transform();
  for (const core::PlacedTransform& placed : stage.transforms) {
    v1::Transform& transform = *message.add_transforms();
    transform.mutable_lower()->Add(placed.lower.begin(), placed.lower.end());
    transform.mutable_upper()->Add(placed.upper.begin(), placed.upper.end());
    std::visit(TransformWriter{transform}, placed.transform);
  }
}

class RpcViewTest : public RpcConformance {
 protected:
  static v1::CreateViewRequest RequestFor(const std::string& tensor) {
    v1::CreateViewRequest request;
    request.set_tensor(tensor);
    return request;
  }
  /// start:stop:step, given as text; "" is left out.
  static void AddSlice(v1::IndexStage& stage, std::optional<int64_t> start,
                       std::optional<int64_t> stop,
                       std::optional<int64_t> step = {}) {
    v1::IndexSlice& slice = *stage.add_items()->mutable_slice();
    if (start) slice.set_start(*start);
    if (stop) slice.set_stop(*stop);
    if (step) slice.set_step(*step);
  }
  Outcome CreateView(const v1::CreateViewRequest& request,
                     v1::Tensor* view = nullptr) {
    v1::CreateViewResponse response;
    const Outcome outcome =
        Unary(&v1::ViewService::Stub::CreateView, *views_, request, &response);
    if (view != nullptr) *view = response.tensor();
    return outcome;
  }
  v1::Tensor ViewOf(const v1::CreateViewRequest& request) {
    v1::Tensor view;
    EXPECT_THAT(CreateView(request, &view), IsOk());
    return view;
  }
  /// tensor[start:stop:step] along its first mode.
  v1::Tensor Slice(const std::string& tensor, std::optional<int64_t> start,
                   std::optional<int64_t> stop,
                   std::optional<int64_t> step = {}) {
    v1::CreateViewRequest request = RequestFor(tensor);
    AddSlice(*request.add_stages()->mutable_index(), start, stop, step);
    return ViewOf(request);
  }
  /// All modes in place, but for the first `padded` of them.
  v1::Tensor Padded(const std::string& tensor, int mode_count, int before,
                    int after, double value) {
    v1::CreateViewRequest request = RequestFor(tensor);
    v1::TransformStage& stage = *request.add_stages()->mutable_transform();
    for (int i = 0; i < mode_count; ++i) {
      v1::Transform& transform = *stage.add_transforms();
      transform.add_lower(i);
      transform.add_upper(i);
      transform.mutable_pad()->set_before(before);
      transform.mutable_pad()->set_after(after);
    }
    request.mutable_padding()->set_real(value);
    return ViewOf(request);
  }

  static std::vector<int> Labels(int count) {
    std::vector<int> labels(static_cast<size_t>(count));
    std::iota(labels.begin(), labels.end(), 1);
    return labels;
  }
  v1::PermuteRequest Copying(const std::string& a, int mode_count) {
    v1::PermuteRequest request;
    request.set_session(session_);
    *request.mutable_a() = Named(a, Labels(mode_count));
    *request.mutable_d() = New(Labels(mode_count));
    request.mutable_d()->set_order(v1::ORDER_LAST_MODE_FASTEST);
    return request;
  }
  static v1::PermuteRequest Into(v1::PermuteRequest request,
                                 const std::string& d) {
    request.mutable_d()->clear_order();
    request.mutable_d()->set_tensor(d);
    return request;
  }
  /// A view's elements, last mode fastest.
  std::vector<float> Elements(const v1::Tensor& view) {
    v1::Result result;
    EXPECT_THAT(
        Permute(Copying(view.name(), view.layout().extents_size()), &result),
        IsOk());
    const std::vector<float> values = Values(result.tensor().name());
    EXPECT_THAT(Delete(result.tensor().name()), IsOk());
    return values;
  }
};

}  // namespace tensord
