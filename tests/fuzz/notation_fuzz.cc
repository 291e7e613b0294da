// Every text is a program, or subscripts, or it is refused with a reason and a
// place; and what is a program is the same program when it is written again.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "core/notation/characters.h"
#include "core/notation/parse_einsum.h"
#include "core/notation/parse_program.h"
#include "core/notation/to_text.h"
#include "tests/unit/core/notation/syntax_dump.h"

namespace tensord::core::test {
namespace {

using Reasons = std::set<std::string>;

const Reasons kProgramReasons = {
    "SYNTAX_ERROR",     "LABEL_UNMATCHED", "LABEL_REPEATED",
    "LABEL_REUSED",     "LABELS_DIFFER",   "PROGRAM_TOO_LONG",
    "PROGRAM_TOO_DEEP", "OUTPUT_REPEATED", "RESULT_COUNT_MISMATCH"};
const Reasons kEinsumReasons = {
    "SUBSCRIPTS_MALFORMED", "OPERAND_COUNT_MISMATCH", "MODE_COUNT_MISMATCH",
    "MODE_NOT_IN_INPUT",    "MODE_REPEATED",          "ELLIPSIS_DROPPED",
    "PROGRAM_TOO_LONG"};
const Reasons kNconReasons = {"NCON_MALFORMED", "MODE_COUNT_MISMATCH",
                              "OPERAND_COUNT_MISMATCH"};

constexpr NotationLimits kTightLimits{.max_text_bytes = 200,
                                      .max_statements = 3,
                                      .max_factors = 6,
                                      .max_labels = 5,
                                      .max_depth = 3};

void Check(bool is_true, const std::string& claim, const std::string& seen) {
  if (is_true) return;
  std::fprintf(stderr, "not so: %s\n%s\n", claim.c_str(), seen.c_str());
  std::abort();
}

void CheckRefusal(const absl::Status& status, const Reasons& reasons) {
  const std::string seen = status.ToString();
  Check(status.code() == absl::StatusCode::kInvalidArgument,
        "the code is INVALID_ARGUMENT", seen);
  Check(reasons.contains(ReasonOf(status)), "the reason is documented", seen);
  Check(status.message().size() < 600, "the message is short", seen);
  for (size_t i = 0; i < status.message().size();) {
    const Character c = CharacterAt(status.message(), i);
    Check(c.value != Character::kNotUtf8, "the message is UTF-8", seen);
    i += c.byte_count;
  }
}

/// The number behind `word` in a message.
int64_t NumberBehind(absl::string_view word, const absl::Status& status) {
  const size_t at = status.message().find(word);
  Check(at != absl::string_view::npos, "the message has the place",
        status.ToString());
  const std::string rest(status.message().substr(at + word.size()));
  return std::strtoll(rest.c_str(), nullptr, 10);
}

void CheckPlace(const absl::Status& status, absl::string_view text,
                bool has_lines) {
  const int64_t column = NumberBehind("column ", status);
  const int64_t line = has_lines ? NumberBehind("line ", status) : 1;
  const int64_t ends =
      std::ranges::count(text, '\n') + std::ranges::count(text, '\r');
  Check(line >= 1 && line <= ends + 1 && column >= 1 &&
            column <= static_cast<int64_t>(text.size()) + 1,
        "the place is in the text", status.ToString());
}

void TryProgram(absl::string_view text, const NotationLimits& limits) {
  const auto program = ParseProgram(text, limits);
  if (!program.ok()) {
    CheckRefusal(program.status(), kProgramReasons);
    return CheckPlace(program.status(), text, true);
  }
  const std::string written = ToText(*program);
  const auto again = ParseProgram(written);
  Check(again.ok(), "what is written can be read",
        absl::StrCat(written, again.status().ToString()));
  Check(Dump(*again) == Dump(*program), "it reads as the same program",
        absl::StrCat(Dump(*program), written, Dump(*again)));
  Check(ToText(*again) == written, "it is written the same", written);
}

/// As many modes as an operand's subscripts seem to have.
int ModesOf(absl::string_view subscripts) {
  const auto is_label = [](char c) {
    const bool begins_character = (static_cast<uint8_t>(c) & 0xc0) != 0x80;
    return begins_character && !absl::StrContains(".- ", c);
  };
  const int count =
      static_cast<int>(std::ranges::count_if(subscripts, is_label));
  return absl::StrContains(subscripts, "...")
             ? count + static_cast<int>(subscripts.size() % 3)
             : count;
}

void CheckEinsum(const EinsumSyntax& einsum,
                 const std::vector<int>& mode_counts) {
  const std::string seen = Dump(einsum);
  std::set<std::string> labels;
  Check(einsum.inputs.size() == mode_counts.size(), "no operand is lost", seen);
  for (size_t i = 0; i < mode_counts.size(); ++i) {
    Check(einsum.inputs[i].size() == mode_counts[i], "modes have labels", seen);
    for (const Label& label : einsum.inputs[i]) labels.insert(label.text);
  }
  std::set<std::string> output;
  for (const Label& label : einsum.output) {
    Check(labels.contains(label.text), "the output is of the inputs", seen);
    Check(output.insert(label.text).second, "its labels are distinct", seen);
  }
}

/// Subscripts without an ellipsis are written and read again.
void CheckWrittenEinsum(const EinsumSyntax& einsum,
                        const std::vector<int>& mode_counts) {
  const std::string seen = Dump(einsum);
  if (absl::StrContains(seen, "...")) return;
  std::string written = seen;
  std::erase(written, ',');
  std::ranges::replace(written, '|', ',');
  const auto again = ParseEinsum(written, mode_counts);
  Check(again.ok() && Dump(*again) == seen, "it reads as the same", written);
}

void TryEinsum(absl::string_view text, const NotationLimits& limits) {
  std::vector<int> mode_counts;
  const absl::string_view inputs = text.substr(0, text.find("->"));
  for (const absl::string_view operand : absl::StrSplit(inputs, ',')) {
    mode_counts.push_back(ModesOf(operand));
  }
  const auto einsum = ParseEinsum(text, mode_counts, limits);
  if (!einsum.ok()) {
    CheckRefusal(einsum.status(), kEinsumReasons);
    return CheckPlace(einsum.status(), text, false);
  }
  CheckEinsum(*einsum, mode_counts);
  CheckWrittenEinsum(*einsum, mode_counts);
}

/// Labels are bytes near '0'; operands end with commas.
void TryNcon(absl::string_view text) {
  std::vector<std::vector<int64_t>> labels(1);
  for (const char c : text) {
    if (c == ',') {
      labels.emplace_back();
    } else {
      labels.back().push_back(c - '0');
    }
  }
  std::vector<int> mode_counts;
  for (const auto& of_operand : labels) {
    mode_counts.push_back(static_cast<int>(of_operand.size()));
  }
  const std::vector<int64_t> last = std::move(labels.back());
  labels.pop_back();
  mode_counts.pop_back();
  for (const bool has_order : {false, true}) {
    const auto einsum =
        ParseNcon(labels, has_order ? last : std::vector<int64_t>(),
                  has_order ? std::vector<int64_t>() : last, mode_counts);
    if (einsum.ok()) {
      CheckEinsum(*einsum, mode_counts);
    } else {
      CheckRefusal(einsum.status(), kNconReasons);
    }
  }
}

}  // namespace
}  // namespace tensord::core::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensord::core::test;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& limits : {tensord::core::NotationLimits{}, kTightLimits}) {
    TryProgram(text, limits);
    TryEinsum(text, limits);
  }
  TryNcon(text);
  return 0;
}
