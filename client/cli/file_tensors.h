// Tensors out of .npy files, and back.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/indexed_file.h"
#include "client/cli/npy.h"
#include "tensord/session.h"

namespace tensord::cli {

/// A .npy file of the command line, and which part of it is meant.
struct InputFile {
  IndexedFile named;
  NpyFile file;
};

/// Errors  those of NpyFile::Open().
absl::StatusOr<InputFile> OpenInput(IndexedFile named);

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

/// Writes all elements to the .npy file `path`, in C order.
absl::Status Fetch(const RemoteTensor& tensor, const std::string& path);

/// `float64 (2, 3)`.
std::string TensorText(const RemoteTensor& tensor);

/// The value of a tensor without modes, when its type is one that prints; else
/// "".
std::string ValueText(const RemoteTensor& tensor);

}  // namespace tensord::cli
