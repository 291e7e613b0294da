#include "core/view/make_gather_steps.h"

#include <functional>
#include <map>
#include <utility>

#include "core/base/status.h"

namespace tensord::core {
namespace {

/// Writes sums as steps, each atom once.
class StepWriter {
 public:
  explicit StepWriter(int64_t element_count) {
    steps_.element_count = element_count;
  }

  void WriteCondition(const IndexCondition& condition) {
    const Terms terms = WriteAtoms(condition.sum);
    WriteStep(GatherSteps::kRequire, condition.sum.constant, condition.limit,
              terms);
  }

  void WriteSum(const IndexSum& sum) {
    const Terms terms = WriteAtoms(sum);
    WriteStep(GatherSteps::kSum, sum.constant, 0, terms);
  }

  bool fits() const { return fits_; }
  const GatherSteps& steps() const { return steps_; }

 private:
  using Terms = std::vector<std::pair<Wide, int>>;  // factor, value

  struct ComesBefore {
    bool operator()(const IndexAtom* x, const IndexAtom* y) const {
      return Compare(*x, *y) < 0;
    }
  };

  Terms WriteAtoms(const IndexSum& sum) {
    Terms terms;
    for (const IndexTerm& term : sum.terms) {
      terms.emplace_back(term.factor, WriteAtom(*term.atom));
    }
    return terms;
  }

  /// Which value the atom is.
  int WriteAtom(const IndexAtom& atom) {
    if (atom.kind == IndexAtom::Kind::kIndex) return 0;
    const auto known = values_.find(&atom);
    if (known != values_.end()) return known->second;
    std::vector<Terms> operands;
    for (const IndexSum& operand : atom.operands) {
      operands.push_back(WriteAtoms(operand));
    }
    int value = 0;
    if (atom.kind == IndexAtom::Kind::kQuotient) {
      value = WriteStep(GatherSteps::kQuotient, atom.operands[0].constant,
                        atom.divisor, operands[0]);
    } else {
      for (size_t i = 0; i < operands.size(); ++i) {
        value = WriteStep(i == 0 ? GatherSteps::kSum : GatherSteps::kXor,
                          atom.operands[i].constant, 0, operands[i]);
      }
    }
    values_.emplace(&atom, value);
    return value;
  }

  int WriteStep(GatherSteps::Kind kind, Wide constant, int64_t number,
                const Terms& terms) {
    const int step = steps_.step_count;
    fits_ = fits_ && step < GatherSteps::kMaxSteps &&
            term_count_ + terms.size() <= GatherSteps::kMaxTerms;
    if (!fits_) return 0;
    for (const auto& [factor, value] : terms) {
      // Modulo 2^64, as the steps are taken.
      steps_.factors[term_count_] = static_cast<int64_t>(factor);
      steps_.values[term_count_++] = static_cast<uint8_t>(value);
    }
    steps_.kinds[step] = kind;
    steps_.constants[step] = static_cast<int64_t>(constant);
    steps_.numbers[step] = number;
    steps_.term_ends[step] = static_cast<uint8_t>(term_count_);
    return ++steps_.step_count;
  }

  GatherSteps steps_ = {};
  size_t term_count_ = 0;
  bool fits_ = true;
  std::map<const IndexAtom*, int, ComesBefore> values_;
};

/// All modes of the view as one.
Stage MergeAll(const View& view, Order order) {
  PlacedTransform merge{transform::Merge{order}, {}, {0}};
  for (int mode = 0; mode < view.mode_count(); ++mode) {
    merge.lower.push_back(mode);
  }
  return {{std::move(merge)}};
}

}  // namespace

absl::StatusOr<GatherSteps> MakeGatherSteps(const View& view, Order order) {
  TENSORD_ASSIGN_OR_RETURN(const View merged, view.Then(MergeAll(view, order)));
  StepWriter writer(merged.element_count());
  if (merged.is_padding()) {
    writer.WriteCondition({{-1, {}}, 0});
  }
  for (const IndexCondition& condition : merged.conditions()) {
    writer.WriteCondition(condition);
  }
  writer.WriteSum(merged.address());
  if (!writer.fits()) {
    return Unimplemented("VIEW_TOO_COMPLEX", "the view with extents ",
                         ToString(view.extents()), " takes more than ",
                         GatherSteps::kMaxSteps, " steps or ",
                         GatherSteps::kMaxTerms,
                         " terms to read; copy the view before its last "
                         "stages into a tensor");
  }
  return writer.steps();
}

}  // namespace tensord::core
