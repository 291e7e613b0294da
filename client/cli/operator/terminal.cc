#include "client/cli/operator/terminal.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>

namespace tensord::cli {
namespace {

volatile sig_atomic_t is_ended = 0;

void End(int) { is_ended = 1; }
void WakeUp(int) {}

/// Without SA_RESTART: they end poll().
void Handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigaction(signal, &action, nullptr);
}

void Write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

bool Terminal::IsThere() {
  return isatty(STDOUT_FILENO) != 0 && isatty(STDIN_FILENO) != 0;
}

Terminal::Terminal() {
  Handle(SIGINT, End);
  Handle(SIGTERM, End);
  Handle(SIGWINCH, WakeUp);
  has_settings_ = tcgetattr(STDIN_FILENO, &before_) == 0;
  if (has_settings_) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  Write("\033[?1049h\033[?25l");  // another screen, no cursor
}

Terminal::~Terminal() {
  Write("\033[?25h\033[?1049l");
  if (has_settings_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void Terminal::Draw(const std::vector<std::string>& lines) {
  winsize size = {};
  ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  const size_t rows = size.ws_row == 0 ? 24 : size.ws_row;
  const size_t columns = size.ws_col == 0 ? 80 : size.ws_col;
  std::string text = "\033[H";
  for (size_t i = 0; i < std::min(rows, lines.size()); ++i) {
    if (i > 0) text += "\n";
    for (const char c : lines[i].substr(0, columns)) {
      text += c >= ' ' && c <= '~' ? c : '?';
    }
    text += "\033[K";
  }
  Write(text + "\033[J");
}

bool Terminal::AwaitsEnd(absl::Duration wait) {
  if (is_ended != 0) return true;
  pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  const int ready =
      poll(&input, 1, static_cast<int>(absl::ToInt64Milliseconds(wait)));
  if (is_ended != 0) return true;
  if (ready <= 0) return false;
  char key = 0;
  return read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q';
}

}  // namespace tensord::cli
