// A program as it is carried out: operations on tensors, one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/base/element_type.h"
#include "core/base/layout.h"
#include "core/notation/path/network.h"
#include "core/notation/syntax.h"
#include "core/ops/any_desc.h"
#include "core/ops/scalar.h"

namespace tensord::core {

/// A tensor that steps of a program read or write.
struct ProgramTensor {
  enum class Place {
    kOperand,    // the client's; `number` counts operands
    kOutput,     // made for the client; `number` counts outputs
    kTemporary,  // in the arena, at `arena_offset_bytes`
    kConstant,   // likewise, one element, which is filled first
    kKept,       // between executions, at `kept_offset_bytes`
  };

  Place place = Place::kTemporary;
  int32_t number = -1;
  std::string name;  // as written; of a temporary "t1" and so on
  ElementType element_type = ElementType::kFloat32;
  Layout layout;
  int64_t alignment_bytes = 256;  // of the first element's address
  int64_t arena_offset_bytes = -1;
  int64_t kept_offset_bytes = -1;
  ElementBytes value = {};  // of a constant
  Scalar scalar;            // likewise, for people
};

/// Where an operand of a step begins.
struct StepOperand {
  int32_t tensor = -1;       // -1: the operation has no such operand
  int64_t offset = 0;        // elements from the tensor's first
  ModeVector slice_strides;  // (slice), elements; empty: the same in all slices

  bool operator==(const StepOperand&) const = default;
};

/// Where a function of whole tensors is called, or elements are taken, and what
/// the operands are, in front of messages that call them a and b.
struct StepPlace {
  TextPosition position;
  std::string roles;  // as RolesOf() has them, or like it
};

/// One operation. d's addend is d itself, if there is one.
struct ProgramStep {
  AnyDesc desc;  // valid; its modes are numbers of Program::index_names
  StepOperand a, b, c, d;
  std::vector<StepOperand> others;  // results behind the first, d
  Scalar alpha = kOne;
  Scalar beta = kZero;             // of c in reductions and contractions
  Scalar gamma = kZero;            // of c in element-wise operations
  Truncation truncation;           // of an SVD
  int32_t kept = -1;               // of Program::kept_extents; of an SVD
  std::optional<StepPlace> place;  // of what may refuse elements
  /// In the slices of a block that are summed, all but the first add to d.
  bool accumulates = false;
  int32_t statement = 0;
  double flops = 0;  // as TreeCost has them, of one slice

  /// Those that it has.
  absl::InlinedVector<const StepOperand*, 3> inputs() const;
  absl::InlinedVector<const StepOperand*, kMostResults> outputs() const;
};

/// Steps that are carried out once for every slice: each combination of values
/// of some indices, the last one fastest.
struct ProgramBlock {
  ModeVector slice_extents;      // (slice); empty: once
  int32_t kept_slice_count = 0;  // of d, the first ones; others are summed
  /// Left out of an execution for which its results are kept.
  bool is_folded = false;
  std::vector<ProgramStep> steps;

  int64_t slice_count() const;
};

/// How the products of a program are contracted, for people.
struct ProgramProduct {
  int32_t statement = 0;
  int32_t term = 0;                              // BoundTerm::number
  std::vector<std::string> factors;              // (input)
  std::vector<std::vector<std::string>> labels;  // (input)(mode)
  std::vector<std::string> output_labels;        // (mode)
  Network network;
  std::vector<std::string> index_names;  // (index of the network)
  ContractionTree tree;
  std::vector<int32_t> sliced;  // indices of the network
  TreeCost cost;
  std::string method;
  std::string symbolic_cost;  // in terms of a variable; empty: not asked for
  int32_t result = -1;        // of Program::tensors
  bool is_computed = true;    // false: nobody reads it
};

/// How many singular values an SVD keeps: of which statement, and along which
/// of its labels.
struct KeptExtent {
  int32_t statement = 0;
  std::string label;
};

/// What is known of a program before it runs.
///
/// Threads  immutable; share freely.
struct Program {
  std::vector<ProgramTensor> tensors;
  std::vector<ProgramBlock> blocks;      // in order
  std::vector<ProgramProduct> products;  // of three factors and more
  std::vector<std::string> index_names;
  std::vector<int32_t> outputs;       // (output), of `tensors`
  std::vector<int32_t> operands;      // (operand), of `tensors`; -1: a scalar
  std::vector<bool> operand_read;     // (operand): needs contents
  std::vector<bool> operand_written;  // (operand)
  // What is computed of constant operands alone: by the first block, which is
  // the one that is folded, if there is anything.
  std::vector<bool> operand_constant;     // (operand)
  std::vector<bool> operand_folded;       // (operand): folded steps read it
  std::vector<bool> operand_only_folded;  // (operand): and no others
  int64_t kept_bytes = 0;                 // of tensors that are kept
  int64_t arena_bytes = 0;                // of temporaries, at the same time
  std::vector<KeptExtent> kept_extents;   // (SVD)
  double flops = 0;                       // of all steps in all slices
  bool keeps_values = true;               // what occurs again is computed once

  bool has_folded_block() const {
    return !blocks.empty() && blocks.front().is_folded;
  }
};

}  // namespace tensord::core
