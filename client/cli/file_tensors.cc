#include "client/cli/file_tensors.h"

#include <complex>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/progress_bar.h"
#include "client/cli/text.h"

namespace tensord::cli {
namespace {

absl::StatusOr<RemoteTensor> Send(Session& session, const std::string& path,
                                  const UntypedHostView& view) {
  ProgressBar bar(absl::StrCat("upload ", path));
  UploadOptions options;
  options.progress = [&](int64_t done, int64_t total) {
    bar.Update(done, total);
  };
  return session.Upload(view, options);
}

absl::Status Fetch(const RemoteTensor& tensor, const std::string& path) {
  absl::StatusOr<NpyWriter> file =
      NpyWriter::Create(path, {.element_type = tensor.element_type(),
                               .extents = tensor.extents(),
                               .order = Order::kLastModeFastest});
  if (!file.ok()) return file.status();
  ProgressBar bar(absl::StrCat("download ", path));
  DownloadOptions options;
  options.progress = [&](int64_t done, int64_t total) {
    bar.Update(done, total);
  };
  const absl::Status status =
      tensor.DownloadTo(tensor.element_type(), file->data(), options);
  return status.ok() ? file->Commit() : status;
}

/// `float64 (2, 3)`.
std::string TensorText(const RemoteTensor& tensor) {
  return absl::StrCat(std::string(ToString(tensor.element_type())), " ",
                      ShapeText(tensor.extents()));
}

/// The value of a tensor without modes, when its type is one that prints; else
/// "".
std::string ValueText(const RemoteTensor& tensor) {
  const auto text = [&]<typename T>(T) -> std::string {
    const absl::StatusOr<std::vector<T>> value = tensor.Download<T>();
    if (!value.ok()) return "";
    const std::complex<double> number(value->front());
    if constexpr (std::is_same_v<T, std::complex<float>> ||
                  std::is_same_v<T, std::complex<double>>) {
      return absl::StrFormat("%.17g%+.17gj", number.real(), number.imag());
    }
    return absl::StrFormat("%.17g", number.real());
  };
  switch (tensor.element_type()) {
    case ElementType::kFloat32: return text(float{});
    case ElementType::kFloat64: return text(double{});
    case ElementType::kComplex64: return text(std::complex<float>{});
    case ElementType::kComplex128: return text(std::complex<double>{});
    case ElementType::kInt32: return text(int32_t{});
    default: return "";
  }
}

}  // namespace

int OpenInput(const std::string& argument, std::optional<InputFile>& input) {
  absl::StatusOr<IndexedFile> named = ParseIndexedFile(argument);
  if (!named.ok()) return FailUsage(std::string(named.status().message()));
  absl::StatusOr<NpyFile> file = NpyFile::Open(named->path);
  if (!file.ok()) return Fail(file.status());
  input = InputFile{*std::move(named), *std::move(file)};
  return kOk;
}

absl::StatusOr<PlacedFile> Place(Session& session, const InputFile& input,
                                 bool contents) {
  const UntypedHostView view = input.file.view();
  absl::StatusOr<RemoteTensor> whole =
      contents ? Send(session, input.named.path, view)
               : session.Create(view.element_type, view.layout);
  if (!whole.ok()) return whole.status();
  PlacedFile placed{*std::move(whole), std::nullopt};
  if (input.named.items) {
    absl::StatusOr<RemoteTensor> part = placed.whole.Index(*input.named.items);
    if (!part.ok()) return part.status();
    placed.part = *std::move(part);
  }
  return placed;
}

absl::StatusOr<absl::Duration> FetchAll(const std::vector<Fetched>& all) {
  absl::Duration writing;
  for (const Fetched& each : all) {
    if (each.path.empty()) continue;
    const absl::Time start = absl::Now();
    const absl::Status status = Fetch(*each.tensor, each.path);
    if (!status.ok()) return status;
    writing += absl::Now() - start;
  }
  for (const Fetched& each : all) {
    absl::PrintF("%-9s %s%s%s\n", each.name, TensorText(*each.tensor),
                 each.path.empty() ? "" : " -> ", each.path);
    if (each.tensor->mode_count() > 0) continue;
    const std::string value = ValueText(*each.tensor);
    if (!value.empty()) absl::PrintF("value     %s\n", value);
  }
  return writing;
}

}  // namespace tensord::cli
