#include "client/cli/names.h"

namespace tensord::cli {

const std::map<std::string, UnaryOperator>& UnaryOperatorNames() {
  using Op = UnaryOperator;
  static const auto& names =
      *new std::map<std::string, UnaryOperator>{{"identity", Op::kIdentity},
                                                {"sqrt", Op::kSqrt},
                                                {"relu", Op::kRelu},
                                                {"conj", Op::kConj},
                                                {"rcp", Op::kRcp},
                                                {"sigmoid", Op::kSigmoid},
                                                {"tanh", Op::kTanh},
                                                {"exp", Op::kExp},
                                                {"log", Op::kLog},
                                                {"abs", Op::kAbs},
                                                {"neg", Op::kNeg},
                                                {"sin", Op::kSin},
                                                {"cos", Op::kCos},
                                                {"tan", Op::kTan},
                                                {"sinh", Op::kSinh},
                                                {"cosh", Op::kCosh},
                                                {"asin", Op::kAsin},
                                                {"acos", Op::kAcos},
                                                {"atan", Op::kAtan},
                                                {"asinh", Op::kAsinh},
                                                {"acosh", Op::kAcosh},
                                                {"atanh", Op::kAtanh},
                                                {"ceil", Op::kCeil},
                                                {"floor", Op::kFloor},
                                                {"mish", Op::kMish},
                                                {"swish", Op::kSwish},
                                                {"soft_plus", Op::kSoftPlus},
                                                {"soft_sign", Op::kSoftSign}};
  return names;
}

const std::map<std::string, BinaryOperator>& BinaryOperatorNames() {
  static const auto& names =
      *new std::map<std::string, BinaryOperator>{{"add", BinaryOperator::kAdd},
                                                 {"mul", BinaryOperator::kMul},
                                                 {"max", BinaryOperator::kMax},
                                                 {"min", BinaryOperator::kMin}};
  return names;
}

const std::map<std::string, ComputeType>& ComputeTypeNames() {
  static const auto& names = *new std::map<std::string, ComputeType>{
      {"float16", ComputeType::kFloat16}, {"bfloat16", ComputeType::kBfloat16},
      {"tf32", ComputeType::kTf32},       {"3xtf32", ComputeType::k3xTf32},
      {"float32", ComputeType::kFloat32}, {"float64", ComputeType::kFloat64},
      {"integer", ComputeType::kInteger}};
  return names;
}

const std::map<std::string, PathMethod>& PathMethodNames() {
  static const auto& names = *new std::map<std::string, PathMethod>{
      {"auto", PathMethod::kAuto},
      {"optimal", PathMethod::kOptimal},
      {"greedy", PathMethod::kGreedy},
      {"random-greedy", PathMethod::kRandomGreedy},
      {"partition", PathMethod::kPartition}};
  return names;
}

const std::map<std::string, Selection>& SelectionNames() {
  static const auto& names = *new std::map<std::string, Selection>{
      {"heuristic", Selection::kHeuristic},
      {"measure", Selection::kMeasure},
      {"incremental", Selection::kIncremental}};
  return names;
}

const std::map<std::string, FactorizationMethod>& FactorizationMethodNames() {
  static const auto& names = *new std::map<std::string, FactorizationMethod>{
      {"qr", FactorizationMethod::kQr}};
  return names;
}

const std::map<std::string, ElementType>& ElementTypeNames() {
  static const auto& names = *[] {
    auto* all = new std::map<std::string, ElementType>;
    for (int i = 1; i <= static_cast<int>(ElementType::kBool); ++i) {
      const auto element_type = static_cast<ElementType>(i);
      all->emplace(ToString(element_type), element_type);
    }
    return all;
  }();
  return names;
}

}  // namespace tensord::cli
