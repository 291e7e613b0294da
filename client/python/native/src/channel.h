// A channel to a server, as Python calls it: bytes in, bytes out.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <nanobind/nanobind.h>

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/src/channels.h"
#include "client/python/native/src/fork.h"

namespace tensord::native {

using Metadata = std::vector<std::pair<std::string, std::string>>;

/// What a call is made with.
struct CallOptions {
  std::optional<double> timeout_seconds;  // none: no deadline
  Metadata metadata;

  void Prepare(grpc::ClientContext& context) const;
};

/// `metadata` is None or pairs of strings.
/// Requires  the GIL.
CallOptions OptionsOf(std::optional<double> timeout_seconds,
                      nanobind::handle metadata);

grpc::ByteBuffer ToBuffer(nanobind::bytes message);

/// Requires  the GIL.
nanobind::bytes ToBytes(const grpc::ByteBuffer& buffer);

/// What TLS needs, in PEM; what is empty is not there.
struct Tls {
  std::string roots;
  std::string private_key;
  std::string certificate_chain;
};

/// The calls that a channel has under way.
struct Running {
  absl::Mutex mutex;
  bool closed ABSL_GUARDED_BY(mutex) = false;
  std::list<grpc::ClientContext*> contexts ABSL_GUARDED_BY(mutex);
};

/// Threads  safe for concurrent use.
class Channel {
 public:
  using Options =
      std::vector<std::pair<std::string, std::variant<int, std::string>>>;

  /// Connects when the first call is made. Without `tls`, plaintext.
  Channel(const std::string& address, const Options& options,
          const std::optional<Tls>& tls);
  ~Channel();

  /// Makes a call with one request and one response, see PendingCall.
  nanobind::bytes Call(const std::string& method, nanobind::bytes request,
                       std::optional<double> timeout_seconds,
                       nanobind::handle metadata);

  /// Cancels all calls; no other can be made.
  void Close();

  /// Of calls that others make here: refused when it is closed or of another
  /// process.
  /// Requires  the GIL.
  void Check() const;

  const std::string& address() const { return address_; }
  const std::shared_ptr<grpc::Channel>& grpc_channel() const {
    return channel_;
  }
  grpc::GenericStub& stub() { return *stub_; }
  const Origin& origin() const { return origin_; }

  /// While it lives, Close() cancels a call. It may outlive the channel.
  class Entry {
   public:
    Entry(Channel& channel, grpc::ClientContext& context);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    const std::shared_ptr<Running> running_;
    std::list<grpc::ClientContext*>::iterator place_;
  };

 private:
  const std::string address_;
  const Origin origin_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::GenericStub> stub_;
  const std::shared_ptr<Running> running_;
};

/// A call with one request and one response that is under way.
///
/// Threads  one at a time.
class PendingCall {
 public:
  /// Begins it.
  /// Errors  ValueError: the channel is closed.
  PendingCall(Channel& channel, const std::string& method,
              nanobind::bytes request, std::optional<double> timeout_seconds,
              nanobind::handle metadata);
  /// Cancels it, and waits for its end, unless that has come.
  /// Requires  the GIL.
  ~PendingCall();

  PendingCall(const PendingCall&) = delete;
  PendingCall& operator=(const PendingCall&) = delete;

  /// Waits for the response without the GIL. Signals that Python handles by an
  /// exception cancel the call.
  ///
  /// Requires  it was not called before.
  /// Errors    CallError: as the status says.
  nanobind::bytes Result();

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace tensord::native
