// The MP2 correlation energy of a molecule, computed on a tensord server.
//
//   tensord_example_mp2 DATA_FOLDER [ADDRESS]
//
// The folder holds the two-electron integrals over atomic orbitals, (pq|rs),
// the coefficients of the molecular orbitals and their energies, as .npy files,
// and a reference; client/data/water-ccpvdz is one. What is uploaded once stays
// on the server, as does every intermediate; one number comes back:
//
//   E = sum_iajb (ia|jb) [2 (ia|jb) - (ib|ja)] / (e_i + e_j - e_a - e_b)
//
// over occupied orbitals i, j and virtual ones a, b. Exits with 1 when the
// result is off the reference by more than 1e-9 hartree.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "client/cli/npy.h"
#include "tensord/session.h"

namespace {

using tensord::BinaryOperator;
using tensord::HostView;
using tensord::Operand;
using tensord::RemoteTensor;
using tensord::Session;
using tensord::UnaryOperator;
using tensord::cli::NpyFile;

constexpr double kTolerance = 1e-9;  // hartree

/// Columns [first, last) of a row-major square matrix.
std::vector<double> Columns(const double* matrix, int64_t size, int64_t first,
                            int64_t last) {
  std::vector<double> columns;
  for (int64_t row = 0; row < size; ++row) {
    columns.insert(columns.end(), matrix + row * size + first,
                   matrix + row * size + last);
  }
  return columns;
}

/// Runs a step, says how long it took, and ends the program when it failed.
template <typename Step>
auto Timed(const char* what, Step step) {
  const absl::Time start = absl::Now();
  auto result = step();
  if (!result.ok()) {
    std::fprintf(stderr, "%s: %s\n", what, result.status().ToString().c_str());
    std::exit(1);
  }
  std::printf("%-34s %8.2f ms\n", what,
              absl::ToDoubleMilliseconds(absl::Now() - start));
  return *std::move(result);
}

RemoteTensor Upload(Session& session, const char* what,
                    const tensord::UntypedHostView& view) {
  return Timed(what, [&] { return session.Upload(view); });
}

RemoteTensor Contract(Session& session, const char* what, const Operand& a,
                      const Operand& b, const char* d) {
  return Timed(what, [&] { return session.Contract(a, b, d); });
}

/// The energy of the integrals (ia|jb), in hartree.
double EnergyOfPairs(Session& session, const RemoteTensor& iajb,
                     const RemoteTensor& e_occ, const RemoteTensor& e_vir) {
  // e_i - e_a, and from it e_i + e_j - e_a - e_b, by broadcasting.
  const RemoteTensor gap = Timed("gaps e_i - e_a", [&] {
    return session.Elementwise({e_occ, "i"}, BinaryOperator::kAdd, {e_vir, "a"},
                               "ia", {.gamma = -1});
  });
  const RemoteTensor denominator = Timed("denominators", [&] {
    return session.Elementwise({gap, "ia"}, BinaryOperator::kAdd, {gap, "jb"},
                               "iajb");
  });
  const RemoteTensor exchange = Timed("2 (ia|jb) - (ib|ja)", [&] {
    return session.Elementwise({iajb, "iajb"}, BinaryOperator::kAdd,
                               {iajb, "ibja"}, "iajb",
                               {.alpha = 2, .gamma = -1});
  });
  const RemoteTensor pairs = Timed("contributions of pairs", [&] {
    return session.Elementwise({iajb, "iajb"}, BinaryOperator::kMul,
                               {exchange, "iajb"}, BinaryOperator::kMul,
                               {denominator, "iajb", UnaryOperator::kRcp},
                               "iajb");
  });
  const RemoteTensor energy = Timed("sum", [&] {
    return session.Reduce(BinaryOperator::kAdd, {pairs, "iajb"}, "");
  });
  return Timed("download the energy",
               [&] { return energy.Download<double>(); })[0];
}

/// The energy, in hartree.
double Mp2Energy(Session& session, const NpyFile& integrals,
                 const NpyFile& coefficients, const NpyFile& energies,
                 int64_t occupied) {
  const int64_t orbitals = energies.view().layout.extents[0];
  const int64_t virtuals = orbitals - occupied;
  const auto* matrix = static_cast<const double*>(coefficients.view().data);
  const auto* levels = static_cast<const double*>(energies.view().data);
  const std::vector<double> occupied_columns =
      Columns(matrix, orbitals, 0, occupied);
  const std::vector<double> virtual_columns =
      Columns(matrix, orbitals, occupied, orbitals);

  const RemoteTensor ao =
      Upload(session, "upload integrals (pq|rs)", integrals.view());
  const RemoteTensor c_occ =
      Upload(session, "upload occupied orbitals",
             HostView<double>{occupied_columns.data(), {orbitals, occupied}});
  const RemoteTensor c_vir =
      Upload(session, "upload virtual orbitals",
             HostView<double>{virtual_columns.data(), {orbitals, virtuals}});
  const RemoteTensor e_occ = Upload(session, "upload occupied energies",
                                    HostView<double>{levels, {occupied}});
  const RemoteTensor e_vir =
      Upload(session, "upload virtual energies",
             HostView<double>{levels + occupied, {virtuals}});

  // Four quarter transformations, the smallest result first.
  const RemoteTensor iqrs = Contract(session, "(iq|rs) = (pq|rs) C_pi",
                                     {ao, "pqrs"}, {c_occ, "pi"}, "iqrs");
  const RemoteTensor iqjs = Contract(session, "(iq|js) = (iq|rs) C_rj",
                                     {iqrs, "iqrs"}, {c_occ, "rj"}, "iqjs");
  const RemoteTensor iajs = Contract(session, "(ia|js) = (iq|js) C_qa",
                                     {iqjs, "iqjs"}, {c_vir, "qa"}, "iajs");
  const RemoteTensor iajb = Contract(session, "(ia|jb) = (ia|js) C_sb",
                                     {iajs, "iajs"}, {c_vir, "sb"}, "iajb");

  return EnergyOfPairs(session, iajb, e_occ, e_vir);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s DATA_FOLDER [ADDRESS]\n", argv[0]);
    return 2;
  }
  const std::string folder = argv[1];
  const char* address = argc > 2 ? argv[2] : "localhost:8470";
  const auto known =
      nlohmann::json::parse(std::ifstream(folder + "/reference.json"), nullptr,
                            /*allow_exceptions=*/false);
  if (!known.contains("energy_mp2_correlation") ||
      !known.contains("occupied")) {
    std::fprintf(stderr, "%s/reference.json lacks the reference\n",
                 folder.c_str());
    return 2;
  }
  const double reference = known.at("energy_mp2_correlation");
  const int64_t occupied = known.at("occupied");
  const auto open = [&](const char* name) {
    return NpyFile::Open(folder + "/" + name).value();
  };
  const NpyFile integrals = open("eri_ao.npy");
  const NpyFile coefficients = open("mo_coefficients.npy");
  const NpyFile energies = open("orbital_energies.npy");

  Session session = Timed("connect", [&] { return Session::Connect(address); });
  const double energy =
      Mp2Energy(session, integrals, coefficients, energies, occupied);
  const double difference = energy - reference;
  std::printf("\nMP2 correlation energy %18.12f hartree\n", energy);
  std::printf("reference              %18.12f hartree\n", reference);
  std::printf("difference             %18.1e hartree\n", difference);
  return std::abs(difference) <= kTolerance ? 0 : 1;
}
