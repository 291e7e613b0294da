#include "client/load/mix.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/names.h"
#include "client/load/toml_table.h"
#include "tensord/layout.h"

namespace tensord::load {
namespace {

struct Kind {
  const char* name;
  OperationKind kind;
  size_t least_terms, most_terms;  // to the left of the arrow
  const char* keys;                // besides kKeysOfAll
};

constexpr char kKeysOfAll[] = "name kind weight element_type deadline";

constexpr Kind kKinds[] = {
    {"contract", OperationKind::kContract, 2, 3,
     "subscripts extents strides inline selection compute_type"},
    {"permute", OperationKind::kPermute, 1, 1,
     "subscripts extents strides inline selection"},
    {"reduce", OperationKind::kReduce, 1, 2,
     "subscripts extents strides inline selection compute_type op"},
    {"elementwise", OperationKind::kElementwise, 2, 3,
     "subscripts extents strides inline selection compute_type op"},
    {"einsum", OperationKind::kEinsum, 1, 64,
     "subscripts extents strides inline selection compute_type"},
    {"factorize", OperationKind::kFactorize, 1, 1,
     "subscripts extents strides inline selection"},
    {"program", OperationKind::kProgram, 0, 0,
     "statements tensors scalars inline selection compute_type"},
    {"upload", OperationKind::kUpload, 0, 0, "extents"},
    {"download", OperationKind::kDownload, 0, 0, "extents"},
};

/// The keys of a map as one text.
template <typename Value>
std::string Listed(const std::map<std::string, Value>& names) {
  return absl::StrJoin(names, ", ", [](std::string* out, const auto& name) {
    out->append(name.first);
  });
}

/// The value that `names` has for what stands behind `key`; if nothing does,
/// `otherwise`.
template <typename Value>
Value OneOf(TomlTable& table, const std::string& key,
            const std::map<std::string, Value>& names, Value otherwise) {
  if (!table.Has(key)) return otherwise;
  const std::string got = table.String(key);
  const auto found = names.find(got);
  if (found != names.end()) return found->second;
  table.Refuse(key,
               absl::StrCat("is '", got, "', wanted one of ", Listed(names)));
  return otherwise;
}

/// The terms of "ik,kj->ij", and what is behind the arrow.
struct Subscripts {
  std::vector<std::string> terms;
  std::string result;
};

Subscripts ReadSubscripts(TomlTable& table, const Kind& kind) {
  const std::string text = table.String("subscripts");
  const std::vector<std::string> sides = absl::StrSplit(text, "->");
  const bool is_einsum = kind.kind == OperationKind::kEinsum;
  Subscripts subscripts{absl::StrSplit(sides[0], ','),
                        sides.size() > 1 ? sides[1] : ""};
  const std::string got =
      text.empty() ? "is missing" : absl::StrCat("is '", text, "'");
  if (text.empty() || sides.size() > 2 || (sides.size() < 2 && !is_einsum)) {
    table.Refuse("subscripts",
                 absl::StrCat(got,
                              ", wanted modes of what goes in and of what "
                              "comes out, e.g. \"ik,kj->ij\""));
  }
  const size_t count = subscripts.terms.size();
  if (count < kind.least_terms || count > kind.most_terms) {
    table.Refuse(
        "subscripts",
        absl::StrCat(got, ", with ", count, " terms; wanted ", kind.least_terms,
                     kind.most_terms == kind.least_terms
                         ? ""
                         : absl::StrCat(" to ", kind.most_terms),
                     " for ", kind.name));
  }
  for (const std::string& term : subscripts.terms) {
    if (std::ranges::all_of(
            term, [](unsigned char c) { return std::isalpha(c) != 0; })) {
      continue;
    }
    table.Refuse("subscripts", absl::StrCat(got,
                                            ", wanted one letter a mode, e.g. "
                                            "\"ik,kj->ij\""));
  }
  return subscripts;
}

/// The element types of `count` tensors: one for all, or one each.
std::vector<ElementType> ReadElementTypes(TomlTable& table, size_t count) {
  std::vector<ElementType> types(count, ElementType::kFloat32);
  const std::vector<std::string> names = table.Strings("element_type");
  if (names.empty()) return types;
  if (names.size() != 1 && names.size() != count) {
    table.Refuse("element_type",
                 absl::StrCat("has ", names.size(), " names, wanted one, or ",
                              count, ", one for each tensor"));
    return types;
  }
  for (size_t i = 0; i < count; ++i) {
    const std::string& name = names[names.size() == 1 ? 0 : i];
    const absl::StatusOr<ElementType> type = ParseElementType(name);
    if (type.ok()) {
      types[i] = *type;
    } else {
      table.Refuse("element_type",
                   absl::StrCat("is '", name, "', wanted one of ",
                                Listed(cli::ElementTypeNames())));
    }
  }
  return types;
}

/// The operands that subscripts name.
void ReadOperands(TomlTable& table, const Kind& kind,
                  OperationSpec& operation) {
  operation.subscripts = table.String("subscripts");
  const Subscripts subscripts = ReadSubscripts(table, kind);
  if (kind.kind != OperationKind::kFactorize &&
      kind.kind != OperationKind::kEinsum) {
    operation.result_modes = subscripts.result;
  }
  TomlTable extents = table.Table("extents");
  const std::vector<ElementType> types =
      ReadElementTypes(table, subscripts.terms.size());
  const std::vector<std::vector<int64_t>> strides =
      table.ExtentLists("strides");
  if (!strides.empty() && strides.size() != subscripts.terms.size()) {
    table.Refuse("strides",
                 absl::StrCat("has ", strides.size(), " lists, wanted ",
                              subscripts.terms.size(), ", one for each term"));
    return;
  }
  std::string labels;
  for (size_t i = 0; i < subscripts.terms.size(); ++i) {
    TensorSpec tensor{.modes = subscripts.terms[i], .element_type = types[i]};
    for (const char label : tensor.modes) {
      const std::string key(1, label);
      labels += label;
      if (!extents.Has(key)) {
        table.Refuse("extents", absl::StrCat("lacks '", key, "' of '",
                                             operation.subscripts, "'"));
      }
      tensor.extents.push_back(extents.Extent(key));
    }
    if (!strides.empty() && strides[i].size() == tensor.extents.size()) {
      tensor.strides = strides[i];
    } else if (!strides.empty()) {
      table.Refuse(
          "strides",
          absl::StrCat("has ", strides[i].size(), " numbers for '",
                       tensor.modes, "', wanted ", tensor.extents.size()));
    }
    operation.tensors.push_back(std::move(tensor));
  }
  for (const std::string& key : extents.keys()) {
    if (key.size() != 1 || labels.find(key) == std::string::npos) {
      extents.Refuse(
          key, absl::StrCat("is no mode of '", operation.subscripts, "'"));
    }
  }
}

/// The operands of a program, by name.
void ReadProgram(TomlTable& table, OperationSpec& operation) {
  operation.statements = table.String("statements");
  if (operation.statements.empty()) {
    table.Refuse("statements",
                 "is missing, wanted a program, e.g. \"D[i,k] := "
                 "A[i,j]*B[j,k]\"");
  }
  TomlTable tensors = table.Table("tensors");
  const std::vector<std::string> names = tensors.keys();
  const std::vector<ElementType> types = ReadElementTypes(table, names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    operation.tensors.push_back({.name = names[i],
                                 .extents = tensors.Extents(names[i]),
                                 .element_type = types[i]});
  }
  TomlTable scalars = table.Table("scalars");
  for (const std::string& name : scalars.keys()) {
    operation.scalars[name] = scalars.Number(name, 0);
  }
}

/// The tensor that is carried.
void ReadTransfer(TomlTable& table, OperationSpec& operation) {
  if (!table.Has("extents")) {
    table.Refuse("extents", "is missing, wanted a list, e.g. [512, 512]");
  }
  operation.tensors.push_back({.extents = table.Extents("extents"),
                               .element_type = ReadElementTypes(table, 1)[0]});
}

OperationSpec ReadOperation(TomlTable& table) {
  OperationSpec operation;
  const std::string name = table.String("kind");
  const auto* const kind = std::ranges::find(kKinds, name, &Kind::name);
  if (kind == std::end(kKinds)) {
    table.Refuse(
        "kind",
        absl::StrCat(
            name.empty() ? "is missing" : absl::StrCat("is '", name, "'"),
            ", wanted one of ",
            absl::StrJoin(kKinds, ", ", [](std::string* out, const Kind& each) {
              out->append(each.name);
            })));
    return operation;
  }
  operation.kind = kind->kind;
  table.CheckKeys(
      absl::StrSplit(absl::StrCat(kKeysOfAll, " ", kind->keys), ' '));
  operation.name = table.String("name", name);
  operation.weight = table.Number("weight", 1);
  if (!(operation.weight >= 0) || std::isinf(operation.weight)) {
    table.Refuse("weight", absl::StrCat("is ", operation.weight,
                                        ", wanted a number of at least 0"));
  }
  switch (operation.kind) {
    case OperationKind::kProgram: ReadProgram(table, operation); break;
    case OperationKind::kUpload:
    case OperationKind::kDownload: ReadTransfer(table, operation); break;
    default: ReadOperands(table, *kind, operation);
  }
  operation.op =
      OneOf(table, "op", cli::BinaryOperatorNames(), BinaryOperator::kAdd);
  operation.compute_type = OneOf(table, "compute_type", cli::ComputeTypeNames(),
                                 ComputeType::kFromElementTypes);
  operation.selection =
      OneOf(table, "selection", cli::SelectionNames(), Selection::kHeuristic);
  operation.is_inline = table.Flag("inline");
  if (table.Has("deadline")) {
    const std::string text = table.String("deadline");
    absl::Duration& deadline = operation.deadline.emplace();
    if (!absl::ParseDuration(text, &deadline) ||
        deadline <= absl::ZeroDuration() ||
        deadline == absl::InfiniteDuration()) {
      table.Refuse("deadline", absl::StrCat("is '", text,
                                            "', wanted a duration, e.g. "
                                            "\"50ms\""));
    }
  }
  for (const TensorSpec& tensor : operation.tensors) {
    const Layout layout{.extents = tensor.extents, .strides = tensor.strides};
    const int64_t most =
        std::numeric_limits<int64_t>::max() / ElementBytes(tensor.element_type);
    const int64_t span = SpanElements(layout);
    if (span < 0 || span > most) {
      table.Refuse("extents", "make a tensor of more than 2^63 bytes");
    }
  }
  return operation;
}

void ReadOperations(TomlTable& table, Mix& mix) {
  std::set<std::string> names;
  double sum = 0;
  for (TomlTable& each : table.Tables("operation")) {
    mix.operations.push_back(ReadOperation(each));
    const OperationSpec& operation = mix.operations.back();
    sum += operation.weight;
    if (!names.insert(operation.name).second) {
      each.Refuse("name", absl::StrCat("is '", operation.name,
                                       "' as that of another operation, "
                                       "wanted another one"));
    }
  }
  if (mix.operations.empty()) {
    table.Refuse("operation",
                 "is missing, wanted at least one table [[operation]]");
  } else if (sum <= 0) {
    table.Refuse("operation",
                 "has weights of 0 only, wanted at least one above");
  }
}

}  // namespace

absl::StatusOr<Mix> ParseMix(std::string_view text, const std::string& file) {
  const toml::parse_result parsed = toml::parse(text, file);
  if (!parsed) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ":", parsed.error().source().begin.line, ": ",
                     std::string(parsed.error().description())));
  }
  TomlMistakes mistakes{.file = file, .status = {}};
  TomlTable table(parsed.table(), mistakes);
  table.CheckKeys({"name", "job", "operation"});
  Mix mix{.name = table.String("name"),
          .job = table.String("job", "tensord-load"),
          .operations = {}};
  ReadOperations(table, mix);
  if (!mistakes.status.ok()) return mistakes.status;
  return mix;
}

absl::StatusOr<Mix> ReadMix(const std::string& file) {
  std::ifstream stream(file);
  std::string text;
  std::getline(stream, text, '\0');  // all of it
  if (!stream.is_open() || stream.bad()) {
    return absl::NotFoundError(absl::StrCat("cannot read '", file, "'"));
  }
  return ParseMix(text, file);
}

}  // namespace tensord::load
