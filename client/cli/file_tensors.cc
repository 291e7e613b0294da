#include "client/cli/file_tensors.h"

#include <complex>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

}  // namespace

absl::StatusOr<InputFile> OpenInput(IndexedFile named) {
  absl::StatusOr<NpyFile> file = NpyFile::Open(named.path);
  if (!file.ok()) return file.status();
  return InputFile{std::move(named), *std::move(file)};
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

std::string TensorText(const RemoteTensor& tensor) {
  return absl::StrCat(std::string(ToString(tensor.element_type())), " ",
                      ShapeText(tensor.extents()));
}

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

}  // namespace tensord::cli
