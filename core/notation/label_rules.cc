#include "core/notation/label_rules.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "core/notation/characters.h"
#include "core/notation/forms.h"
#include "core/notation/functions.h"
#include "core/notation/text_error.h"

namespace tensord::core {
namespace {

bool IsBefore(const Label* a, const Label* b) {
  return std::pair(a->position.line, a->position.column) <
         std::pair(b->position.line, b->position.column);
}

/// Where a label occurs in a term.
struct Place {
  const Label* first = nullptr;
  const Label* second = nullptr;  // behind `first`
  int depth = 0;                  // of the groups, innermost, that have both
};
using Places = absl::flat_hash_map<absl::string_view, Place>;

/// A label that occurs too often.
struct Excess {
  std::array<const Label*, 3> places{};  // the last is the one to complain of
  bool is_reused = false;                // the first two are in a group
};

/// Takes in a further place of a label of a term at `depth`.
std::optional<Excess> Join(Place added, int depth, Place& place) {
  if (IsBefore(added.first, place.first)) std::swap(added, place);
  if (place.second == nullptr && added.second == nullptr) {
    place.second = added.first;
    place.depth = depth;
    return std::nullopt;
  }
  if (place.second != nullptr && place.depth > depth) {
    return Excess{{place.first, place.second, added.first}, true};
  }
  if (added.second != nullptr && added.depth > depth) {
    return Excess{{added.first, added.second, place.first}, true};
  }
  std::array<const Label*, 4> all = {place.first, added.first, place.second,
                                     added.second};
  std::sort(all.begin(), all.end(), [](const Label* a, const Label* b) {
    return a != nullptr && (b == nullptr || IsBefore(a, b));
  });
  return Excess{{all[0], all[1], all[2]}, false};
}

absl::Status ErrorOf(const Excess& excess) {
  const auto& [first, second, last] = excess.places;
  const TextPosition at = last->position;
  if (excess.is_reused) {
    return ErrorAt(
        at, "LABEL_REUSED", "label ", Quoted(last->text),
        " occurs again outside the parentheses that have it twice, at ",
        PlaceSeenFrom(at, first->position), " and ",
        PlaceSeenFrom(at, second->position), ", wanted another label");
  }
  return ErrorAt(at, "LABEL_REPEATED", "label ", Quoted(last->text),
                 " occurs three times in this term, first at ",
                 PlaceSeenFrom(at, first->position),
                 ", wanted it at most twice; for a vector v[k] there is "
                 "Diagonal(v)[k,l]");
}

/// Whether a statement's output has a label.
using IsOutput = absl::FunctionRef<bool(absl::string_view)>;

/// Places in several sums, and whether each of their terms has each of its
/// labels twice.
struct PlacesInSums {
  Places places;
  bool are_twice = true;
};
absl::StatusOr<PlacesInSums> PlacesIn(std::span<Sum> sums, int depth,
                                      IsOutput is_output);

/// True for a tensor that divides and is computed first: a diagonal matrix, or
/// one that has each of its labels twice, none of them the output's.
bool IsComputedFirst(const Factor& factor, IsOutput is_output) {
  const auto* const tensor = std::get_if<TensorReference>(&factor.value);
  if (tensor == nullptr || !factor.is_divisor || tensor->labels.empty()) {
    return false;
  }
  const auto is_summed = [&](const Label& label) {
    return std::ranges::count(tensor->labels, label.text, &Label::text) == 2 &&
           !is_output(label.text);
  };
  return tensor->is_diagonal || std::ranges::all_of(tensor->labels, is_summed);
}

/// Marks what has labels of its own, too.
absl::StatusOr<Places> PlacesIn(Term& term, int depth, IsOutput is_output) {
  Places places;
  const auto join = [&](absl::string_view text, const Place& place) {
    const auto [at, is_new] = places.try_emplace(text, place);
    return is_new ? std::nullopt : Join(place, depth, at->second);
  };
  for (Factor& factor : term.factors) {
    if (IsComputedFirst(factor, is_output)) Enclose(factor);
    if (const auto* tensor = std::get_if<TensorReference>(&factor.value)) {
      for (const Label& label : tensor->labels) {
        const bool is_counted =
            factor.is_divisor && is_output(label.text) &&
            &label !=
                &*std::ranges::find(tensor->labels, label.text, &Label::text);
        if (is_counted) continue;
        if (const auto excess = join(label.text, {&label})) {
          return ErrorOf(*excess);
        }
      }
    } else if (!factor.parts().empty()) {
      TENSORD_ASSIGN_OR_RETURN(PlacesInSums found,
                               PlacesIn(factor.parts(), depth + 1, is_output));
      Places& inside = found.places;
      if (const Call* const call = factor.call()) inside.erase(call->taken);
      const bool may_sum = factor.group() != nullptr ||
                           std::ranges::none_of(inside, [&](const auto& at) {
                             return is_output(at.first);
                           });
      factor.has_own_labels =
          factor.is_scalar || (factor.is_divisor && found.are_twice && may_sum);
      if (factor.has_own_labels) continue;
      // What is not summed inside goes with what is around as one.
      for (auto& [text, place] : inside) {
        if (is_output(text)) place = {place.first};
      }
      if (inside.size() > places.size()) inside.swap(places);
      std::optional<Excess> earliest;
      for (const auto& [text, place] : inside) {
        const auto excess = join(text, place);
        if (excess &&
            (!earliest || IsBefore(excess->places[2], earliest->places[2]))) {
          earliest = excess;
        }
      }
      if (earliest) return ErrorOf(*earliest);
    }
  }
  return places;
}

/// For each label the places in the term that has it most often.
absl::StatusOr<PlacesInSums> PlacesIn(std::span<Sum> sums, int depth,
                                      IsOutput is_output) {
  PlacesInSums found;
  const auto join = [&](Places in_term) {
    Places& places = found.places;
    for (const auto& [text, place] : in_term) {
      found.are_twice = found.are_twice && place.second != nullptr;
    }
    if (in_term.size() > places.size()) in_term.swap(places);
    for (const auto& [text, place] : in_term) {
      const auto [at, is_new] = places.try_emplace(text, place);
      if (is_new) continue;
      const bool is_twice = place.second != nullptr;
      const bool was_twice = at->second.second != nullptr;
      if (is_twice != was_twice ? is_twice
                                : IsBefore(place.first, at->second.first)) {
        at->second = place;
      }
    }
  };
  for (Sum& sum : sums) {
    for (Term& term : sum.terms) {
      TENSORD_ASSIGN_OR_RETURN(Places in_term,
                               PlacesIn(term, depth, is_output));
      join(std::move(in_term));
    }
  }
  return found;
}

/// The number that a label is, or nothing.
std::optional<int64_t> NumberOf(absl::string_view label) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(label, &number)) return std::nullopt;
  return number;
}

/// Labels that are not summed in a part of a statement, by their first place.
using OpenLabels = std::vector<const Label*>;

/// Finds what is open in the sums of one statement.
class OpenLabelFinder {
 public:
  OpenLabelFinder(const Labels& output, const NotationLimits& limits)
      : limits_(limits) {
    for (const Label& label : output) output_.insert(label.text);
  }

  bool IsOutput(absl::string_view label) const {
    return output_.contains(label);
  }

  /// Fills in what is known of groups, and `is_ncon`.
  absl::StatusOr<OpenLabels> Find(Term& term) const;
  /// Likewise; `at` is where the sum's parentheses open.
  absl::StatusOr<OpenLabels> FindInSum(Sum& sum, TextPosition at) const;

 private:
  absl::StatusOr<OpenLabels> FindInParts(Factor& factor) const;
  absl::StatusOr<OpenLabels> FindInCall(Call& call, TextPosition at) const;
  bool IsNcon(const OpenLabels& labels) const;

  const NotationLimits& limits_;
  absl::flat_hash_set<absl::string_view> output_;
};

/// OK when what has labels of its own has no open ones.
absl::Status CheckScalar(const Factor& scalar, const OpenLabels& open) {
  if (open.empty()) return absl::OkStatus();
  const Label& label = *open.front();
  return ErrorAt(label.position, "LABEL_UNMATCHED", "label ",
                 Quoted(label.text), " is not summed in tensorscalar() at ",
                 PlaceSeenFrom(label.position, scalar.position),
                 ", wanted it twice there");
}

absl::StatusOr<OpenLabels> OpenLabelFinder::Find(Term& term) const {
  OpenLabels labels;  // distinct
  absl::flat_hash_map<absl::string_view, int> counts;
  const auto add = [&](const Label* label) {
    if (++counts[label->text] == 1) labels.push_back(label);
  };
  for (Factor& factor : term.factors) {
    if (const auto* tensor = std::get_if<TensorReference>(&factor.value)) {
      for (const Label& label : tensor->labels) add(&label);
    } else if (factor.has_own_labels) {
      const OpenLabelFinder apart(Labels(), limits_);
      TENSORD_ASSIGN_OR_RETURN(const OpenLabels inside,
                               apart.FindInParts(factor));
      TENSORD_RETURN_IF_ERROR(CheckScalar(factor, inside));
    } else {
      TENSORD_ASSIGN_OR_RETURN(const OpenLabels inside, FindInParts(factor));
      for (const Label* label : inside) add(label);
      for (const Sum& part : factor.parts()) {
        term.has_labels = term.has_labels ||
                          std::ranges::any_of(part.terms, &Term::has_labels);
      }
    }
  }
  term.has_labels = term.has_labels || !labels.empty();
  term.is_ncon = IsNcon(labels);
  std::erase_if(labels, [&](const Label* label) {
    return counts[label->text] == 2 && !IsOutput(label->text);
  });
  return labels;
}

bool OpenLabelFinder::IsNcon(const OpenLabels& labels) const {
  return !labels.empty() &&
         std::ranges::all_of(labels, [&](const Label* label) {
           const auto number = NumberOf(label->text);
           return number && (IsOutput(label->text) ? *number < 0 : *number > 0);
         });
}

/// OK when two terms of a group have the same open labels.
absl::Status CheckAlike(const OpenLabels& first, TextPosition first_at,
                        const OpenLabels& other, TextPosition other_at) {
  const auto missing = [](const OpenLabels& labels, const OpenLabels& from) {
    absl::flat_hash_set<absl::string_view> there;
    for (const Label* label : from) there.insert(label->text);
    const auto at = std::ranges::find_if(labels, [&](const Label* label) {
      return !there.contains(label->text);
    });
    return at == labels.end() ? nullptr : *at;
  };
  if (const Label* label = missing(other, first)) {
    return ErrorAt(
        label->position, "LABELS_DIFFER", "label ", Quoted(label->text),
        " of this term is not among those of the sum's first term at ",
        PlaceSeenFrom(label->position, first_at),
        ", wanted the same labels in every term");
  }
  if (const Label* label = missing(first, other)) {
    return ErrorAt(other_at, "LABELS_DIFFER", "this term lacks label ",
                   Quoted(label->text), " of the sum's first term, at ",
                   PlaceSeenFrom(other_at, label->position),
                   ", wanted the same labels in every term");
  }
  return absl::OkStatus();
}

absl::StatusOr<OpenLabels> OpenLabelFinder::FindInParts(Factor& factor) const {
  if (auto* const call = std::get_if<Call>(&factor.value)) {
    return FindInCall(*call, factor.position);
  }
  OpenLabels labels;
  for (Sum& group : factor.parts()) {
    TENSORD_ASSIGN_OR_RETURN(labels, FindInSum(group, factor.position));
  }
  return labels;
}

absl::StatusOr<OpenLabels> OpenLabelFinder::FindInSum(Sum& sum,
                                                      TextPosition at) const {
  OpenLabels first;
  const Term* first_term = nullptr;
  for (Term& term : sum.terms) {
    TENSORD_ASSIGN_OR_RETURN(OpenLabels labels, Find(term));
    if (!term.has_labels) continue;
    if (first_term == nullptr) {
      first = std::move(labels);
      first_term = &term;
    } else {
      TENSORD_RETURN_IF_ERROR(
          CheckAlike(first, first_term->position, labels, term.position));
    }
  }
  if (first.size() > limits_.max_labels) {
    return ErrorAt(at, "PROGRAM_TOO_LONG", "what is in these parentheses has ",
                   first.size(), " labels, the limit is ", limits_.max_labels);
  }
  for (const Label* label : first) sum.labels.push_back(label->text);
  return first;
}

absl::StatusOr<OpenLabels> OpenLabelFinder::FindInCall(Call& call,
                                                       TextPosition at) const {
  OpenLabels all;
  absl::flat_hash_set<absl::string_view> there;
  for (Sum& argument : call.arguments) {
    TENSORD_ASSIGN_OR_RETURN(const OpenLabels labels, FindInSum(argument, at));
    for (const Label* label : labels) {
      if (label->text == call.taken) continue;
      if (there.insert(label->text).second) all.push_back(label);
    }
  }
  if (all.size() > limits_.max_labels) {
    return ErrorAt(at, "PROGRAM_TOO_LONG",
                   "the arguments of this function have ", all.size(),
                   " labels, the limit is ", limits_.max_labels);
  }
  for (const Label* label : all) call.labels.push_back(label->text);
  return all;
}

/// OK when a term's labels outside sums are the output's.
absl::Status CheckMatched(const TensorReference& output, const Places& places,
                          const OpenLabels& open, TextPosition term_at,
                          const OpenLabelFinder& finder, bool is_colon) {
  for (const Label* label : open) {
    if (finder.IsOutput(label->text)) continue;
    return ErrorAt(
        label->position, "LABEL_UNMATCHED", "label ", Quoted(label->text),
        " occurs once in this term and not in the output ", Quoted(output.name),
        is_colon ? ", whose [:] stands for negative integers" : "",
        ", wanted it in both, or twice in the term to be summed");
  }
  for (const Label& label : output.labels) {
    if (places.contains(label.text)) continue;
    return ErrorAt(
        label.position, "LABEL_UNMATCHED", "label ", Quoted(label.text),
        " of the output does not occur in the term at ",
        PlaceSeenFrom(label.position, term_at), ", wanted it in every term");
  }
  return absl::OkStatus();
}

absl::Status CheckDistinct(const Labels& labels) {
  absl::flat_hash_map<absl::string_view, TextPosition> seen;
  for (const Label& label : labels) {
    const auto [at, is_new] = seen.emplace(label.text, label.position);
    if (is_new) continue;
    return ErrorAt(label.position, "LABEL_REPEATED", "label ",
                   Quoted(label.text), " occurs twice in the output, first at ",
                   PlaceSeenFrom(label.position, at->second),
                   ", wanted it once");
  }
  return absl::OkStatus();
}

/// OK when each negative label occurs once in a term of a sum that goes to
/// `[:]`.
absl::Status CheckNegativesOnce(const Places& places) {
  const Place* earliest = nullptr;
  for (const auto& [text, place] : places) {
    const auto number = NumberOf(text);
    if (place.second == nullptr || !number || *number >= 0) continue;
    if (earliest == nullptr || IsBefore(place.second, earliest->second)) {
      earliest = &place;
    }
  }
  if (earliest == nullptr) return absl::OkStatus();
  const TextPosition at = earliest->second->position;
  return ErrorAt(at, "LABEL_REPEATED", "label ", Quoted(earliest->first->text),
                 " occurs twice in this term, first at ",
                 PlaceSeenFrom(at, earliest->first->position),
                 ", wanted negative labels once where the output is [:]");
}

/// Whether a tensor in `sum` has labels.
bool HasLabels(const Sum& sum) {
  return std::ranges::any_of(sum.terms, [](const Term& term) {
    return std::ranges::any_of(term.factors, [](const Factor& factor) {
      const auto* const tensor = std::get_if<TensorReference>(&factor.value);
      return (tensor != nullptr && !tensor->labels.empty()) ||
             std::ranges::any_of(factor.parts(), HasLabels);
    });
  });
}

/// What `[:]` stands for: the negative labels, -1 first.
Labels NegativeLabels(const Places& places, TextPosition colon) {
  std::vector<int64_t> numbers;
  for (const auto& [text, place] : places) {
    const auto number = NumberOf(text);
    if (number && *number < 0) numbers.push_back(*number);
  }
  std::ranges::sort(numbers, std::ranges::greater());
  Labels labels;
  for (const int64_t number : numbers) {
    labels.push_back({absl::StrCat(number), colon});
  }
  return labels;
}

/// The rules of a call: what occurs once in an argument, or in a result, is not
/// summed. Which labels a result must have is for the operation to say.
absl::Status ApplyToCall(const NotationLimits& limits, Statement& statement) {
  Labels labels;
  const std::vector<const TensorReference*> outputs = statement.outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorReference& output = *outputs[i];
    TENSORD_RETURN_IF_ERROR(CheckDistinct(output.labels));
    labels.insert(labels.end(), output.labels.begin(), output.labels.end());
    for (size_t before = 0; before < i; ++before) {
      if (outputs[before]->name != output.name) continue;
      return ErrorAt(output.position, "OUTPUT_REPEATED", "output ",
                     Quoted(output.name), " is named twice, first at ",
                     PlaceSeenFrom(output.position, outputs[before]->position),
                     ", wanted another name");
    }
  }
  const OpenLabelFinder finder(labels, limits);
  const auto is_output = [&](absl::string_view label) {
    return finder.IsOutput(label);
  };
  for (Sum& argument : statement.call->arguments) {
    for (Term& term : argument.terms) {
      TENSORD_RETURN_IF_ERROR(PlacesIn(term, 0, is_output).status());
    }
    TENSORD_RETURN_IF_ERROR(
        finder.FindInSum(argument, statement.call->position).status());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyLabelRules(std::optional<TextPosition> colon,
                             const NotationLimits& limits,
                             Statement& statement) {
  if (statement.call) {
    if (!colon) return ApplyToCall(limits, statement);
    return ErrorAt(*colon, "SYNTAX_ERROR",
                   "got ':', wanted the labels of what ",
                   NotationOf(*statement.call), "() makes");
  }
  TensorReference& output = statement.output;
  std::vector<Term>& terms = statement.value.terms;
  const auto is_output = [&](absl::string_view label) {
    if (colon) return NumberOf(label).value_or(0) < 0;
    return std::ranges::find(output.labels, label, &Label::text) !=
           output.labels.end();
  };
  std::vector<Places> places;  // (term)
  for (Term& term : terms) {
    TENSORD_ASSIGN_OR_RETURN(places.emplace_back(),
                             PlacesIn(term, 0, is_output));
    if (colon) TENSORD_RETURN_IF_ERROR(CheckNegativesOnce(places.back()));
  }
  // Of the term that shows which labels there are.
  const auto shown = std::ranges::find_if(
      places, [](const Places& in_term) { return !in_term.empty(); });
  const size_t first = shown == places.end() ? 0 : shown - places.begin();
  if (colon) output.labels = NegativeLabels(places[first], *colon);
  TENSORD_RETURN_IF_ERROR(CheckDistinct(output.labels));
  // One number for all elements of what there is.
  const bool is_filled = output.has_brackets &&
                         statement.assignment != Assignment::kCreate &&
                         !HasLabels(statement.value);
  const OpenLabelFinder finder(output.labels, limits);
  for (size_t i = 0; i < terms.size(); ++i) {
    TENSORD_ASSIGN_OR_RETURN(const OpenLabels open, finder.Find(terms[i]));
    if (!terms[i].has_labels && (i != first || is_filled)) continue;
    TENSORD_RETURN_IF_ERROR(CheckMatched(
        output, places[i], open, terms[i].position, finder, colon.has_value()));
    if (i != first) continue;
    for (const Label* label : open)
      statement.value.labels.push_back(label->text);
  }
  return absl::OkStatus();
}

}  // namespace tensord::core
