// Multiplies two matrices of ones on a server and prints the sum of the
// product.
//
//   consumer ADDRESS

#include <cstdio>
#include <numeric>
#include <vector>

#include "tensord/session.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::vector<double> ones(6, 1.0);
  const tensord::HostView<double> a{ones.data(), {2, 3}};
  const tensord::HostView<double> b{ones.data(), {3, 2}};
  auto session = tensord::Session::Connect(argv[1]).value();
  auto product = session.Einsum("ij,jk->ik", {a, b}).value();
  const std::vector<double> values = product.Download<double>().value();
  std::printf("%g\n", std::accumulate(values.begin(), values.end(), 0.0));
  return 0;
}
