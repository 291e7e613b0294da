#include "client/cli/indexed_file.h"

#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace tensord::cli {
namespace {

absl::Status Malformed(absl::string_view item, absl::string_view argument) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", item, "' in '", argument,
                   "' is not an index, wanted a number, start:stop:step, ... "
                   "or None"));
}

absl::StatusOr<IndexItem> ItemFrom(absl::string_view text,
                                   absl::string_view argument) {
  if (text == "...") return IndexItem(Ellipsis{});
  if (text == "None") return IndexItem(NewMode{});
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  std::array<std::optional<int64_t>, 3> numbers;
  if (parts.size() > numbers.size()) return Malformed(text, argument);
  for (size_t i = 0; i < parts.size(); ++i) {
    const absl::string_view part = absl::StripAsciiWhitespace(parts[i]);
    if (part.empty() && parts.size() > 1) continue;
    int64_t number = 0;
    if (!absl::SimpleAtoi(part, &number)) return Malformed(text, argument);
    numbers[i] = number;
  }
  if (parts.size() == 1) return IndexItem(*numbers[0]);
  return IndexItem(Range{numbers[0], numbers[1], numbers[2]});
}

}  // namespace

absl::StatusOr<IndexedFile> ParseIndexedFile(const std::string& argument) {
  const size_t open = argument.rfind('[');
  if (argument.empty() || argument.back() != ']' || open == std::string::npos) {
    return IndexedFile{argument, std::nullopt};
  }
  IndexedFile file{argument.substr(0, open), std::vector<IndexItem>()};
  const std::string inside =
      argument.substr(open + 1, argument.size() - open - 2);
  std::vector<absl::string_view> items = absl::StrSplit(inside, ',');
  // As in Python: `[]` is refused, and a comma may end the list.
  if (items.size() > 1 && absl::StripAsciiWhitespace(items.back()).empty()) {
    items.pop_back();
  }
  for (const absl::string_view text : items) {
    const auto item = ItemFrom(absl::StripAsciiWhitespace(text), argument);
    if (!item.ok()) return item.status();
    file.items->push_back(*item);
  }
  return file;
}

absl::StatusOr<OutputPadding> ParsePadding(const std::string& text) {
  OutputPadding padding;
  for (const absl::string_view pair : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> sides = absl::StrSplit(pair, ':');
    int64_t before, after;
    if (sides.size() != 2 || !absl::SimpleAtoi(sides[0], &before) ||
        !absl::SimpleAtoi(sides[1], &after)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", pair, "' is not padding, wanted BEFORE:AFTER"));
    }
    padding.before.push_back(before);
    padding.after.push_back(after);
  }
  return padding;
}

}  // namespace tensord::cli
