// A program outside the tree that uses the installed client.
#include <cstdio>
#include <vector>

#include "tensord/session.h"

int main() {
  const auto session =
      tensord::Session::Connect("unix:/nonexistent/tensord.sock");
  if (session.ok()) return 1;  // Nobody is there.
  const std::vector<double> values(6);
  const tensord::UntypedHostView view =
      tensord::HostView<double>{values.data(), {2, 3}};
  if (tensord::SpanElements(view.layout) != 6) return 1;
  std::printf("%s\n", session.status().ToString().c_str());
  return session.status().code() == absl::StatusCode::kUnavailable ? 0 : 1;
}
