#include "client/cli/tree_svg.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace tensord::cli {
namespace {

// Pixels.
constexpr double kRow = 64;
constexpr double kLine = 14;
constexpr double kMargin = 16;
constexpr double kCharacter = 7;
constexpr double kGap = 12;
constexpr size_t kLongestText = 28;  // characters

/// A node in the picture.
struct Box {
  double x = 0, y = 0;  // the middle of its first line
  std::string title, detail;
};

std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

std::string Shortened(std::string text) {
  if (text.size() <= kLongestText) return text;
  return text.replace(kLongestText - 3, text.npos, "...");
}

Box BoxOf(const TreeNode& node) {
  Box box;
  // A factor of a statement is called as it is written, with its labels.
  box.title = Shortened(
      node.name.ends_with(']')
          ? node.name
          : absl::StrCat(node.name, "[", absl::StrJoin(node.labels, ","), "]"));
  box.detail =
      Shortened(node.extents.empty() ? "1" : absl::StrJoin(node.extents, "x"));
  if (!node.children.empty()) {
    absl::StrAppend(&box.detail, absl::StrFormat(", %.4g flops", node.flops));
  }
  return box;
}

double Width(const Box& box) {
  return kCharacter *
         static_cast<double>(std::max(box.title.size(), box.detail.size()));
}

std::string Heading(const ProgramProduct& product) {
  std::string text = absl::StrFormat(
      "statement %d: %s, %.4g flops, largest result %.4g elements",
      product.statement, product.method, product.flops, product.largest);
  if (product.slice_count > 1) {
    absl::StrAppend(&text, ", ", product.slice_count, " slices by ",
                    absl::StrJoin(product.sliced, ","));
  }
  if (!product.symbolic_cost.empty()) {
    absl::StrAppend(&text, ", ", product.symbolic_cost, " multiplications");
  }
  return text;
}

/// Numbers of the factors from left to right.
std::vector<int> Factors(const ProgramProduct& product) {
  std::vector<int> factors;
  std::vector<int> left = {static_cast<int>(product.nodes.size()) - 1};
  while (!left.empty()) {
    const int number = left.back();
    left.pop_back();
    const std::vector<int>& children = product.nodes[number].children;
    if (children.empty()) factors.push_back(number);
    left.insert(left.end(), children.rbegin(), children.rend());
  }
  return factors;
}

/// Places the nodes of `product` to the right of `begin`.
std::vector<Box> Place(const ProgramProduct& product, double begin) {
  const std::vector<TreeNode>& nodes = product.nodes;
  std::vector<Box> boxes;
  for (const TreeNode& node : nodes) boxes.push_back(BoxOf(node));
  boxes.back().y = 2 * kMargin + kLine;
  for (size_t i = nodes.size(); i-- > 0;) {  // parents before children
    for (const int child : nodes[i].children) {
      boxes[child].y = boxes[i].y + kRow;
    }
  }
  for (const int factor : Factors(product)) {
    boxes[factor].x = begin + Width(boxes[factor]) / 2;
    begin += Width(boxes[factor]) + kGap;
  }
  for (size_t i = 0; i < nodes.size(); ++i) {  // children before parents
    const std::vector<int>& children = nodes[i].children;
    for (const int child : children) {
      boxes[i].x += boxes[child].x / static_cast<double>(children.size());
    }
  }
  return boxes;
}

void Draw(const ProgramProduct& product, const std::vector<Box>& boxes,
          std::string& svg) {
  for (size_t i = 0; i < boxes.size(); ++i) {
    for (const int child : product.nodes[i].children) {
      absl::StrAppendFormat(
          &svg,
          "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
          "stroke=\"#999\"/>\n",
          boxes[i].x, boxes[i].y + kLine + 4, boxes[child].x,
          boxes[child].y - kLine);
    }
  }
  for (const Box& box : boxes) {
    absl::StrAppendFormat(
        &svg,
        "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n"
        "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" "
        "fill=\"#555\">%s</text>\n",
        box.x, box.y, Escape(box.title), box.x, box.y + kLine,
        Escape(box.detail));
  }
}

}  // namespace

std::string TreeSvg(const std::vector<ProgramProduct>& products) {
  std::string drawn;
  double begin = kMargin, bottom = 0;
  for (const ProgramProduct& product : products) {
    const std::string heading = Heading(product);
    absl::StrAppendFormat(
        &drawn, "<text x=\"%.1f\" y=\"%.1f\" fill=\"#555\">%s</text>\n", begin,
        kMargin + 4, Escape(heading));
    const std::vector<Box> boxes = Place(product, begin);
    Draw(product, boxes, drawn);
    double end = begin + kCharacter * static_cast<double>(heading.size());
    for (const Box& box : boxes) {
      end = std::max(end, box.x + Width(box) / 2);
      bottom = std::max(bottom, box.y + kLine);
    }
    begin = end + 2 * kGap;
  }
  return absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
      "height=\"%.0f\" font-family=\"monospace\" font-size=\"12\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n%s</svg>\n",
      begin, bottom + kMargin, drawn);
}

}  // namespace tensord::cli
