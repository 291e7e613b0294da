// Functions of whole tensors, and their options.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "core/base/nearest.h"
#include "core/base/status.h"
#include "core/notation/characters.h"
#include "core/notation/functions.h"
#include "core/notation/program/bind.h"
#include "core/notation/text_error.h"

namespace tensord::core {
namespace {

using Absorb = Truncation::Absorb;

/// A word and what it stands for.
template <typename T>
using Word = std::pair<absl::string_view, T>;

constexpr Word<double Truncation::*> kLimits[] = {
    {"cutoff", &Truncation::cutoff},
    {"relative_cutoff", &Truncation::relative_cutoff},
    {"discarded_squares", &Truncation::discarded_squares},
    {"relative_discarded_squares", &Truncation::relative_discarded_squares}};
constexpr Word<int64_t Sampling::*> kSamplings[] = {
    {"oversampling", &Sampling::oversampling},
    {"power_iterations", &Sampling::power_iterations}};
constexpr Word<Absorb> kAbsorbs[] = {{"left", Absorb::kLeft},
                                     {"right", Absorb::kRight},
                                     {"both", Absorb::kBoth}};
constexpr Word<bool> kBools[] = {{"true", true}, {"false", false}};

/// The options that a call may have.
std::vector<std::string> OptionsOf(const StatementCall& call) {
  if (call.along == AlongFunction::kArgsort) return {"along", "descending"};
  if (call.along) return {"along"};
  if (call.solves()) return {"structure", "unit_diagonal"};
  if (*call.method != FactorizationMethod::kSvd) return {};
  std::vector<std::string> names = {"rank", "absorb", "renormalize"};
  for (const auto& [name, limit] : kLimits) names.emplace_back(name);
  for (const auto name :
       {"randomized", "oversampling", "power_iterations", "seed"}) {
    names.emplace_back(name);
  }
  return names;
}

absl::Status CheckOption(const StatementCall& call, const CallOption& option) {
  const std::vector<std::string> known = OptionsOf(call);
  const auto first =
      std::ranges::find(call.options, option.name, &CallOption::name);
  if (&*first != &option) {
    return ErrorAt(option.position, "SYNTAX_ERROR", "option ",
                   Quoted(option.name), " is given twice, first at ",
                   PlaceSeenFrom(option.position, first->position));
  }
  if (std::ranges::find(known, option.name) != known.end()) {
    return absl::OkStatus();
  }
  if (known.empty()) {
    return ErrorAt(option.position, "SYNTAX_ERROR", "got option ",
                   Quoted(option.name), ", but ", NotationOf(call),
                   "() has none");
  }
  const std::string nearest = Nearest(option.name, known);
  return ErrorAt(
      option.position, "SYNTAX_ERROR", "got option ", Quoted(option.name),
      nearest.empty() ? "" : absl::StrCat(", the nearest is '", nearest, "'"),
      ", wanted one of ", absl::StrJoin(known, ", "));
}

/// The value of `option` as messages show it.
std::string ShownValue(const CallOption& option) {
  const auto* const number = std::get_if<double>(&option.value);
  return number != nullptr ? absl::StrCat(*number)
                           : Quoted(std::get<std::string>(option.value));
}

/// The whole number that `option` is; a scalar could have other values.
absl::StatusOr<int64_t> WholeNumberOf(const CallOption& option) {
  const auto* const number = std::get_if<double>(&option.value);
  if (number != nullptr && std::trunc(*number) == *number &&
      std::abs(*number) < std::exp2(53)) {
    return static_cast<int64_t>(*number);
  }
  return ErrorAt(option.position, "SYNTAX_ERROR", "got ", ShownValue(option),
                 " for ", option.name,
                 ", wanted a whole number in the text, below 2^53, such as ",
                 option.name, "=8");
}

/// What the word of `option` stands for.
template <typename Words>
auto WordOf(const CallOption& option, const Words& words)
    -> absl::StatusOr<decltype(std::begin(words)->second)> {
  std::string wanted;
  for (const auto& [word, value] : words) {
    const auto* const text = std::get_if<std::string>(&option.value);
    if (text != nullptr && *text == word) return value;
    absl::StrAppend(&wanted, wanted.empty() ? "" : ", ", word);
  }
  return ErrorAt(option.position, "SYNTAX_ERROR", "got ", ShownValue(option),
                 " for ", option.name, ", wanted one of ", wanted);
}

std::vector<Word<MatrixStructure>> Structures() {
  std::vector<Word<MatrixStructure>> words;
  for (int i = 0; i < kMatrixStructureCount; ++i) {
    const auto structure = static_cast<MatrixStructure>(i);
    words.emplace_back(NameOf(structure), structure);
  }
  return words;
}

/// Whether it is of a random sample.
bool IsOfSampling(const CallOption& option) {
  return option.name == "randomized" || option.name == "seed" ||
         std::ranges::find(kSamplings, option.name,
                           &Word<int64_t Sampling::*>::first) !=
             std::end(kSamplings);
}

/// The options of a random sample, all of them together.
absl::Status TakeSampling(const StatementCall& call,
                          BoundStatementCall& bound) {
  const auto validate = [&](const CallOption& option) {
    const absl::Status valid =
        Validate(*bound.sampling, *call.method, bound.rank);
    return valid.ok() ? valid : PlacedAt(option.position, valid);
  };
  const auto randomized =
      std::ranges::find(call.options, "randomized", &CallOption::name);
  if (randomized != call.options.end()) {
    TENSORD_ASSIGN_OR_RETURN(const bool is_wanted, WordOf(*randomized, kBools));
    if (is_wanted) {
      bound.sampling.emplace();
      TENSORD_RETURN_IF_ERROR(validate(*randomized));
    }
  }
  for (const CallOption& option : call.options) {
    if (!IsOfSampling(option) || option.name == "randomized") continue;
    TENSORD_ASSIGN_OR_RETURN(const int64_t number, WholeNumberOf(option));
    if (!bound.sampling) {
      return ErrorAt(option.position, "SYNTAX_ERROR", "got option ",
                     Quoted(option.name), ", wanted it with randomized=true");
    }
    if (option.name == "seed") {
      bound.truncation.seed = number;
      continue;
    }
    const auto found = std::ranges::find(kSamplings, option.name,
                                         &Word<int64_t Sampling::*>::first);
    (*bound.sampling).*found->second = number;
    TENSORD_RETURN_IF_ERROR(validate(option));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<double> Bindings::LimitOf(const CallOption& option) const {
  if (const auto* const number = std::get_if<double>(&option.value)) {
    return *number;
  }
  const std::string& name = std::get<std::string>(option.value);
  const auto found = names_.find(name);
  if (found == names_.end()) {
    return ErrorAt(option.position, "NAME_UNKNOWN", Quoted(name),
                   " stands for nothing, wanted a number or a scalar for ",
                   option.name);
  }
  const auto& [scalar, tensor] = found->second;
  if (tensor < 0 && scalar.imaginary == 0) return scalar.real;
  return ErrorAt(
      option.position, tensor < 0 ? "SCALAR_NOT_REAL" : "NAME_IS_TENSOR",
      Quoted(name), " is ", tensor < 0 ? "a complex number" : "a tensor",
      ", wanted a real number or scalar for ", option.name);
}

absl::Status Bindings::TakeOption(const StatementCall& call,
                                  const CallOption& option,
                                  BoundStatementCall& bound) const {
  TENSORD_RETURN_IF_ERROR(CheckOption(call, option));
  if (option.name == "rank") {
    TENSORD_ASSIGN_OR_RETURN(bound.rank, WholeNumberOf(option));
  } else if (option.name == "absorb") {
    TENSORD_ASSIGN_OR_RETURN(bound.truncation.absorb, WordOf(option, kAbsorbs));
  } else if (option.name == "renormalize") {
    TENSORD_ASSIGN_OR_RETURN(bound.truncation.renormalizes,
                             WordOf(option, kBools));
  } else if (option.name == "structure") {
    TENSORD_ASSIGN_OR_RETURN(bound.structure, WordOf(option, Structures()));
  } else if (option.name == "unit_diagonal") {
    TENSORD_ASSIGN_OR_RETURN(bound.has_unit_diagonal, WordOf(option, kBools));
  } else if (option.name == "descending") {
    TENSORD_ASSIGN_OR_RETURN(bound.descends, WordOf(option, kBools));
  } else if (option.name == "along" || IsOfSampling(option)) {
    return absl::OkStatus();  // see AlongOf(), TakeSampling()
  } else {
    const auto limit = std::ranges::find(kLimits, option.name,
                                         &Word<double Truncation::*>::first);
    TENSORD_ASSIGN_OR_RETURN(bound.truncation.*limit->second, LimitOf(option));
  }
  return absl::OkStatus();
}

absl::StatusOr<Mode> Bindings::AlongOf(const StatementCall& call,
                                       const Scope& scope) const {
  const auto option =
      std::ranges::find(call.options, "along", &CallOption::name);
  if (option == call.options.end()) {
    if (scope.size() == 1) return scope.begin()->second;
    return ErrorAt(call.position, "SYNTAX_ERROR", NotationOf(call),
                   "() has an argument of ", scope.size(),
                   " labels, wanted the one along which it goes, such as "
                   "along=i");
  }
  const std::string& label = std::get<std::string>(option->value);
  const auto found = scope.find(label);
  if (found != scope.end()) return found->second;
  const std::vector<std::string>& wanted = call.arguments[0].labels;
  return ErrorAt(
      option->position, "LABEL_UNMATCHED", "along is ", label,
      ", wanted a label that the argument of ", NotationOf(call),
      "() has and does not sum: ",
      wanted.empty() ? "there is none" : absl::StrJoin(wanted, ", "));
}

absl::StatusOr<BoundStatementCall> Bindings::BindCall(
    const Statement& statement) {
  const StatementCall& call = *statement.call;
  const auto validate = [&](BoundStatementCall& bound, bool has_values,
                            TextPosition position) {
    if (!call.method) return absl::OkStatus();
    const absl::Status valid =
        Validate(bound.truncation, *call.method, has_values, bound.rank);
    return valid.ok() ? valid : PlacedAt(position, valid);
  };
  Scope scope;
  BoundStatementCall bound;
  for (const CallOption& option : call.options) {
    TENSORD_RETURN_IF_ERROR(TakeOption(call, option, bound));
    TENSORD_RETURN_IF_ERROR(
        validate(bound, /*has_values=*/true, option.position));
  }
  TENSORD_RETURN_IF_ERROR(TakeSampling(call, bound));
  for (const Sum& argument : call.arguments) {
    Scope inner;
    std::vector<Mode>& modes = bound.inputs.emplace_back();
    for (const std::string& label : argument.labels) {
      modes.push_back(IndexOf({label, call.position}, scope));
      inner[label] = modes.back();
    }
    TENSORD_ASSIGN_OR_RETURN(bound.arguments.emplace_back(),
                             BindSum(argument, inner));
  }
  if (call.along) {
    TENSORD_ASSIGN_OR_RETURN(bound.along, AlongOf(call, scope));
  }
  for (const TensorReference* const output : statement.outputs()) {
    std::vector<Mode>& modes = bound.outputs.emplace_back();
    for (const Label& label : output->labels) {
      modes.push_back(IndexOf(label, scope));
    }
  }
  const bool has_values =
      call.method &&
      PlacesOf(*call.method, bound.outputs.size()).values.has_value();
  TENSORD_RETURN_IF_ERROR(validate(bound, has_values, call.position));
  return bound;
}

}  // namespace tensord::core
