#include "tests/gpu/bench/permutation_cases.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"

namespace tensord::test {
namespace {

constexpr int64_t kTinyElements = 4096;
constexpr int kTinyCasesOfSuite = 3;

absl::StatusOr<std::vector<int64_t>> ParseNumbers(absl::string_view text) {
  std::vector<int64_t> numbers;
  for (const auto word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(word, &number)) {
      return core::Error(absl::StatusCode::kDataLoss, "NOT_A_NUMBER",
                         absl::StrCat("'", text, "' is no list of numbers"));
    }
    numbers.push_back(number);
  }
  return numbers;
}

/// The suite of a row: ttc57.csv is all of one and has no column for it.
std::string SuiteOf(const std::map<std::string, std::string>& row) {
  const auto set = row.find("set");
  if (set == row.end()) return "ttc57";
  const bool is_number =
      set->second.find_first_not_of("0123456789-") == std::string::npos;
  return is_number ? absl::StrCat("cutt-", set->second) : set->second;
}

absl::Status AppendFile(const std::string& path,
                        std::vector<PermutationCase>& cases) {
  std::ifstream file(path);
  if (!file) return core::NotFound("NO_DATA", "cannot read ", path);
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    if (names.empty()) {
      names = cells;
      continue;
    }
    std::map<std::string, std::string> row;
    for (size_t i = 0; i < std::min(names.size(), cells.size()); ++i) {
      row[names[i]] = cells[i];
    }
    PermutationCase c{.suite = SuiteOf(row), .extents = {}, .perm = {}};
    TENSORD_ASSIGN_OR_RETURN(c.extents, ParseNumbers(row["extents"]));
    TENSORD_ASSIGN_OR_RETURN(c.perm, ParseNumbers(row["perm"]));
    auto sorted = c.perm;
    std::sort(sorted.begin(), sorted.end());
    bool is_permutation = sorted.size() == c.extents.size();
    for (size_t i = 0; is_permutation && i < sorted.size(); ++i) {
      is_permutation = sorted[i] == static_cast<int64_t>(i);
    }
    if (!is_permutation || !absl::SimpleAtoi(row["id"], &c.id)) {
      return core::Error(absl::StatusCode::kDataLoss, "BAD_LINE",
                         absl::StrCat(path, ": cannot read '", line, "'"));
    }
    cases.push_back(std::move(c));
  }
  return absl::OkStatus();
}

/// Takes one of each suite in turn until none is left. Of each, first those
/// that lie evenly apart.
std::vector<PermutationCase> TakeTurns(
    const std::vector<PermutationCase>& cases) {
  std::map<std::string, std::vector<PermutationCase>> suites;
  for (const PermutationCase& c : cases) suites[c.suite].push_back(c);
  constexpr size_t kStep = 7;  // prime to the sizes of the suites
  std::vector<PermutationCase> ordered;
  for (size_t turn = 0; ordered.size() < cases.size(); ++turn) {
    for (const auto& [name, members] : suites) {
      if (turn >= members.size()) continue;
      const size_t step = members.size() % kStep == 0 ? 1 : kStep;
      ordered.push_back(members[turn * step % members.size()]);
    }
  }
  return ordered;
}

}  // namespace

int64_t PermutationCase::element_count() const {
  int64_t count = 1;
  for (const int64_t extent : extents) count *= extent;
  return count;
}

core::PermutationDesc PermutationCase::Desc(core::ElementType type) const {
  core::PermutationDesc desc{.alpha_is_one = true};
  desc.a.element_type = desc.d.element_type = type;
  desc.compute_type = type == core::ElementType::kFloat64
                          ? core::ComputeType::kFloat64
                          : core::ComputeType::kFloat32;
  core::ModeVector extents_a, extents_d;
  for (size_t i = 0; i < extents.size(); ++i) {
    desc.a.modes.push_back(static_cast<core::Mode>(i));
    desc.d.modes.push_back(static_cast<core::Mode>(perm[i]));
    extents_a.push_back(extents[i]);
    extents_d.push_back(extents[static_cast<size_t>(perm[i])]);
  }
  desc.a.layout = core::PackedLayout(extents_a, core::Order::kFirstModeFastest);
  desc.d.layout = core::PackedLayout(extents_d, core::Order::kFirstModeFastest);
  return desc;
}

absl::StatusOr<std::vector<PermutationCase>> ReadPermutationCases(
    const std::string& folder) {
  std::vector<PermutationCase> cases;
  for (const char* file :
       {"ttc57.csv", "cutt_sets.csv", "published_permutations.csv",
        "rows_permutations.csv"}) {
    TENSORD_RETURN_IF_ERROR(AppendFile(absl::StrCat(folder, "/", file), cases));
  }
  return TakeTurns(cases);
}

std::vector<PermutationCase> TinySample(
    const std::vector<PermutationCase>& cases) {
  std::map<std::string, int> taken;
  std::vector<PermutationCase> sample;
  for (PermutationCase c : cases) {
    if (taken[c.suite]++ >= kTinyCasesOfSuite) continue;
    while (c.element_count() > kTinyElements) {
      int64_t& longest = *std::max_element(c.extents.begin(), c.extents.end());
      longest = (longest + 1) / 2;
    }
    sample.push_back(std::move(c));
  }
  return sample;
}

}  // namespace tensord::test
