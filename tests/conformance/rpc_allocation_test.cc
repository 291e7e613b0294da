// Whichever allocation fails, the request fails with RESOURCE_EXHAUSTED or
// waits for memory, nothing is lost or half done, and the same request succeeds
// later.
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"
#include "core/memory/memory_resource.h"
#include "tests/conformance/rpc_program.h"

namespace tensord {
namespace {

/// Which allocations fail, of all devices.
struct Refusals {
  std::atomic<int64_t> asked = 0;  // allocations
  std::atomic<int64_t> first = 0;  // that fails, from 1 on
  std::atomic<int64_t> last = 0;
};

class RefusingResource final : public core::MemoryResource {
 public:
  RefusingResource(core::MemoryResource& upstream, Refusals& refusals)
      : upstream_(upstream), refusals_(refusals) {}

  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    const int64_t number = ++refusals_.asked;
    if (number >= refusals_.first && number <= refusals_.last) {
      return core::ResourceExhausted("MEMORY_LIMIT", "allocation ", number,
                                     " of ", bytes, " bytes is to fail");
    }
    return upstream_.Allocate(bytes);
  }
  void Deallocate(void* pointer, int64_t bytes) override {
    upstream_.Deallocate(pointer, bytes);
  }
  absl::Status Clear(void* pointer, int64_t bytes) override {
    return upstream_.Clear(pointer, bytes);
  }

 private:
  core::MemoryResource& upstream_;
  Refusals& refusals_;
};

class HasRefusals {
 protected:
  Refusals refusals_;
};

class RpcAllocationTest : public HasRefusals, public RpcProgramTest {
 protected:
  using Contents = std::map<std::string, std::vector<float>>;
  struct Step {
    std::string name;
    std::function<Outcome()> run;
    bool overwrites = false;  // "d"
  };

  RpcAllocationTest()
      : RpcProgramTest(server::EngineOptions{
            .cpu_threads = 2,
            .memory_limit_bytes = int64_t{64} << 20,
            .memory_filter = [this](core::MemoryResource& memory) {
              return std::make_unique<RefusingResource>(memory, refusals_);
            }}) {}

  std::string Full(const std::string& id) {
    return absl::StrCat(session_, "/tensors/", id);
  }
  static v1::Output NewNamed(const std::string& id, std::vector<int> modes) {
    v1::Output output = New(std::move(modes));
    output.set_tensor_id(id);
    return output;
  }

  /// Creates a tensor, unless an earlier try has, and fills it.
  Outcome CreateAndUpload(const std::string& id, std::vector<int64_t> extents,
                          std::vector<int64_t> strides = {}) {
    v1::CreateTensorRequest request =
        CreateRequest(std::move(extents), std::move(strides));
    request.set_tensor_id(id);
    v1::Tensor tensor;
    const Outcome created = Create(request, &tensor);
    if (created.status.ok()) {
      spans_[id] = tensor.span_bytes();
    } else if (created.reason != "TENSOR_ALREADY_EXISTS") {
      return created;
    }
    std::vector<float> values(static_cast<size_t>(spans_[id]) / sizeof(float));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(i % 7) - 2;
    }
    return Upload({Chunk(Full(id), 0, values)});
  }
  Outcome View(const std::string& of, const std::string& id) {
    v1::CreateViewRequest request;
    request.set_tensor(Full(of));
    request.set_tensor_id(id);
    v1::IndexStage& stage = *request.add_stages()->mutable_index();
    stage.add_items()->mutable_slice()->set_step(2);
    stage.add_items()->mutable_slice()->set_start(1);
    v1::CreateViewResponse response;
    return Unary(&v1::ViewService::Stub::CreateView, *views_, request,
                 &response);
  }
  Outcome Copy(const std::string& from, const std::string& id) {
    v1::CopyTensorRequest request;
    request.set_source(Full(from));
    request.set_tensor_id(id);
    v1::CopyTensorResponse response;
    return Unary(&v1::TensorService::Stub::CopyTensor, *tensors_, request,
                 &response);
  }
  Outcome Product(const std::string& a, const std::string& b, v1::Output d) {
    v1::ContractRequest request = Contraction(Full(a), Full(b));
    *request.mutable_d() = std::move(d);
    if (KernelPrefix() == "cpu") {  // This one takes scratch memory.
      request.mutable_options()->set_kernel("cpu.contract.gemm");
    }
    return Contract(request);
  }
  /// The view, of 12 rows and 23 columns, with its transpose.
  Outcome ProductOfView() {
    v1::ContractRequest request;
    request.set_session(session_);
    *request.mutable_a() = Named(Full("view"), {'i', 'k'});
    *request.mutable_b() = Named(Full("copy"), {'j', 'k'});
    *request.mutable_d() = NewNamed("view-product", {'i', 'j'});
    return Contract(request);
  }
  Outcome Qr(const std::string& a) {
    v1::FactorizeRequest request;
    request.set_session(session_);
    *request.mutable_a() = Named(Full(a), {1, 2});
    *request.mutable_q() = NewNamed("q", {1, 3});
    *request.mutable_r() = NewNamed("r", {3, 2});
    request.set_method(v1::FACTORIZATION_METHOD_QR);
    v1::FactorizeResponse response;
    return Unary(&v1::ComputeService::Stub::Factorize, *compute_, request,
                 &response);
  }
  Outcome Invert(const std::string& a) {
    v1::SolveLinearRequest request;
    request.set_session(session_);
    *request.mutable_a() = Named(Full(a), {1, 2});
    *request.mutable_d() = NewNamed("inverse", {2, 3});
    // Whatever is in it, this is not singular.
    request.set_structure(v1::MATRIX_STRUCTURE_LOWER_TRIANGULAR);
    request.set_unit_diagonal(true);
    v1::SolveLinearResponse response;
    return Unary(&v1::ComputeService::Stub::SolveLinear, *compute_, request,
                 &response);
  }
  Outcome Program() {
    v1::ProgramSpec spec = Statements(
        "T[i,j] := A[i,k]*B[k,j]; U[i,j] := T[i,k]*T[j,k]; "
        "D[j,i] := U[i,j] - 2*T[i,j]; e := U[i,j]*T[i,j]",
        {{"A", Full("a")}, {"B", Full("b")}});
    spec.add_outputs()->set_name("D");
    spec.mutable_outputs(0)->set_tensor_id("program-d");
    spec.add_outputs()->set_name("e");
    spec.mutable_outputs(1)->set_tensor_id("program-e");
    return Execute(spec);
  }
  Outcome Inline() {
    v1::PermuteRequest request;
    request.set_session(session_);
    v1::InlineTensor& a = *request.mutable_a()->mutable_inline_();
    a.set_element_type(v1::ELEMENT_TYPE_FLOAT32);
    a.mutable_layout()->add_extents(3);
    a.mutable_layout()->add_extents(2);
    const std::vector<float> values{1, 2, 3, 4, 5, 6};
    a.set_data(values.data(), values.size() * sizeof(float));
    request.mutable_a()->add_modes(1);
    request.mutable_a()->add_modes(2);
    *request.mutable_d() = NewNamed("permuted", {2, 1});
    return Permute(request);
  }

  std::vector<Step> Scenario() {
    std::vector<Step> steps{
        {"upload a",
         [&] {
           return CreateAndUpload("a", {24, 24});
         }},
        {"upload b with gaps",
         [&] {
           return CreateAndUpload("b", {24, 24}, {30, 1});
         }},
        {"upload d",
         [&] {
           return CreateAndUpload("d", {24, 24});
         }},
        {"an inline operand", [&] { return Inline(); }},
        {"contract",
         [&] {
           return Product("a", "b", NewNamed("c", {'i', 'j'}));
         }},
        {"contract into d",
         [&] {
           v1::Output d = New({'j', 'i'});
           d.set_tensor(Full("d"));
           return Product("b", "a", d);
         },
         /*overwrites=*/true},
        {"program", [&] { return Program(); }},
        {"view", [&] { return View("a", "view"); }},
        {"copy of a view", [&] { return Copy("view", "copy"); }},
        {"contract a view", [&] { return ProductOfView(); }},
    };
    if (KernelPrefix() == "cpu") {
      steps.push_back({"factorize", [&] { return Qr("b"); }});
      steps.push_back({"solve", [&] { return Invert("b"); }});
    }
    return steps;
  }

  /// What is there, of what is READY; the others are no tensors to be.
  Contents Ready() {
    v1::ListTensorsRequest request;
    request.set_session(session_);
    v1::ListTensorsResponse response;
    EXPECT_THAT(Unary(&v1::TensorService::Stub::ListTensors, *tensors_, request,
                      &response),
                IsOk());
    Contents contents;
    for (const v1::Tensor& tensor : response.tensors()) {
      if (tensor.state() != v1::TENSOR_STATE_READY || tensor.has_view())
        continue;
      const std::string id = tensor.name().substr(session_.size() + 9);
      contents[id] = Values(tensor.name());
    }
    return contents;
  }

  /// Runs the scenario in a session of its own, in which allocations `first` to
  /// `last` fail; `after` is what there is to be after each step.
  void RunRefusing(int64_t first, int64_t last,
                   const std::vector<Contents>& after) {
    v1::OpenSessionResponse opened;
    ASSERT_THAT(Open({}, &opened), IsOk());
    session_ = opened.session().name();
    refusals_.asked = 0;
    refusals_.last = last;
    refusals_.first = first;
    const std::vector<Step> steps = Scenario();
    for (size_t i = 0; i < steps.size(); ++i) {
      SCOPED_TRACE(steps[i].name);
      const Outcome outcome = steps[i].run();
      if (!outcome.status.ok()) {
        EXPECT_EQ(outcome.status.error_code(), grpc::RESOURCE_EXHAUSTED)
            << outcome;
        refusals_.last = 0;
        // What it should have overwritten has perhaps no contents any more.
        Contents left = Ready();
        if (steps[i].overwrites) left.insert(*after[i - 1].find("d"));
        EXPECT_EQ(left, i == 0 ? Contents() : after[i - 1]);
        ASSERT_THAT(steps[i].run(), IsOk());
      }
    }
    refusals_.last = 0;
    EXPECT_EQ(Ready(), after.back());
    EXPECT_THAT(Close(session_), IsOk());
    AwaitNothingUsed();
  }
  void AwaitNothingUsed() {
    EXPECT_TRUE(Soon([&] {
      return server_.used_bytes() == 0 &&
             server_.device().staging_statistics().used_bytes == 0;
    }));
  }

  std::map<std::string, int64_t> spans_;
};

TEST_F(RpcAllocationTest, WhicheverFailsNothingIsLost) {
  std::vector<Contents> after;
  refusals_.asked = 0;
  for (const Step& step : Scenario()) {
    SCOPED_TRACE(step.name);
    ASSERT_THAT(step.run(), IsOk());
    after.push_back(Ready());
  }
  const int64_t count = refusals_.asked;
  EXPECT_GE(count, 15);
  ASSERT_THAT(Close(session_), IsOk());
  AwaitNothingUsed();
  for (int64_t number = 1; number <= count; ++number) {
    SCOPED_TRACE(number);
    // A job that lacks memory may be launched once more.
    for (const int64_t last : {number, number + 1, int64_t{1} << 40}) {
      RunRefusing(number, last, after);
      ASSERT_FALSE(HasFatalFailure());
    }
  }
}

}  // namespace
}  // namespace tensord
