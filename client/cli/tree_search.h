// Searches for a contraction order that are kept in a file and gone on with.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensord/program.h"

namespace tensord::cli {

/// The order in the file `path`, as WriteTree() leaves it; nothing when there
/// is no such file.
///
/// Errors  INVALID_ARGUMENT: the file has something else.
absl::StatusOr<std::optional<PathStart>> ReadTree(const std::string& path);

/// Writes the order of the only product of `explanation` into `path`, whole or
/// not at all: an object of `steps`, `sliced`, `log10_flops`, `log2_largest`
/// and `slices`.
///
/// Errors  FAILED_PRECONDITION: there is no product of three factors, or there
///         are several. Those of writing.
absl::Status WriteTree(const ProgramExplanation& explanation,
                       const std::string& path);

/// Searches on from the order in `path` for as long as `options` say, in rounds
/// of ten seconds; after each keeps the order in the file and says on stderr
/// how far it has come. Ends before when rounds found nothing without taking
/// their time. Without a time, one round.
///
/// Errors  those of ReadTree(), WriteTree() and `explain`; INVALID_ARGUMENT:
///         there is an order, and `options` ask for a search that begins anew.
absl::StatusOr<ProgramExplanation> SearchTree(
    const std::string& path, ProgramOptions options,
    const std::function<
        absl::StatusOr<ProgramExplanation>(const ProgramOptions&)>& explain);

}  // namespace tensord::cli
