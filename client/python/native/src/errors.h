// What calls raise in Python when they do not end with OK.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>
#include <nanobind/nanobind.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace tensord::native {

/// The end of a call: its status, and the server's detail if it gave one.
struct Outcome {
  int code = 0;
  std::string details;
  std::vector<std::pair<std::string, std::string>> trailing_metadata;

  bool ok() const { return code == 0; }
};

Outcome OutcomeOf(const grpc::Status& status,
                  const grpc::ClientContext& context);
Outcome OutcomeOf(const absl::Status& status);

/// The arguments of a `CallError`: (code, details, trailing metadata).
/// Requires  the GIL.
nanobind::tuple ErrorArguments(const Outcome& outcome);

/// Requires  the GIL; `outcome` is not OK.
[[noreturn]] void Raise(const Outcome& outcome);

/// Adds `CallError` to the module.
void BindErrors(nanobind::module_& module);

}  // namespace tensord::native
