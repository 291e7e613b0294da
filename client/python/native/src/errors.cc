#include "client/python/native/src/errors.h"

#include "client/cpp/src/errors.h"
#include "tensord/status.h"
#include "tensord/v1/error.pb.h"

namespace tensord::native {
namespace {

namespace nb = nanobind;

constexpr char kDetailKey[] = "tensord-error-bin";

// Lives as long as the module, which is never unloaded.
PyObject* call_error = nullptr;

}  // namespace

Outcome OutcomeOf(const grpc::Status& status,
                  const grpc::ClientContext& context) {
  Outcome outcome;
  outcome.code = status.error_code();
  if (status.ok()) return outcome;
  outcome.details = status.error_message();
  for (const auto& [key, value] : context.GetServerTrailingMetadata()) {
    outcome.trailing_metadata.emplace_back(
        std::string(key.data(), key.size()),
        std::string(value.data(), value.size()));
  }
  return outcome;
}

Outcome OutcomeOf(const absl::Status& status) {
  Outcome outcome;
  outcome.code = static_cast<int>(status.code());
  if (status.ok()) return outcome;
  outcome.details = std::string(status.message());
  v1::ErrorDetail detail;
  detail.set_reason(ReasonOf(status));
  detail.set_cutensor_status(CutensorStatusOf(status));
  detail.set_request_id(RequestIdOf(status));
  status.ForEachPayload([&](absl::string_view, const absl::Cord& payload) {
    (void)detail.ParseFromString(std::string(payload));
  });
  outcome.trailing_metadata.emplace_back(kDetailKey,
                                         detail.SerializeAsString());
  return outcome;
}

nb::tuple ErrorArguments(const Outcome& outcome) {
  nb::list metadata;
  for (const auto& [key, value] : outcome.trailing_metadata) {
    metadata.append(nb::make_tuple(nb::str(key.data(), key.size()),
                                   nb::bytes(value.data(), value.size())));
  }
  // A server may say anything; words that are no UTF-8 are shown as far as they
  // can be.
  const nb::object details = nb::steal(PyUnicode_DecodeUTF8(
      outcome.details.data(), static_cast<Py_ssize_t>(outcome.details.size()),
      "replace"));
  return nb::make_tuple(outcome.code, details, metadata);
}

void Raise(const Outcome& outcome) {
  PyErr_SetObject(call_error, ErrorArguments(outcome).ptr());
  throw nb::python_error();
}

void BindErrors(nb::module_& module) {
  call_error = PyErr_NewExceptionWithDoc(
      "tensord_native.CallError",
      "A call failed: its status, what the server said, and its metadata.",
      nullptr, nullptr);
  module.attr("CallError") = nb::borrow(call_error);
}

}  // namespace tensord::native
