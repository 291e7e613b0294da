// Who may include whom, how full a folder may be and what it may not be called.
//
//   client -> proto <- server/rpc -> server/execution -> server/session ->
//   server/engine -> core
//   core: executor -> plan -> backend -> {problem -> ops -> base,
//                                         tensor -> memory -> device -> base,
//                                         view -> base}
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

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

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Tree = SourceTree;

/// A folder with all below it that has no layer of its own.
struct Layer {
  std::string folder;
  std::vector<std::string> may_include;  // and what those may include
  /// Single headers of folders that it otherwise may not include.
  std::set<std::string> exceptions;
};

const std::vector<Layer>& Layers() {
  static const auto& layers = *new std::vector<Layer>{
      {"core/base", {}},
      {"core/device", {"core/base"}},
      {"core/memory", {"core/device"}},
      {"core/tensor", {"core/memory"}},
      {"core/view", {"core/base"}},
      {"core/ops", {"core/base"}},
      {"core/notation", {"core/ops"}},
      {"core/problem", {"core/ops"}},
      {"core/backend", {"core/problem", "core/tensor", "core/view"}},
      {"core/backend/cpu/block",
       {"core/backend"},
       {"core/backend/cpu/thread_pool.h"}},
      {"core/backend/cpu", {"core/backend", "core/backend/cpu/block"}},
      {"core/backend/cuda/kernel", {"core/backend"}},
      {"core/backend/cuda", {"core/backend", "core/backend/cuda/kernel"}},
      {"core/plan", {"core/backend"}},
      {"core/executor", {"core/plan"}},
      {"server/telemetry", {"core/base"}},
      {"server/engine",
       {"core/executor", "core/notation", "server/telemetry"},
       {"core/backend/cpu/cpu_backend.h"}},
      {"server/identity", {"core/base"}},
      {"server/session", {"server/engine"}},
      {"server/config", {"server/session", "server/identity"}},
      {"server/execution", {"server/session"}},
      {"server/http", {"server/session", "server/identity"}},
      {"server/shared_memory", {"server/session", "server/telemetry"}},
      {"server/rpc",
       {"server/execution", "server/config", "server/shared_memory",
        "proto/wire"}},
      {"server/process", {"server/http", "server/rpc"}},
      {"server", {"server/process"}},
      {"proto", {}},
      {"proto/wire", {"proto"}, {"core/base/crc32c.h"}},
      {"client/cpp", {"proto/wire"}},
      {"client/cli",
       {"client/cpp"},
       {"core/base/status.h", "core/base/version.h",
        "server/identity/token_file.h"}},
      {"client/load",
       {"client/cli"},
       {"core/base/nearest.h", "core/base/version.h"}},
      {"client/cpp/examples", {"client/cli"}},
      {"client/python/native", {"client/cpp"}, {"core/base/version.h"}},
  };
  return layers;
}

constexpr int kHeaderLimit = 15;
/// Core computes; it speaks to nobody.
constexpr absl::string_view kForeignToCore[] = {"grpc", "google/protobuf",
                                                "spdlog"};
constexpr absl::string_view kForbiddenNames[] = {"util", "utils", "common",
                                                 "detail", "misc"};

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

bool IsInside(absl::string_view path, absl::string_view folder) {
  return path == folder || absl::StartsWith(path, absl::StrCat(folder, "/"));
}

/// The layer that `path` belongs to, or null.
const Layer* LayerOf(absl::string_view path) {
  const Layer* innermost = nullptr;
  for (const Layer& layer : Layers()) {
    if (IsInside(path, layer.folder) &&
        (innermost == nullptr ||
         layer.folder.size() > innermost->folder.size())) {
      innermost = &layer;
    }
  }
  return innermost;
}

bool MayInclude(const Layer& from, const Layer& to) {
  if (from.folder == to.folder) return true;
  return std::ranges::any_of(from.may_include, [&](const std::string& folder) {
    return MayInclude(*LayerOf(folder), to);
  });
}

/// Where an include leads: a path from the root, or "" outside the repository.
std::string TargetOf(absl::string_view include) {
  for (const absl::string_view root : {"core", "proto", "server", "client"}) {
    if (IsInside(include, root)) return std::string(include);
  }
  // The generated code and the C++ client's public headers.
  if (IsInside(include, "tensord/v1")) return absl::StrCat("proto/", include);
  if (IsInside(include, "tensord")) return absl::StrCat("client/cpp/", include);
  return "";
}

bool IsLayered(absl::string_view path) {
  return IsInside(path, "core") || IsInside(path, "proto") ||
         IsInside(path, "server") || IsInside(path, "client");
}

std::vector<std::string> IncludeViolations(const std::string& path,
                                           const std::string& text) {
  std::vector<std::string> violations;
  const Layer* const from = LayerOf(path);
  if (from == nullptr) return {absl::StrCat(path, " is in no known layer")};
  for (const std::string& include : IncludesOf(text)) {
    const bool is_foreign = std::ranges::any_of(
        kForeignToCore,
        [&](absl::string_view x) { return absl::StartsWith(include, x); });
    if (IsInside(path, "core") && is_foreign) {
      violations.push_back(
          absl::StrCat(path, " includes ", include, ", which core may not"));
    }
    const std::string target = TargetOf(include);
    if (target.empty() || from->exceptions.contains(target)) continue;
    const Layer* const to = LayerOf(target);
    if (to == nullptr || !MayInclude(*from, *to)) {
      violations.push_back(absl::StrCat(path, " includes ", include, ", which ",
                                        from->folder, " may not"));
    }
  }
  return violations;
}

/// What a source is told that has a header of its name but does not include it
/// first: nobody else checks that the header stands alone.
std::vector<std::string> OwnHeaderViolations(const Tree& tree,
                                             const std::string& path,
                                             const std::string& text) {
  absl::string_view stem = path;
  if (!absl::ConsumeSuffix(&stem, ".cc")) return {};
  const std::string header = absl::StrCat(stem, ".h");
  if (!tree.contains(header)) return {};
  const std::vector<std::string> includes = IncludesOf(text);
  if (!includes.empty() && includes.front() == header) return {};
  return {absl::StrCat(path, " does not include ", header, " first")};
}

std::vector<std::string> RuleViolations(const Tree& tree) {
  std::vector<std::string> violations;
  std::map<std::string, int> header_counts;
  std::set<std::string> misnamed;
  for (const auto& [path, text] : tree) {
    const std::string folder = FolderOf(path);
    for (const absl::string_view name : absl::StrSplit(folder, '/')) {
      if (std::ranges::count(kForbiddenNames, name) > 0) {
        misnamed.insert(folder);
      }
    }
    if (!IsSource(path) || !IsLayered(path)) continue;
    if (IsHeader(path)) ++header_counts[folder];
    const auto of_file = IncludeViolations(path, text);
    violations.insert(violations.end(), of_file.begin(), of_file.end());
    const auto of_header = OwnHeaderViolations(tree, path, text);
    violations.insert(violations.end(), of_header.begin(), of_header.end());
  }
  for (const std::string& folder : misnamed) {
    violations.push_back(absl::StrCat(folder, " says nothing by its name"));
  }
  for (const auto& [folder, count] : header_counts) {
    if (count > kHeaderLimit) {
      violations.push_back(absl::StrCat(
          folder, " holds ", count, " headers, wanted at most ", kHeaderLimit));
    }
  }
  return violations;
}

TEST(IncludeRulesTest, TheRepositoryKeepsThem) {
  const Tree tree = ReadRepository();
  ASSERT_TRUE(tree.contains("core/base/status.h"));
  EXPECT_THAT(RuleViolations(tree), IsEmpty());
}

TEST(IncludeRulesTest, DirectAndIndirectLayersBelowAreAllowed) {
  EXPECT_THAT(RuleViolations({
                  {"core/plan/plan.h",
                   "#include \"core/backend/kernel.h\"\n"
                   "#include \"core/base/status.h\"\n"
                   "#include <vector>\n"
                   "#include \"absl/status/status.h\"\n"},
                  {"core/plan/plan.cc", "#include \"core/plan/plan.h\"\n"},
                  {"server/rpc/a.cc",
                   "#include \"tensord/v1/compute.grpc.pb.h\"\n"
                   "#include \"core/ops/scalar.h\"\n"
                   "#include <grpcpp/grpcpp.h>\n"},
                  {"server/engine/engine.cc",
                   "#include \"core/backend/cpu/cpu_backend.h\"\n"},
                  {"client/cli/main.cc", "#include \"tensord/session.h\"\n"},
                  {"proto/wire/chunk.cc",
                   "#include \"core/base/crc32c.h\"\n"
                   "#include \"tensord/v1/tensor.pb.h\"\n"},
              }),
              IsEmpty());
}

TEST(IncludeRulesTest, LayersAboveOrBesideAreViolations) {
  const auto violation = [](const std::string& path,
                            const std::string& include) {
    return RuleViolations(
        {{path, absl::StrCat("\n#include \"", include, "\"\n")}});
  };
  EXPECT_THAT(violation("core/base/layout.h", "core/ops/operand.h"),
              ElementsAre("core/base/layout.h includes core/ops/operand.h, "
                          "which core/base may not"));
  for (const auto& [path, include] :
       std::vector<std::pair<std::string, std::string>>{
           {"core/ops/a.cc", "core/memory/workspace.h"},
           {"core/memory/a.cc", "core/ops/operand.h"},
           {"core/problem/a.h", "core/backend/kernel.h"},
           {"core/backend/kernel.h", "core/backend/cpu/thread_pool.h"},
           {"core/backend/cpu/a.cc", "core/backend/cuda/cuda_backend.h"},
           {"core/backend/cuda/a.cu", "core/backend/cpu/cpu_backend.h"},
           {"core/plan/a.cc", "core/backend/cpu/cpu_backend.h"},
           {"core/plan/a.cc", "core/executor/executor.h"},
           {"core/executor/a.cc", "server/engine/engine.h"},
           {"server/engine/a.cc", "core/backend/cpu/thread_pool.h"},
           {"server/engine/a.cc", "server/session/session.h"},
           {"server/engine/a.cc", "tensord/v1/compute.pb.h"},
           {"server/session/a.cc", "tensord/v1/compute.pb.h"},
           {"server/session/a.cc", "server/rpc/convert.h"},
           {"proto/wire/a.cc", "core/base/status.h"},
           {"core/plan/a.cc", "proto/wire/chunk.h"},
           {"server/session/a.cc", "proto/wire/chunk.h"},
           {"client/cpp/src/a.cc", "core/base/status.h"},
           {"client/cpp/src/a.cc", "core/base/crc32c.h"},
           {"client/cli/a.cc", "server/config/flags.h"},
           {"core/base/a.cc", "core/unknown/a.h"}}) {
    EXPECT_THAT(violation(path, include), ElementsAre(HasSubstr("may not")))
        << path << " includes " << include;
  }
}

TEST(IncludeRulesTest, OwnHeaderComesFirst) {
  Tree tree = {{"core/ops/a.h", ""},
               {"core/ops/a.cc", "// A.\n#include \"core/ops/a.h\"\n"},
               {"core/ops/b.cc", "#include <vector>\n"}};
  EXPECT_THAT(RuleViolations(tree), IsEmpty());
  for (const char* text :
       {"", "#include <vector>\n#include \"core/ops/a.h\"\n"}) {
    tree["core/ops/a.cc"] = text;
    EXPECT_THAT(
        RuleViolations(tree),
        ElementsAre("core/ops/a.cc does not include core/ops/a.h first"));
  }
}

TEST(IncludeRulesTest, CoreThatSpeaksIsAViolation) {
  for (const std::string include :
       {"<grpcpp/grpcpp.h>", "\"google/protobuf/message.h\"",
        "<spdlog/spdlog.h>"}) {
    EXPECT_THAT(
        RuleViolations({{"core/ops/a.cc", absl::StrCat("#include ", include)}}),
        ElementsAre(HasSubstr("core may not")));
  }
}

TEST(IncludeRulesTest, UnknownFolderIsAViolation) {
  EXPECT_THAT(RuleViolations({{"core/magic/a.h", ""}}),
              ElementsAre("core/magic/a.h is in no known layer"));
}

TEST(IncludeRulesTest, EmptyNamesAreViolations) {
  for (const char* path :
       {"core/ops/detail/a.h", "tests/common/b.py", "server/rpc/util/c.cc"}) {
    EXPECT_THAT(RuleViolations({{path, ""}}),
                Contains(HasSubstr("says nothing by its name")));
  }
}

TEST(IncludeRulesTest, CrowdedFolderIsAViolation) {
  Tree tree;
  for (int i = 0; i < 15; ++i) tree[absl::StrCat("core/ops/h", i, ".h")] = "";
  EXPECT_THAT(RuleViolations(tree), IsEmpty());
  tree["core/ops/one_more.h"] = "";
  EXPECT_THAT(RuleViolations(tree),
              ElementsAre("core/ops holds 16 headers, wanted at most 15"));
}

}  // namespace
}  // namespace tensord::test
