// Names of operators and types on the command line.
#pragma once

#include <map>
#include <string>

#include "tensord/element_type.h"
#include "tensord/operations.h"
#include "tensord/program.h"

namespace tensord::cli {

const std::map<std::string, UnaryOperator>& UnaryOperatorNames();
const std::map<std::string, BinaryOperator>& BinaryOperatorNames();
/// Those that reductions take, and those that element-wise operations take
/// between a and b.
const std::map<std::string, BinaryOperator>& ReducingOperatorNames();
const std::map<std::string, Sorting>& SortingNames();
const std::map<std::string, BinaryOperator>& JoiningOperatorNames();
const std::map<std::string, ComputeType>& ComputeTypeNames();
const std::map<std::string, PathMethod>& PathMethodNames();
const std::map<std::string, Selection>& SelectionNames();
const std::map<std::string, FactorizationMethod>& FactorizationMethodNames();
const std::map<std::string, MatrixStructure>& MatrixStructureNames();
/// What is computed of a matrix alone.
enum class MatrixFunction { kUnsaid, kInverse, kExponential };
const std::map<std::string, MatrixFunction>& MatrixFunctionNames();
const std::map<std::string, Absorb>& AbsorbNames();
const std::map<std::string, ElementType>& ElementTypeNames();

}  // namespace tensord::cli
