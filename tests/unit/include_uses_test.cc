// Whether files include what they use. The compiler cannot tell where headers
// of the standard library and of Abseil are precompiled: they are there then
// whether a file asks for them or not.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/source_tree.h"

namespace tensord::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Provider {
  absl::string_view header;
  absl::string_view names;    // that are used with this header, as written
  absl::string_view implies;  // headers that it is known to include
};

/// The headers that are precompiled for core, server and clients, but for
/// <cstdint>, whose names are the language's in all but name.
constexpr Provider kProviders[] = {
    {"algorithm",
     "std::all_of std::any_of std::clamp std::copy std::copy_n std::count "
     "std::count_if std::equal std::fill std::fill_n std::find std::find_if "
     "std::generate std::is_sorted std::lower_bound std::max std::max_element "
     "std::min std::min_element std::minmax std::mismatch "
     "std::next_permutation std::none_of std::nth_element std::partial_sort "
     "std::ranges std::remove_if std::reverse std::rotate std::shuffle "
     "std::sort std::stable_sort std::transform std::unique std::upper_bound",
     "utility"},
    {"array", "std::array", "utility"},
    {"atomic",
     "std::atomic std::memory_order std::memory_order_acquire "
     "std::memory_order_relaxed std::memory_order_release",
     ""},
    {"bit",
     "std::bit_cast std::bit_ceil std::bit_floor std::bit_width "
     "std::countl_zero std::countr_zero std::endian std::has_single_bit "
     "std::popcount",
     ""},
    {"chrono", "std::chrono", ""},
    {"cmath",
     "std::abs std::ceil std::copysign std::exp std::floor std::fma std::hypot "
     "std::ilogb std::isfinite std::isinf std::isnan std::ldexp std::log "
     "std::log10 std::log2 std::nearbyint std::pow std::round std::sqrt",
     ""},
    {"complex", "std::complex", "cmath"},
    {"cstring",
     "std::memcmp std::memcpy std::memmove std::memset std::strerror "
     "std::strlen",
     ""},
    {"deque", "std::deque", ""},
    {"functional",
     "std::function std::greater std::minus std::multiplies std::plus "
     "std::reference_wrapper",
     "utility"},
    {"limits", "std::numeric_limits", ""},
    {"map", "std::map std::multimap", "utility"},
    {"memory",
     "std::enable_shared_from_this std::make_shared std::make_unique "
     "std::shared_ptr std::unique_ptr std::weak_ptr",
     "utility"},
    {"numeric",
     "std::accumulate std::exclusive_scan std::gcd std::inner_product "
     "std::iota std::lcm std::partial_sum",
     ""},
    {"optional", "std::nullopt std::optional", "utility"},
    {"random",
     "std::mt19937 std::mt19937_64 std::normal_distribution "
     "std::random_device std::uniform_int_distribution "
     "std::uniform_real_distribution",
     "cmath limits"},
    {"set", "std::multiset std::set", "utility"},
    {"span", "std::span", ""},
    {"string", "std::stod std::stoi std::string std::to_string", "utility"},
    {"thread", "std::this_thread std::thread", ""},
    {"tuple", "std::make_tuple std::tie std::tuple", "utility"},
    {"utility",
     "std::declval std::exchange std::forward std::in_range std::make_pair "
     "std::move std::pair std::swap",
     ""},
    {"variant",
     "std::get_if std::holds_alternative std::monostate std::variant "
     "std::visit",
     "utility"},
    {"vector", "std::vector", "utility"},
    {"absl/base/thread_annotations.h", "ABSL_GUARDED_BY", ""},
    {"absl/container/flat_hash_map.h", "absl::flat_hash_map", ""},
    {"absl/container/inlined_vector.h", "absl::InlinedVector", ""},
    {"absl/functional/function_ref.h", "absl::FunctionRef", ""},
    {"absl/hash/hash.h", "absl::Hash absl::HashOf", ""},
    {"absl/status/status.h",
     "absl::CancelledError absl::InternalError absl::IsInternal "
     "absl::IsInvalidArgument absl::IsNotFound absl::IsUnimplemented "
     "absl::InvalidArgumentError absl::OkStatus absl::Status "
     "absl::StatusCode absl::StatusCodeToString absl::UnavailableError",
     "absl/strings/string_view.h string"},
    {"absl/status/statusor.h", "absl::StatusOr", "absl/status/status.h"},
    {"absl/strings/numbers.h",
     "absl::SimpleAtod absl::SimpleAtoi absl::SimpleHexAtoi", ""},
    {"absl/strings/str_cat.h",
     "absl::AlphaNum absl::Hex absl::StrAppend absl::StrCat",
     "absl/strings/string_view.h string"},
    {"absl/strings/str_join.h", "absl::StrJoin", ""},
    {"absl/strings/string_view.h", "absl::string_view", ""},
    {"absl/synchronization/mutex.h",
     "absl::CondVar absl::Condition absl::Mutex absl::MutexLock "
     "absl::ReaderMutexLock absl::ReleasableMutexLock",
     "absl/base/thread_annotations.h absl/time/time.h"},
    {"absl/time/clock.h", "absl::GetCurrentTimeNanos absl::Now absl::SleepFor",
     "absl/time/time.h"},
    {"absl/time/time.h",
     "absl::Duration absl::FormatDuration absl::FromChrono absl::Hours "
     "absl::InfiniteDuration absl::Microseconds "
     "absl::Milliseconds absl::Nanoseconds absl::Seconds absl::Time "
     "absl::ToDoubleSeconds absl::ToInt64Microseconds absl::ToInt64Seconds "
     "absl::Trunc absl::ZeroDuration",
     ""},
    {"absl/types/span.h", "absl::MakeConstSpan absl::MakeSpan absl::Span", ""},
    // Any header that begins so; those of the contract include gRPC's.
    {"grpc*", "grpc", ""},
    {"tensord/v1/*", "v1", ""},
};

/// The headers that provide a name, by name.
std::map<std::string, std::string> Providers() {
  std::map<std::string, std::string> headers;
  for (const Provider& provider : kProviders) {
    for (const absl::string_view name :
         absl::StrSplit(provider.names, ' ', absl::SkipEmpty())) {
      headers.emplace(name, provider.header);
    }
  }
  return headers;
}

/// `text` without comments of whole or ends of lines, strings and includes.
std::string CodeOf(absl::string_view text) {
  std::string code;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, "#include")) continue;
    bool is_string = false;
    for (size_t i = 0; i < line.size(); ++i) {
      if (!is_string && absl::StartsWith(line.substr(i), "//")) break;
      if (line[i] == '"' && (i == 0 || line[i - 1] != '\\')) {
        is_string = !is_string;
      }
      if (!is_string) code += line[i];
    }
    code += '\n';
  }
  return code;
}

/// The names in `code` that begin with a namespace, up to the first template
/// argument or call: "std::vector", "absl::StrCat", also plain macros.
std::set<std::string> NamesIn(const std::string& code) {
  const auto is_part = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  std::set<std::string> names;
  for (size_t begin = 0; begin < code.size();) {
    size_t end = begin;
    while (end < code.size() && is_part(code[end])) ++end;
    if (end == begin) {
      ++begin;
      continue;
    }
    const std::string space = code.substr(begin, end - begin);
    if ((space == "std" || space == "absl") &&
        code.compare(end, 2, "::") == 0) {
      size_t last = end + 2;
      while (last < code.size() && is_part(code[last])) ++last;
      names.insert(code.substr(begin, last - begin));
      end = last;
    } else {
      names.insert(space);
    }
    begin = end;
  }
  return names;
}

class Uses {
 public:
  explicit Uses(const SourceTree& tree) : tree_(tree) {}

  /// What files of the tree use of kProviders without a header for it, included
  /// by themselves or by headers of ours.
  std::vector<std::string> Violations() {
    static const auto& providers = *new std::map(Providers());
    std::vector<std::string> violations;
    for (const auto& [path, text] : tree_) {
      if (!absl::EndsWith(path, ".h") && !absl::EndsWith(path, ".cc")) continue;
      const std::set<std::string>& included = Included(path);
      for (const std::string& name : NamesIn(CodeOf(text))) {
        const auto provider = providers.find(name);
        if (provider == providers.end() ||
            Provides(included, provider->second)) {
          continue;
        }
        violations.push_back(
            absl::StrCat(path, " uses ", name, " without ", provider->second));
      }
    }
    return violations;
  }

 private:
  static bool Provides(const std::set<std::string>& included,
                       absl::string_view header) {
    if (!absl::ConsumeSuffix(&header, "*")) {
      return included.contains(std::string(header));
    }
    return std::ranges::any_of(included, [&](const std::string& one) {
      return absl::StartsWith(one, header) ||
             (header == "grpc" && absl::StrContains(one, ".grpc.pb.h")) ||
             // The names of their packages end like that of the contract.
             (header == "tensord/v1/" &&
              (absl::StartsWith(one, "opentelemetry/") ||
               absl::StartsWith(one, "grpc_health/")));
    });
  }

  /// Headers of others that `path` includes, and those that they imply.
  const std::set<std::string>& Included(const std::string& path) {
    const auto [known, is_new] = included_.try_emplace(path);
    if (!is_new) return known->second;  // within a circle: what is known so far
    std::set<std::string> all;
    for (const std::string& include : IncludesOf(tree_.at(path))) {
      const std::string ours = OursOf(path, include);
      if (ours.empty()) {
        Add(include, all);
      } else {
        all.merge(std::set(Included(ours)));
      }
    }
    return included_[path] = std::move(all);
  }

  static void Add(const std::string& header, std::set<std::string>& all) {
    if (!all.insert(header).second) return;
    for (const Provider& provider : kProviders) {
      if (provider.header != header) continue;
      for (const absl::string_view implied :
           absl::StrSplit(provider.implies, ' ', absl::SkipEmpty())) {
        Add(std::string(implied), all);
      }
    }
  }

  /// The file of ours that `path` includes as `include`; "" when it is none.
  std::string OursOf(const std::string& path, const std::string& include) {
    const std::string folder = path.substr(0, path.rfind('/') + 1);
    for (const std::string& root :
         {std::string(), folder, std::string("client/cpp/include/"),
          std::string("tests/simt/include/")}) {
      if (tree_.contains(root + include)) return root + include;
    }
    return "";
  }

  const SourceTree& tree_;
  std::map<std::string, std::set<std::string>> included_;
};

std::vector<std::string> UseViolations(const SourceTree& tree) {
  return Uses(tree).Violations();
}

TEST(IncludeUsesTest, FilesIncludeWhatTheyUse) {
  const SourceTree tree = ReadRepository();
  ASSERT_TRUE(tree.contains("core/base/status.h"));
  EXPECT_THAT(UseViolations(tree), IsEmpty());
}

TEST(IncludeUsesTest, WhatIsNotIncludedIsAViolation) {
  EXPECT_THAT(
      UseViolations({{"core/ops/a.cc",
                      "#include <vector>\n"
                      "std::vector<std::string> names;  // std::map\n"
                      "absl::Mutex mutex;\n"
                      "int x ABSL_GUARDED_BY(mutex) = Find(\"std::set\");\n"}}),
      ElementsAre(
          "core/ops/a.cc uses ABSL_GUARDED_BY without "
          "absl/base/thread_annotations.h",
          "core/ops/a.cc uses absl::Mutex without absl/synchronization/mutex.h",
          "core/ops/a.cc uses std::string without string"));
}

TEST(IncludeUsesTest, HeadersOfOursProvideWhatTheyInclude) {
  EXPECT_THAT(
      UseViolations(
          {{"core/ops/a.h", "#include \"core/ops/b.h\"\n"},
           {"core/ops/b.h",
            "#include \"absl/status/statusor.h\"\n#include <map>\n"},
           {"core/ops/a.cc",
            "#include \"core/ops/a.h\"\n"
            "std::map<std::string, absl::Status> all = std::move(others);\n"}}),
      IsEmpty());
}

}  // namespace
}  // namespace tensord::test
