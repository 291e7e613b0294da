// Tensors out of .npy files, and back.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/indexed_file.h"
#include "client/cli/npy.h"
#include "tensord/operations.h"
#include "tensord/session.h"

namespace tensord::cli {

/// A .npy file of the command line, and which part of it is meant.
struct InputFile {
  IndexedFile named;
  NpyFile file;
};

/// Opens the file that `argument` names, `a.npy[1:5]`. Returns an exit code,
/// and has said on stderr what is wrong.
int OpenInput(const std::string& argument, std::optional<InputFile>& input);

/// A file's tensor on the server.
struct PlacedFile {
  RemoteTensor whole;
  std::optional<RemoteTensor> part;  // the index's

  const RemoteTensor& tensor() const { return part ? *part : whole; }
};

/// Uploads `input` and shows how far it has come. Without `contents` it only
/// makes a tensor like it.
absl::StatusOr<PlacedFile> Place(Session& session, const InputFile& input,
                                 bool contents);

/// A tensor by the name that it is shown by.
struct Fetched {
  std::string name;
  const RemoteTensor* tensor;
  std::string path;  // the .npy file that it goes to; "": none
};

/// Writes all elements into the files, in C order, and prints a line for each
/// tensor. Returns how long writing took, 0 without files.
absl::StatusOr<absl::Duration> FetchAll(const std::vector<Fetched>& all);

// What is printed of an operation on them, see operation_report.cc. Both return
// an exit code, and have said on stderr what is wrong.

int PrintExplanation(const absl::StatusOr<Explanation>& explained);
/// Writes files and says what came of the operation.
int Finish(const std::vector<Fetched>& all, absl::Duration uploading);

}  // namespace tensord::cli
