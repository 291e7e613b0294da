#include "core/notation/parse_einsum.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/notation/characters.h"

namespace tensord::core {
namespace {

/// The subscripts of one operand, or of the output.
struct Subscripts {
  Labels labels;
  std::optional<Label> ellipsis;
  size_t label_count_before = 0;  // of `labels`, before the ellipsis
  int32_t column = 1;
};

template <typename... Parts>
absl::Status ErrorAtColumn(int32_t column, absl::string_view reason,
                           const Parts&... parts) {
  return InvalidArgument(reason, "column ", column, ": ", parts...);
}

class Reader {
 public:
  explicit Reader(absl::string_view text) : text_(text) {}

  /// Up to the next `,`, `->` or the end.
  absl::StatusOr<Subscripts> Read();
  bool TakeIf(absl::string_view symbol);
  bool IsAtEnd() const { return offset_ == text_.size(); }
  int32_t column() const { return column_; }

  absl::Status Unexpected(absl::string_view wanted) const {
    return ErrorAtColumn(column_, "SUBSCRIPTS_MALFORMED", "got ",
                         Shown(text_, offset_), ", wanted ", wanted);
  }

 private:
  absl::Status ReadEllipsis(Subscripts& subscripts);
  void Skip() {
    offset_ += CharacterAt(text_, offset_).byte_count;
    ++column_;
  }

  absl::string_view text_;
  size_t offset_ = 0;
  int32_t column_ = 1;
};

bool Reader::TakeIf(absl::string_view symbol) {
  if (!absl::StartsWith(text_.substr(offset_), symbol)) return false;
  for (size_t i = 0; i < symbol.size(); ++i) Skip();
  return true;
}

/// NumPy's labels are letters; opt_einsum goes on with all that follows in
/// Unicode, whatever it is.
bool IsEinsumLabel(char32_t c) {
  constexpr char32_t kFirstOfOptEinsum = 0xc0;
  return IsLetter(c) || (c >= kFirstOfOptEinsum && c != Character::kNotUtf8);
}

absl::StatusOr<Subscripts> Reader::Read() {
  Subscripts subscripts;
  while (TakeIf(" ")) {
  }
  subscripts.column = column_;
  while (!IsAtEnd()) {
    const absl::string_view rest = text_.substr(offset_);
    const Character c = CharacterAt(text_, offset_);
    if (c.value == ',' || absl::StartsWith(rest, "->")) break;
    if (c.value == '.') {
      TENSORD_RETURN_IF_ERROR(ReadEllipsis(subscripts));
    } else if (IsEinsumLabel(c.value)) {
      subscripts.labels.push_back(
          {std::string(rest.substr(0, c.byte_count)), {1, column_}});
      Skip();
    } else if (c.value == ' ') {
      Skip();
    } else {
      return Unexpected("letters, '...', ',' and '->'");
    }
  }
  return subscripts;
}

absl::Status Reader::ReadEllipsis(Subscripts& subscripts) {
  if (subscripts.ellipsis) return Unexpected("one '...' an operand");
  const int32_t column = column_;
  if (!TakeIf("...")) return Unexpected("three dots in a row");
  subscripts.ellipsis = Label{"...", {1, column}};
  subscripts.label_count_before = subscripts.labels.size();
  return absl::OkStatus();
}

struct Texts {
  std::vector<Subscripts> inputs;
  std::optional<Subscripts> output;
  int32_t inputs_end = 1;  // column
};

absl::StatusOr<Texts> ReadAll(absl::string_view text,
                              const NotationLimits& limits) {
  if (text.size() > limits.max_text_bytes) {
    return ErrorAtColumn(1, "PROGRAM_TOO_LONG", "the subscripts have ",
                         text.size(), " bytes, the limit is ",
                         limits.max_text_bytes);
  }
  Reader reader(text);
  Texts texts;
  do {
    if (texts.inputs.size() == limits.max_factors) {
      return ErrorAtColumn(reader.column(), "PROGRAM_TOO_LONG",
                           "a further operand begins, the limit is ",
                           limits.max_factors, " operands");
    }
    TENSORD_ASSIGN_OR_RETURN(texts.inputs.emplace_back(), reader.Read());
  } while (reader.TakeIf(","));
  texts.inputs_end = reader.column();
  if (reader.TakeIf("->")) {
    TENSORD_ASSIGN_OR_RETURN(texts.output, reader.Read());
    if (!reader.IsAtEnd()) {
      return reader.Unexpected("the letters of one output behind '->'");
    }
  }
  return texts;
}

/// How many modes the longest ellipsis has.
absl::StatusOr<int> EllipsisModeCount(const Texts& texts,
                                      absl::Span<const int> mode_counts) {
  if (texts.inputs.size() != mode_counts.size()) {
    return ErrorAtColumn(texts.inputs_end, "OPERAND_COUNT_MISMATCH",
                         "the subscripts end after ", texts.inputs.size(),
                         " operands, wanted ", mode_counts.size(),
                         " as there are");
  }
  int longest = 0;
  for (size_t i = 0; i < mode_counts.size(); ++i) {
    const Subscripts& input = texts.inputs[i];
    const int left = mode_counts[i] - static_cast<int>(input.labels.size());
    if (left < 0 || (left > 0 && !input.ellipsis)) {
      return ErrorAtColumn(
          input.column, "MODE_COUNT_MISMATCH", "the subscripts of operand ", i,
          " are for ", input.labels.size(), " modes",
          input.ellipsis ? " or more" : "", ", but it has ", mode_counts[i]);
    }
    longest = std::max(longest, left);
  }
  return longest;
}

/// The labels with those of the ellipsis, the last `ellipsis_count` of
/// `longest`.
Labels Expand(const Subscripts& subscripts, int ellipsis_count, int longest) {
  Labels labels = subscripts.labels;
  if (!subscripts.ellipsis) return labels;
  Labels filling;
  for (int i = longest - ellipsis_count; i < longest; ++i) {
    filling.push_back({absl::StrCat("...", i), subscripts.ellipsis->position});
  }
  labels.insert(labels.begin() + subscripts.label_count_before, filling.begin(),
                filling.end());
  return labels;
}

absl::Status CheckOutput(const Subscripts& output, const Texts& texts,
                         int ellipsis_count) {
  absl::flat_hash_set<absl::string_view> in_inputs;
  for (const Subscripts& input : texts.inputs) {
    for (const Label& label : input.labels) in_inputs.insert(label.text);
  }
  absl::flat_hash_map<absl::string_view, int32_t> columns;
  for (const Label& label : output.labels) {
    const int32_t column = label.position.column;
    if (!in_inputs.contains(label.text)) {
      return ErrorAtColumn(column, "MODE_NOT_IN_INPUT", "label ",
                           Quoted(label.text),
                           " of the output is in no operand, wanted it in one");
    }
    const auto [at, is_new] = columns.emplace(label.text, column);
    if (!is_new) {
      return ErrorAtColumn(column, "MODE_REPEATED", "label ",
                           Quoted(label.text),
                           " occurs twice in the output, first at column ",
                           at->second, ", wanted it once");
    }
  }
  if (ellipsis_count == 0 || output.ellipsis) return absl::OkStatus();
  return ErrorAtColumn(output.column, "ELLIPSIS_DROPPED",
                       "the output has no '...', but those of the operands "
                       "have up to ",
                       ellipsis_count, " modes, wanted '...' here, too");
}

/// The ellipsis, and then what occurs once in alphabetical order.
Subscripts ImplicitOutput(const Texts& texts) {
  struct Occurrences {
    Label first;
    int count = 0;
  };
  // UTF-8 sorts as its code points do.
  std::map<absl::string_view, Occurrences> occurrences;
  Subscripts output{.column = texts.inputs_end};
  for (const Subscripts& input : texts.inputs) {
    if (input.ellipsis && !output.ellipsis) output.ellipsis = input.ellipsis;
    for (const Label& label : input.labels) {
      Occurrences& of_label = occurrences[label.text];
      if (++of_label.count == 1) of_label.first = label;
    }
  }
  for (const auto& [text, of_label] : occurrences) {
    if (of_label.count == 1) output.labels.push_back(of_label.first);
  }
  return output;
}

}  // namespace

absl::StatusOr<EinsumSyntax> ParseEinsum(absl::string_view subscripts,
                                         absl::Span<const int> mode_counts,
                                         const NotationLimits& limits) {
  TENSORD_ASSIGN_OR_RETURN(const Texts texts, ReadAll(subscripts, limits));
  TENSORD_ASSIGN_OR_RETURN(const int longest,
                           EllipsisModeCount(texts, mode_counts));
  const Subscripts output =
      texts.output ? *texts.output : ImplicitOutput(texts);
  TENSORD_RETURN_IF_ERROR(CheckOutput(output, texts, longest));
  EinsumSyntax einsum;
  for (size_t i = 0; i < texts.inputs.size(); ++i) {
    const Subscripts& input = texts.inputs[i];
    const int ellipsis_count =
        mode_counts[i] - static_cast<int>(input.labels.size());
    einsum.inputs.push_back(Expand(input, ellipsis_count, longest));
  }
  einsum.output = Expand(output, longest, longest);
  return einsum;
}

}  // namespace tensord::core
