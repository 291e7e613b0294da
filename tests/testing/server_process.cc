#include "tests/testing/server_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <thread>
#include <utility>

namespace tensord::testing {
namespace {

constexpr int kTries = 1500;  // of 20 ms
constexpr std::chrono::milliseconds kPause(20);

bool CanConnect(const std::string& path) {
  const int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const bool connected =
      connect(socket_fd, reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) == 0;
  close(socket_fd);
  return connected;
}

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

}  // namespace

ServerProcess::ServerProcess(const std::string& binary,
                             std::vector<std::string> flags) {
  std::string folder =
      (std::filesystem::temp_directory_path() / "tensord_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) Die("cannot create " + folder);
  folder_ = folder;
  const std::string path = folder_ + "/socket";
  address_ = "unix:" + path;
  flags.insert(flags.begin(), {binary, "--listen=" + address_});
  std::vector<char*> arguments;
  for (std::string& flag : flags) arguments.push_back(flag.data());
  arguments.push_back(nullptr);

  pid_ = fork();
  if (pid_ == 0) {
    const std::string log = folder_ + "/log";
    const int log_fd = open(log.c_str(), O_WRONLY | O_CREAT, 0600);
    dup2(log_fd, STDOUT_FILENO);
    dup2(log_fd, STDERR_FILENO);
    execv(binary.c_str(), arguments.data());
    _exit(127);
  }
  for (int i = 0; i < kTries; ++i) {
    if (CanConnect(path)) return;
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) break;
    std::this_thread::sleep_for(kPause);
  }
  std::ifstream log(folder_ + "/log");
  Die(binary + " did not come up:\n" +
      std::string{std::istreambuf_iterator<char>(log), {}});
}

ServerProcess::~ServerProcess() {
  kill(pid_, SIGCONT);
  kill(pid_, SIGTERM);
  for (int i = 0; i < kTries; ++i) {
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      break;
    }
    std::this_thread::sleep_for(kPause);
  }
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string ServerProcess::TcpAddress() const {
  const std::regex pattern(" listening address=([^ ]+:[0-9]+) ");
  for (int i = 0; i < kTries; ++i) {
    std::ifstream log(folder_ + "/log");
    const std::string text{std::istreambuf_iterator<char>(log), {}};
    std::smatch found;
    if (std::regex_search(text, found, pattern)) return found[1];
    std::this_thread::sleep_for(kPause);
  }
  Die("the server listens on no TCP address");
}

void ServerProcess::Signal(int signal) {
  kill(pid_, signal);
  siginfo_t change;
  if (signal == SIGSTOP) waitid(P_PID, pid_, &change, WSTOPPED);
  if (signal == SIGKILL) waitid(P_PID, pid_, &change, WEXITED | WNOWAIT);
}

double ServerProcess::CpuSeconds() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // utime and stime are fields 14 and 15; field 2 may hold spaces, but ends
  // with the last bracket.
  long long user = 0;
  long long system = 0;
  std::sscanf(text.c_str() + text.rfind(')') + 1,
              " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld", &user,
              &system);
  return static_cast<double>(user + system) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

double OwnCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * time.tv_usec;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace tensord::testing
