// The module `tensord_native._core`; `_core.pyi` says what is in it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "absl/synchronization/mutex.h"
#include "client/python/native/src/calls.h"
#include "client/python/native/src/channel.h"
#include "client/python/native/src/errors.h"
#include "client/python/native/src/stream.h"
#include "client/python/native/src/transfers.h"
#include "core/base/version.h"

namespace tensord::native {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;

using Pem = std::optional<nb::bytes>;

std::string TextOf(const Pem& pem) {
  return pem.has_value() ? std::string(pem->c_str(), pem->size()) : "";
}

void Bind(nb::module_& module) {
  // Whoever leaves a session open at the end of a program need not hear of it.
  nb::set_leak_warnings(false);
  // It takes a good part of a call, as Debian builds Abseil.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  BindErrors(module);
  module.attr("version") = nb::str(core::kVersion);

  nb::class_<Channel>(module, "Channel")
      .def(
          "__init__",
          [](Channel* self, const std::string& address,
             const Channel::Options& options,
             const std::optional<std::tuple<Pem, Pem, Pem>>& tls) {
            std::optional<Tls> fields;
            if (tls.has_value()) {
              const auto& [roots, key, chain] = *tls;
              fields = {TextOf(roots), TextOf(key), TextOf(chain)};
            }
            new (self) Channel(address, options, fields);
          },
          "address"_a, "options"_a, "tls"_a.none())
      .def("call", &Channel::Call, "method"_a, "request"_a, "timeout"_a.none(),
           "metadata"_a.none())
      .def("close", &Channel::Close, nb::call_guard<nb::gil_scoped_release>());

  nb::class_<PendingCall>(module, "PendingCall")
      .def(nb::init<Channel&, const std::string&, nb::bytes,
                    std::optional<double>, nb::handle>(),
           "channel"_a, "method"_a, "request"_a, "timeout"_a.none(),
           "metadata"_a.none())
      .def("result", &PendingCall::Result);

  nb::class_<Stream>(module, "Stream")
      .def(nb::init<Channel&, const std::string&, std::optional<double>,
                    nb::handle, bool>(),
           "channel"_a, "method"_a, "timeout"_a.none(), "metadata"_a.none(),
           "packs"_a = false)
      .def("write", &Stream::Write, "message"_a)
      .def("end_writes", &Stream::EndWrites)
      .def("read", &Stream::Read, "gather_seconds"_a)
      .def("flush", &Stream::Flush)
      .def("hurry", &Stream::Hurry)
      .def("cancel", &Stream::Cancel, nb::call_guard<nb::gil_scoped_release>())
      .def("finish", &Stream::Finish);

  nb::class_<Calls>(module, "Calls")
      .def(nb::init<>())
      .def_prop_ro("descriptor", &Calls::descriptor)
      .def("begin", &Calls::Begin, "channel"_a, "method"_a, "request"_a,
           "timeout"_a.none(), "metadata"_a.none())
      .def("take", &Calls::Take)
      .def("cancel", &Calls::Cancel, "number"_a,
           nb::call_guard<nb::gil_scoped_release>());

  nb::class_<Transfers>(module, "Transfers")
      .def(nb::init<std::shared_ptr<Channel>>(), "channel"_a)
      .def("upload", &Transfers::Upload, "tensor"_a, "data"_a, "chunk_bytes"_a,
           "timeout"_a, "metadata"_a.none(), "progress"_a.none())
      .def("download", &Transfers::Download, "tensor"_a, "data"_a,
           "chunk_bytes"_a, "timeout"_a, "metadata"_a.none(),
           "progress"_a.none());
}

}  // namespace
}  // namespace tensord::native

NB_MODULE(_core, module) { tensord::native::Bind(module); }
