// A server in a process of its own, for tests and benchmarks.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

namespace tensord::testing {

/// Runs the server binary on a Unix socket of its own from construction to
/// destruction. A server that does not come up ends the program.
class ServerProcess {
 public:
  explicit ServerProcess(const std::string& binary,
                         std::vector<std::string> flags = {});
  ~ServerProcess();

  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// `unix:/path`.
  const std::string& address() const { return address_; }
  /// The first TCP address of --listen, with the port that it got; as soon as
  /// the log has it.
  std::string TcpAddress() const;
  pid_t pid() const { return pid_; }

  /// Sends it `signal`; returns when SIGSTOP has stopped it or SIGKILL ended
  /// it.
  void Signal(int signal);

  /// Seconds of processor time that it has used so far.
  double CpuSeconds() const;

 private:
  std::string folder_;
  std::string address_;
  pid_t pid_ = -1;
};

/// Seconds of processor time that this process has used so far.
double OwnCpuSeconds();

}  // namespace tensord::testing
