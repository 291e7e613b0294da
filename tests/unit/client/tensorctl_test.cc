// tensorctl as the shell runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <fstream>
#include <string>
#include <vector>

#include "tensord/session.h"
#include "tests/testing/places.h"
#include "tests/testing/server_process.h"
#include "tests/unit/client/credentials.h"
#include "tests/unit/client/tensorctl_run.h"

namespace tensord::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;

TEST(TensorctlTest, UnknownAndMissingCommandsNameTheKnownOnes) {
  Ended ended = Tensorctl("frobnicate ij a.npy");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, HasSubstr("there is no command 'frobnicate', "
                                      "wanted one of info, stats, health"));
  ended = Tensorctl("explain info");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, HasSubstr("wanted one of einsum, run"));
  ended = Tensorctl("");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, HasSubstr("no command after tensorctl"));
  ended = Tensorctl("einsum");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, HasSubstr("subscripts is required"));
}

TEST(TensorctlTest, ValuesOutOfRangeSayWhatIsWanted) {
  for (const char* timeout : {"0", "-1", "soon", "nan"}) {
    const Ended ended = Tensorctl(std::string("info --timeout=") + timeout);
    EXPECT_EQ(ended.code, 2);
    EXPECT_THAT(ended.output, HasSubstr(std::string("--timeout: '") + timeout +
                                        "' is not a time, wanted more than 0 "
                                        "seconds"));
  }
  const Ended ended = Tensorctl("permute i-\\>i a.npy --workspace-limit=5XiB");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, HasSubstr("'5XiB' is not a size"));
}

TEST(TensorctlTest, CredentialsComeFromFiles) {
  const std::string folder = testing::TemporaryFolder() + "/certificates";
  testing::MakeCertificates(folder);
  testing::MakeTokens(folder + "/tokens");
  std::ofstream(folder + "/token") << testing::kTokenSecret << "\n";
  const testing::ServerProcess server(
      testing::Built("tensord"),
      {"--listen=localhost:0", "--tls-certificate=" + folder + "/server.pem",
       "--tls-key=" + folder + "/server-key.pem",
       "--tokens=" + folder + "/tokens"});
  const std::string info = "info --address=" + server.TcpAddress();
  const std::string ca = " --ca " + folder + "/ca.pem";

  Ended ended = Tensorctl(info + ca + " --token-file " + folder + "/token");
  EXPECT_EQ(ended.code, 0) << ended.output;
  ended = Tensorctl(info, "TENSORD_CA=" + folder +
                              "/ca.pem TENSORD_TOKEN=" + testing::kTokenSecret);
  EXPECT_EQ(ended.code, 0) << ended.output;
  ended = Tensorctl(info + ca);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("UNAUTHENTICATED"));
  ended = Tensorctl(info);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("[TLS_HANDSHAKE_FAILED]"));
  // Others would see it in the list of processes.
  ended = Tensorctl(info + ca + " --token=" + testing::kTokenSecret);
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, Not(HasSubstr("tensord 0")));
}

TEST(TensorctlTest, ComputesOnScalarsAndComplexNumbers) {
  const testing::ServerProcess server(testing::Built("tensord"));
  const std::string to = " --address=" + server.address() + " ";
  using Number = std::complex<double>;
  const std::string a =
      Save<Number>("a", {ElementType::kComplex128, {}}, {{3, 1}});
  const std::string d = PathOf("d");
  Ended ended = Tensorctl("permute '->' " + a + to + "--alpha 1+2j -o " + d);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(Load<Number>(d, 1), (std::vector<Number>{{1, 7}}));
  ended = Tensorctl("einsum '->' " + a + to + "--workspace-limit=1MiB -o " + d);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(Load<Number>(d, 1), (std::vector<Number>{{3, 1}}));

  const std::string real =
      Save<float>("real", {ElementType::kFloat32, {}}, {3});
  ended = Tensorctl("permute '->' " + real + to + "--alpha 1+2j");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("wanted a real number for float32"));
  ended = Tensorctl("permute '->' " + real + to + "--alpha two");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, HasSubstr("'two' is not a number, wanted"));
}

TEST(TensorctlTest, DeleteEndsManyTensorsAtOnce) {
  const testing::ServerProcess server(testing::Built("tensord"));
  Session session = Session::Connect(server.address()).value();
  std::string names;
  for (const char* name : {"a", "b"}) {
    RemoteTensor tensor =
        session.Create(ElementType::kFloat32, {{4}}, {.name = name}).value();
    names += " " + tensor.name();
    tensor.Release();
  }
  const std::string command = "delete --address=" + server.address() + names;
  Ended ended = Tensorctl(command);
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.output, "2 deleted\n");
  EXPECT_THAT(session.List().value(), ::testing::IsEmpty());
  ended = Tensorctl(command);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("0 of 2 tensors were deleted"));
}

TEST(TensorctlTest, LabelsAreCharactersOfAnyAlphabet) {
  const testing::ServerProcess server(testing::Built("tensord"));
  const std::string to = " --address=" + server.address() + " ";
  const std::string a =
      Save<float>("a", {ElementType::kFloat32, {2, 2}}, {1, 2, 3, 4});
  const std::string d = PathOf("d");
  Ended ended = Tensorctl("contract 'i\u00d7, \u00d7\u03b2 -> i\u03b2' " + a +
                          " " + a + to + "-o " + d);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(Load<float>(d, 4), (std::vector<float>{7, 10, 15, 22}));
  ended = Tensorctl("permute 'i\u00d7->i' " + a + to);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("mode '\u00d7'"));
  ended = Tensorctl("permute 'i1->1i' " + a + to);
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, HasSubstr("column 2: got '1', wanted letters"));
  ended = Tensorctl("permute ij " + a + to);
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, HasSubstr("'ij' is not of the form"));
}

TEST(TensorctlTest, InfoAndStatsTellBandwidthAndMemory) {
  const testing::ServerProcess server(testing::Built("tensord"));
  const std::string to = " --address=" + server.address();
  Ended ended = Tensorctl("info" + to);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, ContainsRegex("copy_gb_per_s  [0-9]+\n"));
  ended = Tensorctl("stats" + to);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("  memory      0 B of "));
  EXPECT_THAT(ended.output, ContainsRegex("host memory, at most .*iB\n"));
  EXPECT_THAT(ended.output, HasSubstr("  tensors     0 of 1000000, 0 B\n"));
  // There is none beside host memory.
  EXPECT_THAT(ended.output, Not(HasSubstr("staging")));
  ended = Tensorctl("stats --json" + to);
  EXPECT_THAT(ended.output, HasSubstr("\"staging_limit_bytes\": 0"));
}

TEST(TensorctlTest, ReadsFilesInFortranOrder) {
  const testing::ServerProcess server(testing::Built("tensord"));
  const std::string a = Save<float>(
      "fortran", {ElementType::kFloat32, {2, 3}, Order::kFirstModeFastest},
      {11, 21, 12, 22, 13, 23});
  const std::string d = PathOf("c_order");
  const Ended ended = Tensorctl("einsum 'ij->ij' " + a + " -o " + d +
                                " --address=" + server.address());
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(Load<float>(d, 6), (std::vector<float>{11, 12, 13, 21, 22, 23}));
}

TEST(TensorctlTest, ShowsAndKeepsThePlanCache) {
  const testing::ServerProcess server(testing::Built("tensord"));
  const std::string to = " --address=" + server.address();
  const std::string a =
      Save<float>("square", {ElementType::kFloat32, {2, 2}}, {1, 2, 3, 4});
  Ended ended = Tensorctl("contract ik,kj-\\>ij " + a + " " + a + to);
  EXPECT_EQ(ended.code, 0) << ended.output;
  ended = Tensorctl("cache stats" + to);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("entries   1 of 65536, 0 pinned"));
  EXPECT_THAT(ended.output, HasSubstr("tensorctl"));
  EXPECT_THAT(ended.output, Not(HasSubstr("(none)")));
  ended = Tensorctl("permute ij-\\>ji " + a + " --job ''" + to);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(Tensorctl("cache stats" + to).output, HasSubstr("(none)"));
  EXPECT_EQ(Tensorctl("cache clear" + to).code, 0);
  ended = Tensorctl("contract ik,kj-\\>ij " + a + " " + a + to);
  EXPECT_EQ(ended.code, 0) << ended.output;
  ended = Tensorctl("cache list" + to);
  EXPECT_THAT(ended.output, HasSubstr("cpu.contract."));
  const size_t line = ended.output.find('\n') + 1;
  const std::string id = ended.output.substr(line, 16);
  EXPECT_EQ(Tensorctl("cache pin " + id + to).code, 0);
  ended = Tensorctl("cache clear" + to);
  EXPECT_THAT(ended.output, HasSubstr("removed 0 entries"));
  const std::string file = testing::TemporaryFolder() + "/dump.plans";
  ended = Tensorctl("cache dump " + file + to);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(Tensorctl("cache unpin " + id + to).code, 0);
  EXPECT_EQ(Tensorctl("cache remove " + id + to).code, 0);
  ended = Tensorctl("cache remove " + id + to);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("PLAN_NOT_FOUND"));
  ended = Tensorctl("cache load " + file + to);
  EXPECT_THAT(ended.output, HasSubstr("1 of 1 entries taken in"));
  ended = Tensorctl("cache load " + a + to);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("SNAPSHOT_FOREIGN"));
  ended = Tensorctl("cache stats --json" + to);
  EXPECT_THAT(ended.output, HasSubstr("\"record_count\": 1"));
  ended = Tensorctl("kernels" + to);
  EXPECT_THAT(ended.output, HasSubstr("cpu.permute.blocked"));
  ended = Tensorctl("plans sessions/none" + to);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("SESSION_NOT_FOUND"));
}

TEST(TensorctlTest, TakesPartsOfFilesAndPads) {
  const testing::ServerProcess server(testing::Built("tensord"));
  const std::string to = " --address=" + server.address();
  const std::string a = Save<float>("matrix", {ElementType::kFloat32, {2, 3}},
                                    {11, 12, 13, 21, 22, 23});
  const std::string d = PathOf("part");
  Ended ended = Tensorctl("permute 'ij->ji' '" + a + "[:, ::-2]' -o " + d + to);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(Load<float>(d, 4), (std::vector<float>{13, 23, 11, 21}));
  EXPECT_THAT(ended.output, HasSubstr("16 B of views gathered"));
  ended = Tensorctl("permute 'j->j' '" + a +
                    "[1]' --pad 1:0 --pad-value 7 -o " + d + to);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(Load<float>(d, 4), (std::vector<float>{7, 21, 22, 23}));
  ended = Tensorctl("permute 'ij->ji' " + a +
                    " --alpha 2 --pad 0:0,1:0 --pad-value 7 -o " + d + to);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(Load<float>(d, 9),
            (std::vector<float>{7, 22, 42, 7, 24, 44, 7, 26, 46}));
  ended = Tensorctl("explain permute 'j->j' '" + a + "[1]'" + to);
  EXPECT_EQ(ended.code, 0) << ended.output;

  ended = Tensorctl("permute 'j->j' '" + a + "[2]'" + to);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("INDEX_OUT_OF_RANGE"));
  ended = Tensorctl("permute 'j->j' '" + a + "[x]'" + to);
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, HasSubstr("'x' in "));
  ended = Tensorctl("permute 'ij->ij' " + a + " --pad 1" + to);
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, HasSubstr("wanted BEFORE:AFTER"));
  ended = Tensorctl("permute 'ij->ij' " + a + " --pad 1:1" + to);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("PADDING_COUNT_MISMATCH"));
}

TEST(TensorctlTest, FactorizesIntoTwoFiles) {
  const testing::ServerProcess server(testing::Built("tensord"));
  const std::string to = " --address=" + server.address() + " ";
  // Columns of length 5 and 13 that are orthogonal: q and r are known.
  const std::string a = Save<double>("columns", {ElementType::kFloat64, {2, 2}},
                                     {3, -4 * 2.6, 4, 3 * 2.6});
  const std::string q = PathOf("q"), r = PathOf("r");
  const std::string command = "factorize --method qr 'ij->ik,kj' " + a + to;
  Ended ended = Tensorctl(command + "-o " + q + " -o " + r);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output,
              ContainsRegex("q         float64 \\(2, 2\\) -> .*q.npy\n"
                            "r         float64 \\(2, 2\\) -> .*r.npy\n"
                            "kernel    cpu.factorize."));
  // Higham's bound, 8 m k sqrt(k) u of the column's norm.
  const double bound = 8 * 2 * 2 * 1.5 * 1.2e-16;
  EXPECT_THAT(Load<double>(q, 4),
              Pointwise(DoubleNear(bound), {0.6, -0.8, 0.8, 0.6}));
  EXPECT_THAT(Load<double>(r, 4),
              Pointwise(DoubleNear(13 * bound), {5.0, 0.0, 0.0, 13.0}));
  EXPECT_EQ(Load<double>(r, 4)[2], 0);

  ended = Tensorctl(
      "factorize --method QR --selection measure --kernel "
      "cpu.factorize.reference 'i->k,ki' '" +
      a + "[0]'" + to + "-o " + q + " --output " + r);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(Load<double>(r, 2),
              Pointwise(DoubleNear(11 * bound), {3.0, -10.4}));
  ended = Tensorctl("explain " + command);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("cpu.factorize.reference"));
}

TEST(TensorctlTest, SolvesEquations) {
  const testing::ServerProcess server(testing::Built("tensord"));
  const std::string to = " --address=" + server.address() + " ";
  // 0 2 / 1 3: each step is exact.
  const std::string a =
      Save<double>("matrix", {ElementType::kFloat64, {2, 2}}, {0, 2, 1, 3});
  const std::string b =
      Save<double>("right", {ElementType::kFloat64, {2}}, {0, 1});
  const std::string d = PathOf("solution");
  const std::string command = "solve 'ij,i->j' " + a + " " + b + to;
  Ended ended = Tensorctl(command + "-o " + d);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("kernel    cpu.solve."));
  EXPECT_THAT(Load<double>(d, 2), ElementsAre(1, 0));
  ended = Tensorctl("solve 'ij->jk' " + a + to + "-o " + d);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(Load<double>(d, 4), ElementsAre(-1.5, 1, 0.5, 0));
  ended = Tensorctl(command +
                    "--structure lower-triangular --unit-diagonal -o " + d);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(Load<double>(d, 2), ElementsAre(0, 1));
  ended = Tensorctl("explain " + command);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("cpu.solve.reference"));
  ended = Tensorctl(command + "--structure positive-definite");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("MATRIX_NOT_POSITIVE_DEFINITE"));
  ended = Tensorctl("solve 'ij->jk' " + a + to + "--unary-b conj");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, HasSubstr("there is no b"));
  const std::string nilpotent =
      Save<double>("nilpotent", {ElementType::kFloat64, {2, 2}}, {0, 5, 0, 0});
  ended = Tensorctl("solve 'ij->ij' " + nilpotent + to +
                    "--function exponential -o " + d);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(Load<double>(d, 4), ElementsAre(1, 5, 0, 1));
  ended = Tensorctl("explain solve 'ij->ik' " + nilpotent + to +
                    "--function exponential");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("exponential general float64"));
  ended = Tensorctl(command + "--function inverse");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, HasSubstr("of a alone, but there are two files"));
  ended = Tensorctl(command + "--structure round");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, HasSubstr("lower-triangular"));
}

TEST(TensorctlTest, TruncatesSvds) {
  const testing::ServerProcess server(testing::Built("tensord"));
  const std::string to = " --address=" + server.address() + " ";
  const std::string a = Save<double>(
      "diagonal", {ElementType::kFloat64, {2, 2}}, {3, 0, 0, 0.01});
  const std::string u = PathOf("u"), s = PathOf("s"), v = PathOf("v");
  const std::string files = "-o " + u + " -o " + s + " -o " + v;
  Ended ended = Tensorctl("factorize --method svd --relative-cutoff 0.1 " +
                          files + " 'ij->ik,k,kj' " + a + to);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("1 values kept, zeros beyond"));
  EXPECT_THAT(Load<double>(s, 2), Pointwise(DoubleNear(1e-14), {3.0, 0.0}));
  const std::string sampled = "factorize --method svd --rank 1 " + files +
                              " 'ij->ik,k,kj' " + a + to + "--randomized ";
  ended =
      Tensorctl(sampled + "--oversampling 0 --power-iterations 3 --seed -7");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_THAT(Load<double>(s, 1), ElementsAre(DoubleNear(3, 1e-12)));
  ended = Tensorctl(sampled + "--seed 99999999999999999999");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, HasSubstr("is no whole number of 64 bits"));
  ended = Tensorctl("factorize --method svd --randomized " + files +
                    " 'ij->ik,k,kj' " + a + to);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.output, HasSubstr("SAMPLING_WITHOUT_RANK"));
  ended = Tensorctl("factorize --method svd --rank 1 --absorb both -o " + u +
                    " -o " + v + " 'ij->ik,kj' " + a + to);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_NEAR(std::abs(Load<double>(u, 2)[0]), std::sqrt(3), 1e-14);
  // As many files as results, or nothing is written.
  ended = Tensorctl("factorize --method svd -o " + u + " -o " + v +
                    " 'ij->ik,k,kj' " + a + to);
  EXPECT_EQ(ended.code, 2) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("got 2 -o, wanted 3: -o u.npy -o s.npy"));
  ended = Tensorctl("factorize --method svd --absorb left " + files +
                    " 'ij->ik,kj' " + a + to);
  EXPECT_EQ(ended.code, 2) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("got 3 -o, wanted 2: -o u.npy -o v.npy"));
}

TEST(TensorctlTest, FactorizationsSayWhatIsWanted) {
  const testing::ServerProcess server(testing::Built("tensord"));
  const std::string to = " --address=" + server.address() + " ";
  const std::string a =
      Save<float>("square", {ElementType::kFloat32, {2, 2}}, {1, 2, 3, 4});
  const std::string both = "-o " + PathOf("q") + " -o " + PathOf("r");
  const auto fails = [&](const std::string& arguments) {
    const Ended ended = Tensorctl("factorize " + arguments + " " + a + to);
    EXPECT_EQ(ended.code, 2) << ended.output;
    return ended.output;
  };
  EXPECT_THAT(fails("'ij->ik,kj' " + both), HasSubstr("--method is required"));
  EXPECT_THAT(fails("--method lu 'ij->ik,kj' " + both),
              HasSubstr("'lu' is none of cholesky, eigh, lq, qr, svd"));
  EXPECT_THAT(fails("--method svd 'ij->ik,k,kj' --absorb up " + both),
              HasSubstr("'up' is none of both"));
  EXPECT_THAT(fails("--method qr 'ij->ik,kj'"),
              HasSubstr("--output is required"));
  EXPECT_THAT(fails("--method qr 'ij->ik,kj' -o " + PathOf("q")),
              HasSubstr("got 1 -o, wanted 2: -o q.npy -o r.npy"));
  EXPECT_THAT(fails("--method qr 'ij->ik,kj' -o q.npy -o ./q.npy"),
              HasSubstr("-o names ./q.npy twice, wanted two files, for q and "
                        "for r"));
  EXPECT_THAT(fails("--method qr 'ij->ik' " + both),
              HasSubstr("subscripts have 1 results, wanted 2, q and r"));
  EXPECT_THAT(Tensorctl("factorize --help").output,
              HasSubstr("tensorctl factorize --method qr"));
}

}  // namespace
}  // namespace tensord::cli
