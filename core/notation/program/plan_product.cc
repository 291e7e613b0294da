#include "core/notation/program/plan_product.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/notation/path/find_path.h"
#include "core/notation/path/symbolic.h"
#include "core/notation/program/mode_order.h"

namespace tensord::core {
namespace {

using Indices = Network::Indices;

/// The network of a product, and which index each of its numbers is.
class ProductNetwork {
 public:
  ProductNetwork(const IndexedTensor& d, const BoundTerm& term,
                 const Bindings& bindings, ProgramProduct& product)
      : d_(d), term_(term), bindings_(bindings), product_(product) {
    for (const BoundFactor& factor : term.factors) {
      std::vector<std::string>& labels = product.labels.emplace_back();
      for (const Mode index : factor.indices()) {
        labels.push_back(bindings.name(index));
      }
      product.network.inputs.push_back(NumbersOf(factor.indices()));
      product.factors.push_back(factor.text);
    }
    for (const Mode index : d.indices) {
      product.output_labels.push_back(bindings.name(index));
    }
    product.network.output = NumbersOf(d.indices);
  }

  int32_t NumberOf(Mode index) {
    const auto [at, is_new] =
        numbers_.try_emplace(index, static_cast<int32_t>(indices_.size()));
    if (is_new) {
      indices_.push_back(index);
      product_.network.extents.push_back(
          std::max<int64_t>(1, bindings_.extent(index)));
      product_.index_names.push_back(bindings_.name(index));
    }
    return at->second;
  }
  Indices NumbersOf(const Modes& indices) {
    Indices numbers;
    for (const Mode index : indices) numbers.push_back(NumberOf(index));
    return numbers;
  }
  Mode IndexOf(int32_t number) const { return indices_[number]; }
  Modes IndicesOf(const Indices& numbers) const {
    Modes indices;
    for (const int32_t number : numbers) indices.push_back(IndexOf(number));
    return indices;
  }

  /// Searches for the product's tree.
  absl::Status FindTree(const LoweringOptions& options, double max_peak_bytes);

 private:
  const IndexedTensor& d_;
  const BoundTerm& term_;
  const Bindings& bindings_;
  ProgramProduct& product_;
  absl::flat_hash_map<Mode, int32_t> numbers_;
  std::vector<Mode> indices_;  // (number)
};

/// The product of the same term in `like`; null where there is none. Scalars
/// decide which products occur again, so either may lack some.
const ProgramProduct* FindLike(const Program* like,
                               const ProgramProduct& product) {
  if (like == nullptr) return nullptr;
  const auto same =
      std::ranges::find(like->products, product.term, &ProgramProduct::term);
  return same != like->products.end() &&
                 same->network.inputs == product.network.inputs &&
                 same->network.output == product.network.output
             ? &*same
             : nullptr;
}

std::string BytesText(double bytes) {
  return bytes < 1e15 ? absl::StrCat(static_cast<int64_t>(bytes), " bytes")
                      : absl::StrCat(bytes, " bytes");
}

/// The best tree by `costs`, sliced to keep to `max_peak`.
absl::StatusOr<Path> SearchSymbolically(const Network& network,
                                        const SymbolicExtents& costs,
                                        double max_peak) {
  TENSORD_ASSIGN_OR_RETURN(SymbolicPath best,
                           FindSymbolicPath(network, costs.extents));
  TENSORD_ASSIGN_OR_RETURN(Path path,
                           SlicePath(network, std::move(best.tree), max_peak));
  path.method = PathMethod::kOptimal;
  return path;
}

absl::StatusOr<PathStart> StartOf(const Network& network,
                                  absl::Span<const std::string> index_names,
                                  const NamedStart& named) {
  PathStart start;
  TENSORD_ASSIGN_OR_RETURN(
      start.tree,
      TreeFromPositions(static_cast<int>(network.inputs.size()), named.steps));
  for (const std::string& label : named.sliced) {
    const auto at = std::ranges::find(index_names, label);
    const auto index = static_cast<int32_t>(at - index_names.begin());
    if (at == index_names.end() ||
        std::ranges::find(start.sliced, index) != start.sliced.end()) {
      return InvalidArgument(
          "PATH_MALFORMED", "the path slices '", label, "', ",
          at == index_names.end() ? "which the product does not have"
                                  : "more than once");
    }
    start.sliced.push_back(index);
  }
  return start;
}

absl::StatusOr<Path> Search(const Network& network,
                            absl::Span<const std::string> index_names,
                            absl::Span<const int32_t> order,
                            const std::optional<SymbolicExtents>& costs,
                            const LoweringOptions& options, double max_peak) {
  if (!options.given_path.empty()) {
    TENSORD_ASSIGN_OR_RETURN(
        ContractionTree tree,
        TreeFromPositions(static_cast<int>(network.inputs.size()),
                          options.given_path));
    return SlicePath(network, std::move(tree), max_peak);
  }
  if (!order.empty()) {
    return SlicePath(network, TreeFromIndexOrder(network, order), max_peak);
  }
  if (costs) return SearchSymbolically(network, *costs, max_peak);
  PathOptions search = options.path;
  search.max_peak = max_peak;
  if (!options.start.steps.empty()) {
    TENSORD_ASSIGN_OR_RETURN(search.start,
                             StartOf(network, index_names, options.start));
  }
  if (search.time_budget > absl::ZeroDuration()) {
    // Nothing would leave it to the search.
    search.time_budget = std::clamp(options.search_ends - absl::Now(),
                                    absl::Nanoseconds(1), search.time_budget);
  }
  return FindPath(network, search);
}

absl::Status ProductNetwork::FindTree(const LoweringOptions& options,
                                      double max_peak_bytes) {
  // What is in place already does not count: the result is d's.
  double d_elements = 1;
  for (const int64_t extent : d_.layout.extents) {
    d_elements *= static_cast<double>(extent);
  }
  const double element_bytes = static_cast<double>(SizeOf(term_.element_type));
  const Indices order =
      NumbersOf(Modes(term_.order.begin(), term_.order.end()));
  // Of two factors there is but one tree.
  std::optional<SymbolicExtents> costs;
  if (options.costs && term_.factors.size() > 2) {
    TENSORD_ASSIGN_OR_RETURN(costs,
                             ParseCosts(*options.costs, product_.index_names));
  }
  absl::StatusOr<Path> path =
      Search(product_.network, product_.index_names, order, costs, options,
             max_peak_bytes / element_bytes + d_elements);
  if (!path.ok() && ReasonOf(path.status()) == "PATH_MEMORY_LIMIT") {
    const double least = LeastPeakOf(path.status());
    return ResourceExhausted(
        "PATH_MEMORY_LIMIT", "no slicing of a product of ",
        term_.factors.size(),
        " factors keeps its intermediate results to the limit of ",
        BytesText(max_peak_bytes), "; the least that was found takes ",
        BytesText((least - d_elements) * element_bytes));
  }
  TENSORD_RETURN_IF_ERROR(path.status());
  if (costs) {
    product_.symbolic_cost =
        ToText(SymbolicCostOf(product_.network, path->tree, costs->extents),
               costs->variable);
  }
  product_.tree = std::move(path->tree);
  product_.sliced = std::move(path->sliced);
  product_.cost = path->cost;
  product_.method = std::string(NameOf(path->method));
  return absl::OkStatus();
}

}  // namespace

Modes ByStride(const IndexedTensor& tensor) {
  std::vector<std::pair<int64_t, Mode>> sorted;
  for (size_t m = 0; m < tensor.indices.size(); ++m) {
    sorted.emplace_back(tensor.layout.strides[m], tensor.indices[m]);
  }
  std::ranges::stable_sort(sorted, {}, [](const auto& x) { return x.first; });
  Modes order;
  for (const auto& [stride, index] : sorted) order.push_back(index);
  return order;
}

absl::StatusOr<PlannedProduct> PlanProduct(const IndexedTensor& d,
                                           const BoundTerm& term,
                                           const Bindings& bindings,
                                           const LoweringOptions& options,
                                           double max_peak_bytes) {
  PlannedProduct plan;
  ProgramProduct& product = plan.product;
  product.term = term.number;
  ProductNetwork network(d, term, bindings, product);
  if (const ProgramProduct* const known = FindLike(options.like, product)) {
    product.tree = known->tree;
    product.sliced = known->sliced;
    product.cost = known->cost;
    product.method = known->method;
    product.symbolic_cost = known->symbolic_cost;
  } else {
    TENSORD_RETURN_IF_ERROR(network.FindTree(options, max_peak_bytes));
  }
  std::vector<Indices> fixed;
  for (const BoundFactor& factor : term.factors) {
    fixed.push_back(factor.is_computed()
                        ? Indices()
                        : network.NumbersOf(ByStride(factor.tensor)));
  }
  for (const Indices& order : ModeOrders(product.network, product.tree, fixed,
                                         network.NumbersOf(ByStride(d)))) {
    plan.orders.push_back(network.IndicesOf(order));
  }
  for (const bool is_kept : {true, false}) {
    for (const int32_t number : product.sliced) {
      const Mode index = network.IndexOf(number);
      if ((PositionOf(index, d.indices) >= 0) != is_kept) continue;
      plan.sliced.push_back(index);
      plan.kept_slice_count += is_kept;
    }
  }
  return plan;
}

}  // namespace tensord::core
