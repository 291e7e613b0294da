#include "tests/fuzz/service_calls.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/text_format.h"
#include "tensord/v1/admin.pb.h"
#include "tensord/v1/compute.pb.h"
#include "tensord/v1/plan.pb.h"
#include "tensord/v1/plan_cache.pb.h"
#include "tensord/v1/program.pb.h"
#include "tensord/v1/session.pb.h"
#include "tensord/v1/tensor.pb.h"
#include "tensord/v1/trace.pb.h"
#include "tensord/v1/view.pb.h"
#include "tests/fuzz/check.h"

namespace tensord::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;
using google::protobuf::MethodDescriptor;
using google::protobuf::TextFormat;

/// Values of fields, as text, to take in place of sensible ones.
std::span<const char* const> ValuesFor(const FieldDescriptor& field) {
  static constexpr const char* kIntegers[] = {
      "0",    "1",          "2",
      "3",    "4",          "6",
      "12",   "-1",         "-2",
      "1000", "2147483647", "-2147483648",
      "64",   "4294967296", "9223372036854775807",
      "24",   "1048576",    "-9223372036854775808"};
  static constexpr const char* kNumbers[] = {"0",   "1",   "-1",   "0.5",
                                             "inf", "nan", "1e39", "1e-320"};
  static constexpr const char* kBooleans[] = {"true", "false"};
  static constexpr const char* kBytes[] = {
      R"("")", R"("abcdefgh")", R"("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")",
      R"("\377\377\377\377\377\377\377\377")"};
  static constexpr const char* kTexts[] = {
      R"("")",
      R"("a")",
      R"("b")",
      R"("c")",
      R"("v")",
      R"("k")",
      R"("A")",
      R"("$A")",
      R"("$B")",
      R"("$A/tensors/a")",
      R"("$A/tensors/b")",
      R"("$A/tensors/c")",
      R"("$A/tensors/d")",
      R"("$A/tensors/v")",
      R"("$A/tensors/w")",
      R"("$A/tensors/x")",
      R"("$B/tensors/a")",
      R"("$A/plans/k")",
      R"("$A/programs/g")",
      R"("\377/tensors/\303")",
      R"("cpu:0")",
      R"("cpu.contract.reference")",
      R"("ij,jk->ik")",
      R"("ii->i")",
      R"("D[i] := A[i,j]*B[j,i]; A[i,j] = D[i]")",
      R"('D := A[i,j]*(A[i,k]*(B[k,l]*A[l,m]*B[m,j]))')",
      R"("a=>x,b=>x^2")"};
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE: return kNumbers;
    case FieldDescriptor::CPPTYPE_BOOL: return kBooleans;
    case FieldDescriptor::CPPTYPE_STRING:
      if (field.type() == FieldDescriptor::TYPE_BYTES) return kBytes;
      return kTexts;
    default: return kIntegers;  // enumerations, too
  }
}

}  // namespace

const std::vector<SampleCall>& SampleCalls() {
  static const std::vector<SampleCall> all = {
      {"TensorService.CreateTensor",
       {R"(session: "$A" tensor_id: "a" element_type: ELEMENT_TYPE_FLOAT32
           layout { extents: [2, 3] })"}},
      {"TensorService.CreateTensor",
       {R"(session: "$A" tensor_id: "b" element_type: ELEMENT_TYPE_FLOAT32
           layout { extents: [3, 2] })"}},
      {"TensorService.UploadTensor",
       {R"(tensor: "$A/tensors/a" data: "abcdefghijklmnopqrstuvwx")"}},
      {"TensorService.UploadTensor",
       {R"(tensor: "$A/tensors/b" data: "abcdefghijkl")",
        R"(offset_bytes: 12 data: "mnopqrstuvwx")"}},
      {"ComputeService.Contract",
       {R"(session: "$A" a { tensor: "$A/tensors/a" modes: [1, 2] }
           b { tensor: "$A/tensors/b" modes: [2, 3] }
           d { tensor_id: "d" modes: [1, 3] })"}},
      {"TensorService.DownloadTensor", {R"(tensor: "$A/tensors/d")"}},
      {"ComputeService.Contract",
       {R"(session: "$A" d { inline: true modes: [1, 2] }
           a { inline { element_type: ELEMENT_TYPE_INT32 data: "abcdefgh"
                        layout { extents: 2 } } modes: 1 }
           b { inline { element_type: ELEMENT_TYPE_INT32 data: "abcdefgh"
                        layout { extents: 2 } } modes: 2 })"}},
      {"ComputeService.Permute",
       {R"(session: "$A" a { tensor: "$A/tensors/a" modes: [1, 2] }
           d { tensor_id: "p" modes: [2, 1] } alpha { real: 2 }
           padding { before: [1, 0] after: [0, 2] })"}},
      {"ComputeService.Elementwise",
       {R"(session: "$A" a { tensor: "$A/tensors/a" modes: [1, 2] }
           b { tensor: "$A/tensors/b" modes: [2, 1] }
           c { tensor: "$A/tensors/a" modes: [1, 2] }
           d { tensor: "$A/tensors/a" modes: [1, 2] }
           op_ab: BINARY_OPERATOR_MUL op_abc: BINARY_OPERATOR_ADD)"}},
      {"ComputeService.Reduce",
       {R"(session: "$A" a { tensor: "$A/tensors/a" modes: [1, 2] }
           d { tensor_id: "s" modes: 1 } op: BINARY_OPERATOR_MAX)"}},
      {"ComputeService.Factorize",
       {R"(session: "$A" a { tensor: "$A/tensors/a" modes: [1, 2] }
           q { tensor_id: "q" modes: [1, 3] } r { inline: true modes: [3, 2] }
           method: FACTORIZATION_METHOD_QR)"}},
      {"ComputeService.SolveLinear",
       {R"(session: "$A" a { tensor: "$A/tensors/a" modes: [1, 2] }
           b { tensor: "$A/tensors/b" modes: [1, 3] }
           d { inline: true modes: [2, 3] })"}},
      {"ComputeService.SolveLinear",
       {R"(session: "$A" a { tensor: "$A/tensors/a" modes: [1, 2] }
           d { tensor_id: "i" modes: [2, 3] } unit_diagonal: true
           structure: MATRIX_STRUCTURE_LOWER_TRIANGULAR)"}},
      // Tensors large enough to be at work for a while.
      {"TensorService.CreateTensor",
       {R"(session: "$A" tensor_id: "x" element_type: ELEMENT_TYPE_FLOAT64
           layout { extents: [160, 160] })"}},
      {"ComputeService.Permute",
       {R"(session: "$A" d { tensor: "$A/tensors/x" modes: [1, 2] }
           alpha { real: 0 })"}},
      {"ComputeService.Contract",
       {R"(session: "$A" a { tensor: "$A/tensors/x" modes: [1, 2] }
           b { tensor: "$A/tensors/x" modes: [2, 3] } d { modes: [1, 3] })"}},
      {"TensorService.DownloadTensor", {R"(tensor: "$A/tensors/x")"}},
      {"ComputeService.ExecuteStream",
       {R"(permute { session: "$A" a { tensor: "$A/tensors/a" modes: [1, 2] }
                     d { tensor_id: "t" modes: [2, 1] } })",
        R"(contract { session: "$A" d { tensor_id: "u" modes: [1, 3] }
                      a { tensor: "$A/tensors/a" modes: [1, 2] }
                      b { tensor: "$A/tensors/t" modes: [2, 3] } })",
        R"(execute_plan { plan: "$A/plans/k" a { tensor: "$A/tensors/a" }
                          b { tensor: "$A/tensors/b" } inline: true })"}},
      {"ViewService.CreateView", {R"(tensor: "$A/tensors/a" tensor_id: "v"
           stages { index { items { slice { step: -1 } } items { index: 1 } } }
           stages { transform { transforms { lower: 0 upper: 0
                                             pad { before: 1 } } } })"}},
      {"ViewService.CreateView", {R"(tensor: "$A/tensors/a" tensor_id: "w"
           stages { transform { transforms { lower: [0, 1] upper: 0
                                             merge {} } } })"}},
      {"ComputeService.Permute",
       {R"(session: "$A" a { tensor: "$A/tensors/v" modes: 1 }
           d { modes: 1 })"}},
      {"TensorService.CopyTensor", {R"(source: "$A/tensors/a" tensor_id: "c"
           layout { extents: [2, 3] strides: [1, 4] })"}},
      {"TensorService.CopyTensor",
       {R"(source: "$A/tensors/a" session: "$B" tensor_id: "a")"}},
      {"TensorService.DescribeTensor", {R"(tensor: "$A/tensors/a")"}},
      {"TensorService.ListTensors", {R"(session: "$A" page_size: 2)"}},
      {"TensorService.DeleteTensor", {R"(tensor: "$A/tensors/a")"}},
      {"TensorService.DeleteTensors",
       {R"(session: "$A" tensors: ["$A/tensors/a", "$A/tensors/b"])"}},
      {"PlanService.CreatePlan",
       {R"(plan_id: "k" contract { session: "$A" d { modes: [1, 3] }
             a { tensor: "$A/tensors/a" modes: [1, 2] }
             b { tensor: "$A/tensors/b" modes: [2, 3] } })"}},
      {"ComputeService.ExecutePlan",
       {R"(plan: "$A/plans/k" a { tensor: "$A/tensors/a" }
           b { tensor: "$A/tensors/b" } tensor_id: "e")"}},
      {"PlanService.ExplainPlan",
       {R"(reduce { session: "$A" op: BINARY_OPERATOR_ADD d {}
             a { tensor: "$A/tensors/a" modes: [1, 2] } })"}},
      {"PlanService.DescribePlan", {R"(plan: "$A/plans/k")"}},
      {"PlanService.ListPlans", {R"(session: "$A")"}},
      {"PlanService.DeletePlan", {R"(plan: "$A/plans/k")"}},
      {"PlanService.ListKernels", {""}},
      {"ProgramService.ExecuteProgram", {R"(session: "$A" spec {
             source { statements: "T[i,j] := A[i,k]*B[k,j]; s := T[i,i]" }
             operands { name: "A" tensor: "$A/tensors/a" }
             operands { name: "B" tensor: "$A/tensors/b" }
             outputs { name: "s" inline: true } outputs { name: "T" } })"}},
      {"ProgramService.ExecuteProgram",
       {R"(session: "$A" spec { source { einsum: "ij,jk,kl->il" }
             operands { tensor: "$A/tensors/a" }
             operands { tensor: "$A/tensors/b" }
             operands { tensor: "$A/tensors/a" }
             path { memory_limit_bytes: 512 } })"}},
      {"ProgramService.CreateProgram", {R"(session: "$A" program_id: "g" spec {
             source { statements: "T[i,j] := f*A[i,k]*B[k,j]; A[i,k] += f*A[i,k]" }
             operands { name: "A" tensor: "$A/tensors/a" }
             operands { name: "B" tensor: "$A/tensors/b" constant: true }
             operands { name: "f" scalar { real: 2 } } })"}},
      {"ProgramService.ExecuteProgram", {R"(session: "$A" name: "$A/programs/g"
           operands { name: "A" tensor: "$A/tensors/a" })"}},
      {"ProgramService.ExplainProgram", {R"(session: "$A" spec {
             source { ncon { operands { labels: [-1, 1] }
                             operands { labels: [1, -2] } } }
             operands { tensor: "$A/tensors/a" }
             operands { tensor: "$A/tensors/b" } path { costs: "" } })"}},
      {"ProgramService.DescribeProgram", {R"(program: "$A/programs/g")"}},
      {"ProgramService.ListPrograms", {R"(session: "$A")"}},
      {"ProgramService.DeleteProgram", {R"(program: "$A/programs/g")"}},
      {"SessionService.OpenSession",
       {R"(job: "fuzz" lease { seconds: 60 } memory_quota_bytes: 65536)"}},
      {"SessionService.KeepSessionAlive", {R"(session: "$A")"}},
      {"SessionService.DescribeSession", {R"(session: "$A")"}},
      {"SessionService.CloseSession", {R"(session: "$A")"}},
      {"AdminService.GetServerInfo", {""}},
      {"AdminService.GetServerStats", {""}},
      {"AdminService.ListSessions", {R"(page_size: 1 page_token: "1")"}},
      {"AdminService.ListOperations", {"page_size: 1"}},
      {"AdminService.ListLargestTensors",
       {R"(page_size: 1 page_token: "24/1/a")"}},
      {"AdminService.CancelOperations", {"session_number: 1"}},
      {"AdminService.EvictSessions", {R"(tenant: "default")"}},
      {"AdminService.TrimMemory", {""}},
      {"AdminService.DrainServer", {"timeout { seconds: 1 }"}},
      {"AdminService.GetServerConfig", {""}},
      {"AdminService.ReloadServerConfig", {""}},
      {"AdminService.SetLogLevel", {R"(level: "error")"}},
      {"PlanCacheService.GetPlanCacheStats", {""}},
      {"PlanCacheService.ListPlanCacheEntries", {"page_size: 2"}},
      {"PlanCacheService.PinPlanCacheEntry", {R"(id: "0123456789abcdef")"}},
      {"PlanCacheService.UnpinPlanCacheEntry", {R"(id: "0123456789abcdef")"}},
      {"PlanCacheService.RemovePlanCacheEntry", {R"(id: "0123456789abcdef")"}},
      {"PlanCacheService.ClearPlanCache", {""}},
      {"PlanCacheService.DumpPlanCache", {""}},
      {"PlanCacheService.LoadPlanCache", {R"(data: "tensord")", ""}},
      {"AdminService.GetLogLevel", {""}},
      {"TraceService.RecordTimeline",
       {R"(duration { nanos: 1000000 } request_id: "fuzz")"}},
      {"TensorService.ShareTensor",
       {R"(tensor: "$A/tensors/a" tenants: ["default", "chem"])"}},
      {"TensorService.UnshareTensor",
       {R"(tensor: "$A/tensors/a" tenants: "chem")"}},
      // Of a share that nobody has made.
      {"TensorService.OpenSharedTensor", {R"(session: "$A" tensor_id: "o"
           share: "shares/0123456789abcdef0123456789abcdef")"}},
      // Of regions that nobody has brought.
      {"SessionService.OpenSharedMemory", {R"(session: "$A")"}},
      {"TensorService.AdoptTensor",
       {R"(session: "$A" tensor_id: "r" element_type: ELEMENT_TYPE_FLOAT32
           layout { extents: [2, 3] } region: 1 offset_bytes: 256)"}},
      {"TensorService.StoreTensor",
       {R"(tensor: "$A/tensors/a" layout { extents: [2, 3] } region: 1)"}},
      {"ProgramService.ExecuteProgram", {R"(session: "$A" spec { source {
             statements: "U[i,k], S[k], V[k,j] := svd(A[i,j]; cutoff=c, rank=2);" }
             operands { name: "A" tensor: "$A/tensors/a" }
             operands { name: "c" scalar { real: 1e-3 } }
             outputs { name: "S" inline: true } outputs { name: "U" } })"}},
      {"ComputeService.Reduce",
       {R"(session: "$A" op: BINARY_OPERATOR_ADD d { modes: [1, 2] }
           a { tensor: "$A/tensors/a" modes: [1, 2] } along { mode: 2 })"}},
      {"ComputeService.Reduce",
       {R"(session: "$A" d { modes: [2, 1] inline: true }
           a { tensor: "$A/tensors/a" modes: [1, 2] }
           along { mode: 1 sorting: SORTING_DESCENDING })"}},
      {"ComputeService.Elementwise",
       {R"(session: "$A" op_abc: BINARY_OPERATOR_TAKE gamma {}
           d { modes: [3, 2] } a { tensor: "$A/tensors/a" modes: [1, 2] }
           b { modes: 3 inline { element_type: ELEMENT_TYPE_INT8
               layout { extents: 2 } data: "\000\001" } })"}},
      {"ProgramService.ExecuteProgram", {R"(session: "$A" spec { source {
             statements: "I[i,j] := argsort(A[i,j]; along=i); D[i,j] := cumsum(A[I[i,j],j]; along=j);" }
             operands { name: "A" tensor: "$A/tensors/a" }
             outputs { name: "D" inline: true } })"}},
      {"ComputeService.SolveLinear",
       {R"(session: "$A" function: MATRIX_FUNCTION_EXPONENTIAL
           structure: MATRIX_STRUCTURE_HERMITIAN
           a { modes: [1, 2] inline { element_type: ELEMENT_TYPE_FLOAT64
               layout { extents: [1, 1] } data: "\000\000\000\000\000\000\360\077" } }
           d { modes: [1, 3] inline: true })"}},
      {"ComputeService.Factorize",
       {R"(session: "$A" method: FACTORIZATION_METHOD_SVD
           a { tensor: "$A/tensors/a" modes: [1, 2] } q { modes: [1, 3] }
           r { modes: [3, 2] } values { modes: 3 }
           truncation { rank: 1 sampling { oversampling: 0 power_iterations: 1
                                           seed: 3 } })"}},
      {"ProgramService.ExecuteProgram", {R"(session: "$A" spec { source {
             statements: "E[i,k] := expm(A[i,j]*A[l,j]); n = norm(E[i,k] - E[k,i]);" }
             operands { name: "A" tensor: "$A/tensors/a" }
             outputs { name: "n" inline: true } })"}},
  };
  return all;
}

void Change(Message& message, Input& input, const Names& names) {
  const auto& type = *message.GetDescriptor();
  const auto& reflection = *message.GetReflection();
  if (type.field_count() == 0) return;
  const FieldDescriptor& field =
      *type.field(static_cast<int>(input.Below(type.field_count())));
  const uint8_t what = input.Next();
  const int size =
      field.is_repeated() ? reflection.FieldSize(message, &field) : 0;
  if (what == 0) {
    if (!field.is_repeated()) {
      reflection.ClearField(&message, &field);
    } else if (size > 0) {
      reflection.RemoveLast(&message, &field);
    }
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    if (!field.is_repeated()) {
      Change(*reflection.MutableMessage(&message, &field), input, names);
    } else if (what % 4 == 1 || size == 0) {
      Change(*reflection.AddMessage(&message, &field), input, names);
    } else {
      Change(*reflection.MutableRepeatedMessage(&message, &field, what % size),
             input, names);
    }
  } else {
    const auto values = ValuesFor(field);
    if (size > 0 && what % 2 == 0) reflection.RemoveLast(&message, &field);
    TextFormat::ParseFieldValueFromString(
        absl::StrReplaceAll(values[input.Below(values.size())], names), &field,
        &message);
  }
}

const MethodDescriptor& MethodOf(const std::string& name) {
  const MethodDescriptor* const method =
      google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
          "tensord.v1." + name);
  Check(method != nullptr, "it is a method", name);
  return *method;
}

std::unique_ptr<Message> NewMessage(
    const google::protobuf::Descriptor& descriptor) {
  return std::unique_ptr<Message>(
      MessageFactory::generated_factory()->GetPrototype(&descriptor)->New());
}

}  // namespace tensord::fuzz
