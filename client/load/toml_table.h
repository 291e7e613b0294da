// Tables of a TOML file whose keys are known and whose values have the types
// that they should have.
#pragma once

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace tensord::load {

/// What is wrong with a file.
struct TomlMistakes {
  std::string file;     // what messages call it
  absl::Status status;  // OK, or the first mistake: INVALID_ARGUMENT
};

/// Reads values. Only the first mistake is kept; what is read then and after it
/// has no meaning.
///
/// Lifetime  refers to the table and to `mistakes`.
class TomlTable {
 public:
  /// `path` stands in front of keys where messages name them.
  TomlTable(const toml::table& table, TomlMistakes& mistakes,
            std::string path = "")
      : table_(table), mistakes_(mistakes), path_(std::move(path)) {}

  bool Has(const std::string& key) const { return table_.contains(key); }
  std::vector<std::string> keys() const;

  // What stands behind a key; if nothing does, what is given, or "", false,
  // none.

  std::string String(const std::string& key, std::string otherwise = "");
  double Number(const std::string& key, double otherwise);
  bool Flag(const std::string& key);
  /// A whole number, not negative.
  int64_t Extent(const std::string& key);
  std::vector<int64_t> Extents(const std::string& key);
  /// A list of lists of such numbers.
  std::vector<std::vector<int64_t>> ExtentLists(const std::string& key);
  /// One string, or a list of them.
  std::vector<std::string> Strings(const std::string& key);
  TomlTable Table(const std::string& key);
  /// Those of `[[key]]`.
  std::vector<TomlTable> Tables(const std::string& key);

  /// Wants every key to be one of `known`.
  void CheckKeys(const std::vector<std::string>& known);

  /// Notes a mistake: "`file`:3: `path` `key` `problem`".
  void Refuse(const std::string& key, const std::string& problem);

 private:
  void RefuseType(const std::string& key, const toml::node& got,
                  const std::string& wanted);
  std::vector<int64_t> ExtentsOf(const std::string& key, const toml::node& node,
                                 const std::string& wanted);

  const toml::table& table_;
  TomlMistakes& mistakes_;
  const std::string path_;
};

}  // namespace tensord::load
