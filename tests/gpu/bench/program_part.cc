// Rows, one a way of computing 20 products of square matrices of float32
//   shape = "chain" (each takes the one before) or "beside" (none does),
//   extent, statements, way = "one call", "calls" (each is waited for),
//   "pipeline", "program" (its text is sent) or "prepared", ns in all; of
//   programs also executed_ns (the server's, on the device) and replayed (the
//   last run)
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/status.h"
#include "tests/gpu/bench/server_parts.h"

namespace tensord::test {
namespace {

constexpr int kStatements = 20;
constexpr int kWarmUps = 5;
constexpr int kRuns = 51;

using Matrix = std::vector<float>;  // square, last mode fastest

/// Rows sum up to at most 1 in absolute value: products do not grow.
Matrix RandomMatrix(int64_t extent, std::mt19937& random) {
  const float most = 1.0f / static_cast<float>(extent);
  std::uniform_real_distribution<float> element(-most, most);
  Matrix matrix(static_cast<size_t>(extent * extent));
  for (float& value : matrix) value = element(random);
  return matrix;
}

std::vector<double> Product(const Matrix& a, const std::vector<double>& b,
                            int64_t extent) {
  const auto n = static_cast<size_t>(extent);
  std::vector<double> product(n * n, 0.0);
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < n; ++k) {
      for (size_t j = 0; j < n; ++j) {
        product[i * n + j] += double{a[i * n + k]} * b[k * n + j];
      }
    }
  }
  return product;
}

/// d_i = a_i d_{i-1} or a_i x.
struct Problem {
  bool is_chain;
  int64_t extent;
  std::vector<Matrix> host_a;
  std::vector<std::vector<double>> expected;  // every d
  std::vector<RemoteTensor> a, d;
  std::vector<RemoteTensor> x;  // one

  const RemoteTensor& input(size_t i) const {
    return is_chain && i > 0 ? d[i - 1] : x[0];
  }
};

absl::StatusOr<Problem> MakeProblem(Session& session, bool is_chain,
                                    int64_t extent) {
  Problem problem{.is_chain = is_chain, .extent = extent};
  std::mt19937 random(7);
  const auto upload = [&](const Matrix& matrix) {
    return session.Upload(HostView<float>{matrix.data(), {extent, extent}});
  };
  const Matrix x = RandomMatrix(extent, random);
  TENSORD_ASSIGN_OR_RETURN(auto remote_x, upload(x));
  problem.x.push_back(std::move(remote_x));
  const std::vector<double> wide_x(x.begin(), x.end());
  for (int i = 0; i < kStatements; ++i) {
    const Matrix a = RandomMatrix(extent, random);
    const std::vector<double>& input =
        is_chain && i > 0 ? problem.expected.back() : wide_x;
    problem.expected.push_back(Product(a, input, extent));
    TENSORD_ASSIGN_OR_RETURN(auto remote_a, upload(a));
    problem.a.push_back(std::move(remote_a));
    TENSORD_ASSIGN_OR_RETURN(
        auto d, session.Create(ElementType::kFloat32, {{extent, extent}}));
    problem.d.push_back(std::move(d));
  }
  return problem;
}

/// Elements are at most 1, and so is each product's share in an error before
/// it: a product adds at most extent + 1 roundings.
absl::Status CheckNumber(const Problem& problem, size_t number,
                         const Matrix& elements) {
  const double bound = kStatements * static_cast<double>(problem.extent + 1) *
                       std::numeric_limits<float>::epsilon() / 2;
  for (size_t i = 0; i < elements.size(); ++i) {
    const double expected = problem.expected[number][i];
    if (std::abs(elements[i] - expected) <= bound) continue;
    return absl::DataLossError(absl::StrCat("element ", i, " of result ",
                                            number, " is ", elements[i],
                                            ", not ", expected));
  }
  return absl::OkStatus();
}

/// What one run of a program told of itself.
struct Told {
  double executed_ns = 0;
  bool replayed = false;
};

/// The median of some runs, after some that do not count.
absl::Status PrintWay(const Problem& problem, const char* way, int statements,
                      const Effort& effort, const Told* told,
                      absl::FunctionRef<absl::Status()> run) {
  std::vector<double> durations_ns, executed_ns;
  const int warm_ups = effort.tiny ? 1 : kWarmUps;
  const int runs = effort.tiny ? 1 : kRuns;
  for (int i = 0; i < warm_ups + runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    TENSORD_RETURN_IF_ERROR(run());
    if (i < warm_ups) continue;
    durations_ns.push_back(std::chrono::duration<double, std::nano>(
                               std::chrono::steady_clock::now() - start)
                               .count());
    if (told != nullptr) executed_ns.push_back(told->executed_ns);
  }
  const auto median = [](std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  Row row{{"part", "program"},
          {"shape", problem.is_chain ? "chain" : "beside"},
          {"extent", problem.extent},
          {"statements", statements},
          {"way", way},
          {"ns", median(durations_ns)}};
  if (told != nullptr) {
    row.emplace_back("executed_ns", median(executed_ns));
    row.emplace_back("replayed", told->replayed);
  }
  Print(row);
  return absl::OkStatus();
}

/// What calls have left in the tensors d, which become NaN.
absl::Status CheckAndForget(Session& session, const Problem& problem) {
  Matrix elements(problem.expected.front().size());
  const Matrix nothing(elements.size(),
                       std::numeric_limits<float>::quiet_NaN());
  for (size_t i = 0; i < problem.d.size(); ++i) {
    TENSORD_RETURN_IF_ERROR(
        session.Download(problem.d[i], std::span<float>(elements)));
    TENSORD_RETURN_IF_ERROR(CheckNumber(problem, i, elements));
    TENSORD_RETURN_IF_ERROR(session.Refill(
        problem.d[i], std::as_bytes(std::span<const float>(nothing))));
  }
  return absl::OkStatus();
}

absl::Status Contract(Session& session, const Problem& problem, size_t i) {
  const ContractOptions options{.c = {},
                                .execution = {.output = &problem.d[i]}};
  return session
      .Contract({problem.a[i], "ik"}, {problem.input(i), "kj"}, "ij", options)
      .status();
}

absl::Status RunCalls(Session& session, const Problem& problem,
                      const Effort& effort) {
  TENSORD_RETURN_IF_ERROR(
      PrintWay(problem, "one call", 1, effort, nullptr,
               [&] { return Contract(session, problem, 0); }));
  TENSORD_RETURN_IF_ERROR(
      PrintWay(problem, "calls", kStatements, effort, nullptr, [&] {
        for (size_t i = 0; i < problem.a.size(); ++i) {
          TENSORD_RETURN_IF_ERROR(Contract(session, problem, i));
        }
        return absl::OkStatus();
      }));
  TENSORD_RETURN_IF_ERROR(CheckAndForget(session, problem));
  TENSORD_RETURN_IF_ERROR(
      PrintWay(problem, "pipeline", kStatements, effort, nullptr, [&] {
        Pipeline pipeline = session.StartPipeline();
        for (size_t i = 0; i < problem.a.size(); ++i) {
          const ContractOptions options{.c = {},
                                        .execution = {.output = &problem.d[i]}};
          pipeline.Contract({problem.a[i], "ik"}, {problem.input(i), "kj"},
                            "ij", options);
        }
        return pipeline.Finish();
      }));
  return CheckAndForget(session, problem);
}

absl::Status RunAsProgram(Session& session, const Problem& problem,
                          const Effort& effort) {
  std::string text;
  std::vector<ProgramOperand> operands = {{"x", problem.x[0]}};
  ProgramOptions options;
  for (int i = 0; i < kStatements; ++i) {
    const std::string input =
        problem.is_chain && i > 0 ? absl::StrCat("d", i - 1) : "x";
    absl::StrAppend(&text, "d", i, "[i,j] := a", i, "[i,k]*", input, "[k,j]\n");
    operands.push_back({absl::StrCat("a", i), problem.a[i]});
    if (!problem.is_chain || i + 1 == kStatements) {
      ProgramOutput output;
      output.name = absl::StrCat("d", i);
      options.outputs.push_back(std::move(output));
    }
  }
  Told told;
  // What a run makes is gone before the next one.
  const auto take = [&](const absl::StatusOr<ProgramResults>& results) {
    if (!results.ok()) return results.status();
    told = {.executed_ns = absl::ToDoubleNanoseconds(results->report.executed),
            .replayed = results->report.replayed};
    return absl::OkStatus();
  };
  const auto check = [&](const absl::StatusOr<ProgramResults>& results) {
    if (!results.ok()) return results.status();
    const size_t first = problem.is_chain ? kStatements - 1 : 0;
    for (size_t i = 0; i < results->results.size(); ++i) {
      const auto elements = results->results[i].Download<float>();
      if (!elements.ok()) return elements.status();
      const absl::Status right = CheckNumber(problem, first + i, *elements);
      if (!right.ok()) return right;
    }
    return absl::OkStatus();
  };
  TENSORD_RETURN_IF_ERROR(
      PrintWay(problem, "program", kStatements, effort, &told,
               [&] { return take(session.Run(text, operands, options)); }));
  TENSORD_RETURN_IF_ERROR(check(session.Run(text, operands, options)));
  TENSORD_ASSIGN_OR_RETURN(const PreparedProgram program,
                           session.PrepareProgram(text, operands, options));
  TENSORD_RETURN_IF_ERROR(
      PrintWay(problem, "prepared", kStatements, effort, &told,
               [&] { return take(program.Run(operands)); }));
  return check(program.Run(operands));
}

}  // namespace

absl::Status RunProgram(Session& session, const Effort& effort) {
  CaseCounter counter("program", effort);
  for (const int64_t extent : {8, 64, 256}) {
    if (effort.tiny && extent > 8) break;
    for (const bool is_chain : {true, false}) {
      if (!counter.Next()) continue;
      TENSORD_ASSIGN_OR_RETURN(const Problem problem,
                               MakeProblem(session, is_chain, extent));
      TENSORD_RETURN_IF_ERROR(RunCalls(session, problem, effort));
      TENSORD_RETURN_IF_ERROR(RunAsProgram(session, problem, effort));
    }
  }
  return absl::OkStatus();
}

}  // namespace tensord::test
