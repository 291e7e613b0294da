#include "client/load/toml_table.h"

#include <algorithm>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/nearest.h"

namespace tensord::load {
namespace {

constexpr size_t kMostShown = 60;

std::string TextOf(const toml::node& node) {
  std::ostringstream stream;
  node.visit([&](const auto& value) { stream << value; });
  std::string text = stream.str();
  if (text.size() > kMostShown) text.replace(kMostShown, text.npos, "...");
  return text;
}

}  // namespace

std::vector<std::string> TomlTable::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, unused] : table_) keys.emplace_back(key.str());
  return keys;
}

std::string TomlTable::String(const std::string& key, std::string otherwise) {
  const toml::node* const node = table_.get(key);
  if (node == nullptr) return otherwise;
  if (!node->is_string()) RefuseType(key, *node, "a string");
  return node->value_or(std::move(otherwise));
}

double TomlTable::Number(const std::string& key, double otherwise) {
  const toml::node* const node = table_.get(key);
  if (node == nullptr) return otherwise;
  if (!node->is_number()) RefuseType(key, *node, "a number");
  return node->value_or(otherwise);
}

bool TomlTable::Flag(const std::string& key) {
  const toml::node* const node = table_.get(key);
  if (node == nullptr) return false;
  if (!node->is_boolean()) RefuseType(key, *node, "true or false");
  return node->value_or(false);
}

int64_t TomlTable::Extent(const std::string& key) {
  const toml::node* const node = table_.get(key);
  const int64_t extent =
      node != nullptr && node->is_integer() ? node->value_or<int64_t>(-1) : -1;
  if (node != nullptr && extent < 0) {
    RefuseType(key, *node, "a whole number of at least 0");
  }
  return extent;
}

std::vector<int64_t> TomlTable::Extents(const std::string& key) {
  const toml::node* const node = table_.get(key);
  if (node == nullptr) return {};
  return ExtentsOf(key, *node, "a list of whole numbers, e.g. [512, 64]");
}

std::vector<std::vector<int64_t>> TomlTable::ExtentLists(
    const std::string& key) {
  constexpr char kWanted[] =
      "a list of whole numbers for each tensor, e.g. [[64, 1], [1, 32]]";
  const toml::node* const node = table_.get(key);
  if (node == nullptr) return {};
  std::vector<std::vector<int64_t>> lists;
  if (!node->is_array()) {
    RefuseType(key, *node, kWanted);
    return lists;
  }
  for (const toml::node& list : *node->as_array()) {
    lists.push_back(ExtentsOf(key, list, kWanted));
  }
  return lists;
}

std::vector<std::string> TomlTable::Strings(const std::string& key) {
  const toml::node* const node = table_.get(key);
  if (node == nullptr) return {};
  std::vector<std::string> strings;
  const auto add = [&](const toml::node& each) {
    if (!each.is_string()) {
      RefuseType(key, each, "a string, or a list of them");
    }
    strings.push_back(each.value_or(std::string()));
  };
  if (!node->is_array()) {
    add(*node);
  } else {
    for (const toml::node& each : *node->as_array()) add(each);
  }
  return strings;
}

TomlTable TomlTable::Table(const std::string& key) {
  static const auto& empty = *new toml::table;
  const toml::node* const node = table_.get(key);
  if (node != nullptr && !node->is_table()) RefuseType(key, *node, "a table");
  return TomlTable(
      node != nullptr && node->is_table() ? *node->as_table() : empty,
      mistakes_, absl::StrCat(path_, key, "."));
}

std::vector<TomlTable> TomlTable::Tables(const std::string& key) {
  const toml::node* const node = table_.get(key);
  if (node == nullptr) return {};
  std::vector<TomlTable> tables;
  if (!node->is_array_of_tables()) {
    RefuseType(key, *node, absl::StrCat("tables, each headed [[", key, "]]"));
    return tables;
  }
  for (const toml::node& each : *node->as_array()) {
    tables.emplace_back(*each.as_table(), mistakes_,
                        absl::StrCat(key, " ", tables.size() + 1, ": "));
  }
  return tables;
}

void TomlTable::CheckKeys(const std::vector<std::string>& known) {
  for (const std::string& key : keys()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    const std::string nearest = core::Nearest(key, known);
    Refuse(key, nearest.empty()
                    ? absl::StrCat("is not known here, wanted one of ",
                                   absl::StrJoin(known, ", "))
                    : absl::StrCat("is not known here, did you mean ", nearest,
                                   "?"));
  }
}

void TomlTable::Refuse(const std::string& key, const std::string& problem) {
  if (!mistakes_.status.ok()) return;
  const toml::node* const node = table_.get(key);
  const toml::source_region& source =
      node == nullptr ? table_.source() : node->source();
  mistakes_.status = absl::InvalidArgumentError(absl::StrCat(
      mistakes_.file, ":", source.begin.line, ": ", path_, key, " ", problem));
}

void TomlTable::RefuseType(const std::string& key, const toml::node& got,
                           const std::string& wanted) {
  Refuse(key, absl::StrCat("is ", TextOf(got), ", wanted ", wanted));
}

std::vector<int64_t> TomlTable::ExtentsOf(const std::string& key,
                                          const toml::node& node,
                                          const std::string& wanted) {
  std::vector<int64_t> extents;
  if (!node.is_array()) {
    RefuseType(key, node, wanted);
    return extents;
  }
  for (const toml::node& each : *node.as_array()) {
    const int64_t extent =
        each.is_integer() ? each.value_or<int64_t>(-1) : int64_t{-1};
    if (extent < 0) RefuseType(key, node, wanted);
    extents.push_back(extent);
  }
  return extents;
}

}  // namespace tensord::load
