// One-shot operations on .npy files: upload, run, download.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tensord/operations.h"
#include "tensord/session.h"

namespace tensord::cli {

enum class OperationKind { kPermute, kReduce, kContract, kElementwise };

/// What the command line asks for.
struct OperationArguments {
  OperationKind kind = OperationKind::kPermute;
  bool explain = false;  // instead of running
  std::string subscripts;
  /// Files, perhaps with an index, in the order of the terms.
  std::vector<std::string> inputs;
  std::string padding;  // of a permutation, `1:2,0:3`; empty: none
  Scalar padding_value = 0;
  std::string output;  // file; empty: the result is dropped
  Scalar alpha = 1;
  std::optional<Scalar> beta;  // absent: 1 for what there is, else 0
  Scalar gamma = 1;
  UnaryOperator unary_a = UnaryOperator::kIdentity;
  UnaryOperator unary_b = UnaryOperator::kIdentity;
  UnaryOperator unary_c = UnaryOperator::kIdentity;
  BinaryOperator op = BinaryOperator::kAdd;     // of a reduction; a, b with c
  BinaryOperator op_ab = BinaryOperator::kMul;  // element-wise, a with b
  ExecutionOptions execution;
};

/// Prints to stdout what came of it and returns an exit code.
int RunOperation(const std::string& address, const SessionOptions& options,
                 const OperationArguments& arguments);

}  // namespace tensord::cli
