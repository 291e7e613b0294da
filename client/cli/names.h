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
const std::map<std::string, ComputeType>& ComputeTypeNames();
const std::map<std::string, PathMethod>& PathMethodNames();
const std::map<std::string, Selection>& SelectionNames();
const std::map<std::string, FactorizationMethod>& FactorizationMethodNames();
const std::map<std::string, ElementType>& ElementTypeNames();

}  // namespace tensord::cli
