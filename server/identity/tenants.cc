#include "server/identity/tenants.h"

#include <pwd.h>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/nearest.h"
#include "core/base/status.h"
#include "server/identity/token_file.h"

namespace tensord::server {
namespace {

// As the kernel has it unless it was set.
constexpr uid_t kOverflowUser = 65'534;

/// Reads one file; only the first mistake is kept.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  absl::StatusOr<TenantsFile> Read(absl::string_view text) {
    const toml::parse_result parsed =
        toml::parse(std::string_view(text.data(), text.size()), path_);
    if (!parsed) {
      Refuse(parsed.error().source().begin.line, parsed.error().description());
      return status_;
    }
    TenantsFile file;
    for (const auto& [key, node] : parsed.table()) {
      const toml::table* const table = node.as_table();
      if (table != nullptr && key.str() == "operators") {
        ReadOperators(*table, file.operators);
      } else if (table != nullptr && key.str() == "tenant") {
        for (const auto& [name, tenant] : *table) {
          ReadTenant(name.str(), tenant, file.tenants[std::string(name.str())]);
        }
      } else {
        Refuse(node, absl::StrCat("'", Text(key.str()),
                                  "', wanted [tenant.NAME] or [operators]"));
      }
    }
    if (!status_.ok()) return status_;
    return file;
  }

 private:
  static absl::string_view Text(std::string_view text) {
    return {text.data(), text.size()};
  }

  void Refuse(toml::source_index line, std::string_view problem) {
    status_.Update(core::InvalidArgument("TENANTS_MALFORMED", path_, ":", line,
                                         ": ", Text(problem)));
  }
  void Refuse(const toml::node& node, const std::string& problem) {
    Refuse(node.source().begin.line, problem);
  }

  void ReadOperators(const toml::table& table, Operators& operators) {
    for (const auto& [key, value] : table) {
      if (key == "certificates") {
        operators.certificates = Names(value);
      } else if (key == "users") {
        operators.users = Users(value);
      } else {
        RefuseKey(key.str(), value, {"certificates", "users"});
      }
    }
  }

  void ReadTenant(std::string_view name, const toml::node& node,
                  TenantShares& shares) {
    const toml::table* const table = node.as_table();
    // Metrics call those `other` that the file does not name.
    if (table == nullptr || !IsTenantName(Text(name)) || name == "other") {
      Refuse(node, absl::StrCat("'", Text(name), "' is no name of a tenant"));
      return;
    }
    for (const auto& [key, value] : *table) {
      if (ReadQuota(key.str(), value, shares)) continue;
      if (key == "certificates") {
        shares.certificates = Names(value);
      } else if (key == "operators") {
        shares.operators = Names(value);
      } else if (key == "users") {
        shares.users = Users(value);
      } else if (key == "operator_users") {
        shares.operator_users = Users(value);
      } else if (key == "weight") {
        shares.weight = Number(value, 0.001, 1000);
      } else if (key == "priority") {
        shares.priority = static_cast<int>(Whole(value, 0, 9));
      } else if (key == "sessions") {
        shares.sessions = Whole(value, 0, 1'000'000);
      } else {
        RefuseKey(key.str(), value, Keys());
      }
    }
  }

  void RefuseKey(std::string_view key, const toml::node& value,
                 const std::vector<std::string>& known) {
    const std::string nearest = core::Nearest(Text(key), known);
    Refuse(value,
           absl::StrCat("unknown key '", Text(key), "'",
                        nearest.empty()
                            ? ""
                            : absl::StrCat(", did you mean '", nearest, "'?")));
  }

  struct QuotaKey {
    const char* name;
    std::optional<int64_t> TenantShares::*value;
    bool is_bytes;
    int64_t least;
  };
  static constexpr int64_t kMostBytes = int64_t{1} << 60;
  static constexpr int64_t kMostCount = 1'000'000'000;
  static constexpr QuotaKey kQuotas[] = {
      {"device_bytes", &TenantShares::device_bytes, true, 0},
      {"reserved_bytes", &TenantShares::reserved_bytes, true, 0},
      {"host_bytes", &TenantShares::host_bytes, true, 0},
      {"staging_bytes", &TenantShares::staging_bytes, true, 0},
      {"tensors", &TenantShares::tensors, false, 0},
      {"queued", &TenantShares::queued, false, 1},
      {"running", &TenantShares::running, false, 1},
      {"search_seconds", &TenantShares::search_seconds, false, 1}};

  static std::vector<std::string> Keys() {
    std::vector<std::string> keys = {"certificates",   "operators", "users",
                                     "operator_users", "weight",    "priority",
                                     "sessions"};
    for (const QuotaKey& quota : kQuotas) keys.emplace_back(quota.name);
    return keys;
  }

  /// False: the key is none of those.
  bool ReadQuota(std::string_view key, const toml::node& node,
                 TenantShares& shares) {
    for (const QuotaKey& quota : kQuotas) {
      if (key != quota.name) continue;
      shares.*quota.value =
          quota.is_bytes ? Bytes(node) : Whole(node, quota.least, kMostCount);
      const int64_t most = shares.device_bytes.value_or(kMostBytes);
      if (shares.reserved_bytes.value_or(0) > most) {
        Refuse(node, absl::StrCat("reserved_bytes of ", *shares.reserved_bytes,
                                  " are more than device_bytes, ", most));
      }
      return true;
    }
    return false;
  }

  /// A number, or text such as "512MiB".
  int64_t Bytes(const toml::node& node) {
    if (node.is_integer()) return Whole(node, 0, kMostBytes);
    const std::string text = node.value_or(std::string());
    const size_t digits = text.find_first_not_of("0123456789");
    const auto unit = kUnits.find(text.substr(std::min(digits, text.size())));
    int64_t count = 0;
    if (!node.is_string() || unit == kUnits.end() ||
        !absl::SimpleAtoi(text.substr(0, digits), &count) ||
        count > kMostBytes / unit->second) {
      Refuse(node, "wanted bytes, or e.g. \"512MiB\"");
      return 0;
    }
    return count * unit->second;
  }

  /// Each stands in the file once.
  std::vector<std::string> Names(const toml::node& node) {
    std::vector<std::string> names;
    const toml::array* const list = node.as_array();
    if (list == nullptr) {
      Refuse(node, "wanted a list of names of certificates");
      return names;
    }
    for (const toml::node& each : *list) {
      const auto name = each.value_exact<std::string>();
      if (!name || name->empty()) {
        Refuse(each, "wanted the name of a certificate");
      } else if (!certificates_.insert(*name).second) {
        Refuse(each,
               absl::StrCat("certificate '", *name, "' stands here twice"));
      } else {
        names.push_back(*name);
      }
    }
    return names;
  }

  /// By name, as the system knows them now, or number; each once.
  std::vector<uid_t> Users(const toml::node& node) {
    std::vector<uid_t> users;
    const toml::array* const list = node.as_array();
    if (list == nullptr) {
      Refuse(node, "wanted a list of users, by name or number");
      return users;
    }
    for (const toml::node& each : *list) {
      const std::optional<uid_t> user = User(each);
      if (!user) continue;
      if (*user == kOverflowUser) {
        Refuse(each, absl::StrCat("user ", *user,
                                  " stands for all whom this machine, or its "
                                  "container, does not know"));
      } else if (!users_.insert(*user).second) {
        Refuse(each, absl::StrCat("user ", *user, " stands here twice"));
      } else {
        users.push_back(*user);
      }
    }
    return users;
  }

  std::optional<uid_t> User(const toml::node& node) {
    constexpr int64_t kMostNumber = (int64_t{1} << 32) - 2;  // -1 is nobody
    if (node.is_integer()) {
      return static_cast<uid_t>(Whole(node, 0, kMostNumber));
    }
    const std::string name = node.value_or(std::string());
    if (name.empty()) {
      Refuse(node, "wanted the name or number of a user");
      return std::nullopt;
    }
    passwd entry = {};
    passwd* found = nullptr;
    std::vector<char> text(size_t{1} << 16);
    getpwnam_r(name.c_str(), &entry, text.data(), text.size(), &found);
    if (found == nullptr) {
      Refuse(node,
             absl::StrCat("no user of this machine has the name '", name, "'"));
      return std::nullopt;
    }
    return found->pw_uid;
  }

  double Number(const toml::node& node, double least, double most) {
    const auto number = node.value<double>();
    if (!node.is_number() || !(*number >= least && *number <= most)) {
      Refuse(node, absl::StrCat("wanted a number, ", least, " to ", most));
      return least;
    }
    return *number;
  }
  int64_t Whole(const toml::node& node, int64_t least, int64_t most) {
    const auto number = node.value_exact<int64_t>();
    if (!number || *number < least || *number > most) {
      Refuse(node,
             absl::StrCat("wanted a whole number, ", least, " to ", most));
      return least;
    }
    return *number;
  }

  inline static const std::map<std::string, int64_t> kUnits = {
      {"KB", 1000},
      {"MB", 1000 * 1000},
      {"GB", 1000 * 1000 * 1000},
      {"TB", int64_t{1000} * 1000 * 1000 * 1000},
      {"KiB", int64_t{1} << 10},
      {"MiB", int64_t{1} << 20},
      {"GiB", int64_t{1} << 30},
      {"TiB", int64_t{1} << 40}};

  const std::string path_;
  absl::Status status_;
  std::set<std::string> certificates_;
  std::set<uid_t> users_;
};

}  // namespace

bool TenantsFile::NamesUsers() const {
  return !operators.users.empty() ||
         std::ranges::any_of(tenants, [](const auto& tenant) {
           return !tenant.second.users.empty() ||
                  !tenant.second.operator_users.empty();
         });
}

absl::StatusOr<TenantsFile> ParseTenants(const std::string& path,
                                         absl::string_view text) {
  return Reader(path).Read(text);
}

}  // namespace tensord::server
