// What a load says of itself: to people, as JSON and as CSV.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/json.h"
#include "client/load/faults.h"
#include "client/load/load.h"
#include "client/load/mix.h"
#include "client/load/objective.h"

namespace tensord::load {

/// All that is known when a load has ended.
struct Report {
  LoadOptions options;
  Mix mix;
  std::string server_version;
  std::string device;
  LoadResult result;
  std::vector<Objective> objectives;
  std::map<FaultKind, FaultCounts> faults;

  Counts total() const;
  /// One for each objective.
  std::vector<Judgement> judgements() const;
};

/// Keys are documented in client/load/README.md.
cli::Json ToJson(const Report& report);

/// Lines of columns, and of what is worth a warning.
std::string ToText(const Report& report);

/// One line of what happened lately.
std::string ProgressLine(const IntervalRow& row, const LoadOptions& options);

/// The first line of the CSV, and one for each row.
std::string CsvHeader();
std::string CsvLine(const IntervalRow& row);

}  // namespace tensord::load
