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
                                                {"soft_sign", Op::kSoftSign},
                                                {"real", Op::kReal},
                                                {"imag", Op::kImag}};
  return names;
}

const std::map<std::string, BinaryOperator>& BinaryOperatorNames() {
  using Op = BinaryOperator;
  static const auto& names = *new std::map<std::string, BinaryOperator>{
      {"add", Op::kAdd},         {"mul", Op::kMul},
      {"max", Op::kMax},         {"min", Op::kMin},
      {"div", Op::kDiv},         {"pow", Op::kPow},
      {"equal", Op::kEqual},     {"not_equal", Op::kNotEqual},
      {"less", Op::kLess},       {"less_equal", Op::kLessEqual},
      {"greater", Op::kGreater}, {"greater_equal", Op::kGreaterEqual},
      {"where", Op::kWhere},     {"take", Op::kTake}};
  return names;
}

namespace {

/// Those up to `last`.
std::map<std::string, BinaryOperator> NamesUpTo(BinaryOperator last) {
  std::map<std::string, BinaryOperator> names = BinaryOperatorNames();
  std::erase_if(names, [last](const auto& name) { return name.second > last; });
  return names;
}

}  // namespace

const std::map<std::string, BinaryOperator>& ReducingOperatorNames() {
  static const auto& names = *new std::map<std::string, BinaryOperator>(
      NamesUpTo(BinaryOperator::kMin));
  return names;
}

const std::map<std::string, BinaryOperator>& JoiningOperatorNames() {
  static const auto& names = *new std::map<std::string, BinaryOperator>(
      NamesUpTo(BinaryOperator::kPow));
  return names;
}

const std::map<std::string, Sorting>& SortingNames() {
  static const auto& names = *new std::map<std::string, Sorting>{
      {"ascending", Sorting::kAscending}, {"descending", Sorting::kDescending}};
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
      {"qr", FactorizationMethod::kQr},
      {"lq", FactorizationMethod::kLq},
      {"svd", FactorizationMethod::kSvd},
      {"eigh", FactorizationMethod::kEigh},
      {"cholesky", FactorizationMethod::kCholesky}};
  return names;
}

const std::map<std::string, MatrixStructure>& MatrixStructureNames() {
  static const auto& names = *new std::map<std::string, MatrixStructure>{
      {"general", MatrixStructure::kGeneral},
      {"lower-triangular", MatrixStructure::kLowerTriangular},
      {"upper-triangular", MatrixStructure::kUpperTriangular},
      {"hermitian", MatrixStructure::kHermitian},
      {"positive-definite", MatrixStructure::kPositiveDefinite}};
  return names;
}

const std::map<std::string, MatrixFunction>& MatrixFunctionNames() {
  static const auto& names = *new std::map<std::string, MatrixFunction>{
      {"inverse", MatrixFunction::kInverse},
      {"exponential", MatrixFunction::kExponential}};
  return names;
}

const std::map<std::string, Absorb>& AbsorbNames() {
  static const auto& names =
      *new std::map<std::string, Absorb>{{"none", Absorb::kNone},
                                         {"left", Absorb::kLeft},
                                         {"right", Absorb::kRight},
                                         {"both", Absorb::kBoth}};
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
