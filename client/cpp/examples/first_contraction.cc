// The first steps with a server: upload, contract, download.
//
//   tensord_example_first_contraction [ADDRESS]

#include <cstdio>
#include <numeric>
#include <vector>

#include "tensord/session.h"

int main(int argc, char** argv) {
  const char* address = argc > 1 ? argv[1] : "localhost:8470";

  std::vector<double> values_of_a(500 * 40 * 60, 0.5);
  std::vector<double> values_of_b(60 * 40 * 300);
  std::iota(values_of_b.begin(), values_of_b.end(), 0.0);
  const tensord::HostView<double> view_of_a{values_of_a.data(), {500, 40, 60}};
  const tensord::HostView<double> view_of_b{values_of_b.data(), {60, 40, 300}};

  // value() ends the program when the call failed; a program that wants to go
  // on looks at status().
  auto session = tensord::Session::Connect(address).value();
  auto a = session.Upload(view_of_a).value();
  auto b = session.Upload(view_of_b).value();
  auto c = session.Einsum("ijk,kjl->il", {a, b}).value();

  const std::vector<double> result = c.Download<double>().value();
  std::printf("sum of c: %.17g\n",
              std::accumulate(result.begin(), result.end(), 0.0));
  std::printf("computed in %s\n",
              absl::FormatDuration(c.report().executed).c_str());
  return 0;
}
