#include "tests/gpu/bench/contraction_cases.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"

namespace tensord::test {
namespace {

constexpr int64_t kTinyProducts = 1 << 15;
constexpr int kTinyCasesOfGroup = 2;

absl::Status CannotRead(absl::string_view what) {
  return core::Error(absl::StatusCode::kDataLoss, "BAD_LINE",
                     absl::StrCat("cannot read '", what, "'"));
}

/// "a:384 b:24"
absl::StatusOr<LabelExtents> ParseExtents(absl::string_view text) {
  LabelExtents extents;
  for (const absl::string_view pair : absl::StrSplit(text, ' ')) {
    int64_t extent = 0;
    if (pair.size() < 3 || pair[1] != ':' ||
        !absl::SimpleAtoi(pair.substr(2), &extent) || extent < 1) {
      return CannotRead(text);
    }
    extents[pair[0]] = extent;
  }
  return extents;
}

/// OK when every label is in two of the operands and has its extents.
absl::Status CheckLabels(const ContractionCase& c) {
  std::map<char, int> uses;
  for (const char label : absl::StrCat(c.d, c.a, c.b)) ++uses[label];
  for (const auto& [label, count] : uses) {
    if (count != 2 || !c.of_float32.contains(label) ||
        !c.of_eight_bytes.contains(label)) {
      return CannotRead(absl::StrCat(c.d, "-", c.a, "-", c.b));
    }
  }
  return absl::OkStatus();
}

/// id,class,d-a-b,"einsum, with a comma",extents of float32,of float64,...
absl::StatusOr<ContractionCase> ParseLine(const std::string& line,
                                          absl::string_view suite) {
  const std::vector<std::string> quoted = absl::StrSplit(line, '"');
  if (quoted.size() != 3) return CannotRead(line);
  const std::vector<std::string> before = absl::StrSplit(quoted[0], ',');
  const std::vector<std::string> after = absl::StrSplit(quoted[2], ',');
  if (before.size() < 3 || after.size() < 3) return CannotRead(line);
  const std::vector<std::string> labels = absl::StrSplit(before[2], '-');
  ContractionCase c;
  if (labels.size() != 3 || !absl::SimpleAtoi(before[0], &c.id)) {
    return CannotRead(line);
  }
  c.suite = std::string(suite);
  c.group = before[1];
  c.d = labels[0];
  c.a = labels[1];
  c.b = labels[2];
  TENSORD_ASSIGN_OR_RETURN(c.of_float32, ParseExtents(after[1]));
  TENSORD_ASSIGN_OR_RETURN(c.of_eight_bytes, ParseExtents(after[2]));
  TENSORD_RETURN_IF_ERROR(CheckLabels(c));
  return c;
}

absl::Status AppendFile(const std::string& path, absl::string_view suite,
                        std::vector<ContractionCase>& cases) {
  std::ifstream file(path);
  if (!file) return core::NotFound("NO_DATA", "cannot read ", path);
  bool is_header = true;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    if (std::exchange(is_header, false)) continue;
    TENSORD_ASSIGN_OR_RETURN(ContractionCase c, ParseLine(line, suite));
    cases.push_back(std::move(c));
  }
  return absl::OkStatus();
}

/// Takes one of each group in turn until none is left. Of each, first those
/// that lie evenly apart.
std::vector<ContractionCase> TakeTurns(
    const std::vector<ContractionCase>& cases) {
  std::map<std::string, std::vector<ContractionCase>> groups;
  for (const ContractionCase& c : cases) groups[c.group].push_back(c);
  constexpr size_t kStep = 7;  // prime to the sizes of the groups
  std::vector<ContractionCase> ordered;
  for (size_t turn = 0; ordered.size() < cases.size(); ++turn) {
    for (const auto& [name, members] : groups) {
      if (turn >= members.size()) continue;
      const size_t step = members.size() % kStep == 0 ? 1 : kStep;
      ordered.push_back(members[turn * step % members.size()]);
    }
  }
  return ordered;
}

bool Has(const std::string& labels, char label) {
  return labels.find(label) != std::string::npos;
}

void Shrink(LabelExtents& extents) {
  const auto products = [&] {
    double count = 1;
    for (const auto& [label, extent] : extents) {
      count *= static_cast<double>(extent);
    }
    return count;
  };
  const auto is_shorter = [](const auto& x, const auto& y) {
    return x.second < y.second;
  };
  while (products() > kTinyProducts) {
    int64_t& longest =
        std::max_element(extents.begin(), extents.end(), is_shorter)->second;
    if (longest <= 2) return;
    longest = (longest + 1) / 2;
  }
}

core::OperandDesc OperandOf(const std::string& labels,
                            const LabelExtents& extents,
                            core::ElementType type) {
  core::OperandDesc operand{.element_type = type, .layout = {}, .modes = {}};
  core::ModeVector own;
  for (const char label : labels) {
    operand.modes.push_back(label);
    own.push_back(extents.at(label));
  }
  operand.layout = core::PackedLayout(own, core::Order::kFirstModeFastest);
  return operand;
}

}  // namespace

const LabelExtents& ContractionCase::ExtentsFor(core::ElementType type) const {
  return core::SizeOf(type) <= 4 ? of_float32 : of_eight_bytes;
}

MatrixExtents ContractionCase::MatrixFor(core::ElementType type) const {
  MatrixExtents matrix;
  for (const auto& [label, extent] : ExtentsFor(type)) {
    if (!Has(d, label)) {
      matrix.k *= extent;
    } else if (Has(a, label)) {
      matrix.m *= extent;
    } else {
      matrix.n *= extent;
    }
  }
  return matrix;
}

core::ContractionDesc ContractionCase::Desc(core::ElementType type) const {
  const LabelExtents& extents = ExtentsFor(type);
  return {.a = OperandOf(a, extents, type),
          .b = OperandOf(b, extents, type),
          .c = std::nullopt,
          .d = OperandOf(d, extents, type),
          .compute_type = core::RealPartOf(type) == core::ElementType::kFloat64
                              ? core::ComputeType::kFloat64
                              : core::ComputeType::kFloat32};
}

absl::StatusOr<std::vector<ContractionCase>> ReadContractionCases(
    const std::string& folder) {
  std::vector<ContractionCase> cases;
  TENSORD_RETURN_IF_ERROR(
      AppendFile(absl::StrCat(folder, "/tccg48.csv"), "tccg48", cases));
  TENSORD_RETURN_IF_ERROR(AppendFile(
      absl::StrCat(folder, "/random_contractions.csv"), "random", cases));
  return TakeTurns(cases);
}

std::vector<ContractionCase> TinySample(
    const std::vector<ContractionCase>& cases) {
  std::map<std::string, int> taken;
  std::vector<ContractionCase> sample;
  for (ContractionCase c : cases) {
    if (taken[c.group]++ >= kTinyCasesOfGroup) continue;
    Shrink(c.of_float32);
    Shrink(c.of_eight_bytes);
    sample.push_back(std::move(c));
  }
  return sample;
}

}  // namespace tensord::test
