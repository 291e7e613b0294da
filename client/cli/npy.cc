#include "client/cli/npy.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tensord::cli {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kAlignment = 64;  // of the data, as NumPy has it

struct Code {
  std::string_view text;
  ElementType element_type;
};

constexpr std::array<Code, 12> kCodes = {{{"<f2", ElementType::kFloat16},
                                          {"<V2", ElementType::kBfloat16},
                                          {"<f4", ElementType::kFloat32},
                                          {"<f8", ElementType::kFloat64},
                                          {"<c8", ElementType::kComplex64},
                                          {"<c16", ElementType::kComplex128},
                                          {"|i1", ElementType::kInt8},
                                          {"<i2", ElementType::kInt16},
                                          {"<i4", ElementType::kInt32},
                                          {"<i8", ElementType::kInt64},
                                          {"|u1", ElementType::kUint8},
                                          {"|b1", ElementType::kBool}}};

absl::Status NotNpy(std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "not a .npy file: ", absl::string_view(why.data(), why.size())));
}

/// Walks through the Python literal that a header is.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  bool Take(char wanted) {
    Skip();
    if (text_.empty() || text_.front() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }

  bool TakeWord(std::string_view wanted) {
    Skip();
    if (!text_.starts_with(wanted)) return false;
    text_.remove_prefix(wanted.size());
    return true;
  }

  std::optional<std::string_view> TakeString() {
    Skip();
    if (text_.empty()) return std::nullopt;
    const char quote = text_.front();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const size_t end = text_.find(quote, 1);
    if (end == text_.npos) return std::nullopt;
    const std::string_view content = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return content;
  }

  std::optional<int64_t> TakeNumber() {
    Skip();
    int64_t value = 0;
    const auto [end, error] =
        std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) return std::nullopt;
    text_.remove_prefix(end - text_.data());
    return value;
  }

 private:
  void Skip() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n')) {
      text_.remove_prefix(1);
    }
  }

  std::string_view text_;
};

absl::Status ParseCode(std::string_view code, NpyHeader& header) {
  for (const Code& known : kCodes) {
    if (code.size() != known.text.size() ||
        code.substr(1) != known.text.substr(1)) {
      continue;
    }
    // '=' is the machine's own order; one byte has none, and a void neither.
    const bool has_order = code[1] != 'V' && known.text[0] == '<';
    if (code[0] == '<' || code[0] == '|' || code[0] == '=' ||
        (code[0] == '>' && has_order)) {
      header.element_type = known.element_type;
      header.big_endian = code[0] == '>';
      return absl::OkStatus();
    }
  }
  std::vector<std::string> wanted;
  for (const Code& known : kCodes) wanted.emplace_back(known.text);
  return absl::InvalidArgumentError(absl::StrCat(
      "elements of type '", absl::string_view(code.data(), code.size()),
      "' are not supported, wanted one of ", absl::StrJoin(wanted, " ")));
}

absl::StatusOr<std::vector<int64_t>> ParseShape(Cursor& cursor) {
  std::vector<int64_t> extents;
  if (!cursor.Take('(')) return NotNpy("its shape is not a tuple");
  while (!cursor.Take(')')) {
    const std::optional<int64_t> extent = cursor.TakeNumber();
    if (!extent.has_value()) return NotNpy("an extent is not a number");
    extents.push_back(*extent);
    cursor.Take(',');
  }
  return extents;
}

absl::StatusOr<NpyHeader> ParseDictionary(std::string_view text) {
  NpyHeader header;
  Cursor cursor(text);
  bool has_order = false;
  bool has_shape = false;
  if (!cursor.Take('{')) return NotNpy("its header is not a dictionary");
  while (!cursor.Take('}')) {
    const std::optional<std::string_view> key = cursor.TakeString();
    if (!key.has_value() || !cursor.Take(':')) {
      return NotNpy("its header is not a dictionary");
    }
    if (*key == "descr") {
      const std::optional<std::string_view> code = cursor.TakeString();
      if (!code.has_value()) {
        return absl::InvalidArgumentError(
            "arrays of structures are not supported");
      }
      const absl::Status parsed = ParseCode(*code, header);
      if (!parsed.ok()) return parsed;
    } else if (*key == "fortran_order") {
      if (cursor.TakeWord("True")) {
        header.order = Order::kFirstModeFastest;
      } else if (!cursor.TakeWord("False")) {
        return NotNpy("fortran_order is neither True nor False");
      }
      has_order = true;
    } else if (*key == "shape") {
      absl::StatusOr<std::vector<int64_t>> extents = ParseShape(cursor);
      if (!extents.ok()) return extents.status();
      header.extents = *std::move(extents);
      has_shape = true;
    } else {
      return NotNpy("its header has an unknown key");
    }
    cursor.Take(',');
  }
  if (header.element_type == ElementType::kUnspecified || !has_order ||
      !has_shape) {
    return NotNpy("its header lacks descr, fortran_order or shape");
  }
  return header;
}

absl::Status SystemError(std::string_view what, const std::string& path) {
  const int error = errno;
  return absl::ErrnoToStatus(
      error,
      absl::StrCat("cannot ", absl::string_view(what.data(), what.size()), " ",
                   path));
}

/// Reverses the bytes of every number in `data`.
void SwapBytes(ElementType element_type, std::span<std::byte> data) {
  const bool is_complex = element_type == ElementType::kComplex64 ||
                          element_type == ElementType::kComplex128;
  const int64_t size = ElementBytes(element_type) / (is_complex ? 2 : 1);
  for (auto at = data.begin(); at != data.end(); at += size) {
    std::reverse(at, at + size);
  }
}

/// Closes a file with its scope.
struct File {
  int descriptor;
  ~File() {
    if (descriptor >= 0) close(descriptor);
  }
};

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyHeader(std::string_view file) {
  if (!file.starts_with(kMagic) || file.size() < 12) {
    return NotNpy("it does not begin like one");
  }
  const int version = static_cast<unsigned char>(file[6]);
  if (version < 1 || version > 3) {
    return absl::InvalidArgumentError(absl::StrCat(
        ".npy format ", version, " is not supported, wanted 1, 2 or 3"));
  }
  const size_t length_bytes = version == 1 ? 2 : 4;
  uint32_t length = 0;
  std::memcpy(&length, file.data() + 8, length_bytes);
  const size_t start = 8 + length_bytes;
  if (file.size() < start || file.size() - start < length) {
    return NotNpy("its header is cut short");
  }
  absl::StatusOr<NpyHeader> header =
      ParseDictionary(file.substr(start, length));
  if (header.ok()) {
    header->data_offset = static_cast<int64_t>(start + length);
  }
  return header;
}

std::string MakeNpyHeader(const NpyHeader& header) {
  std::string_view code;
  for (const Code& known : kCodes) {
    if (known.element_type == header.element_type) code = known.text;
  }
  std::string text =
      absl::StrCat("{'descr': '", absl::string_view(code.data(), code.size()),
                   "', 'fortran_order': ",
                   header.order == Order::kFirstModeFastest ? "True" : "False",
                   ", 'shape': (", absl::StrJoin(header.extents, ", "),
                   header.extents.size() == 1 ? ",), }" : "), }");
  const auto padded = [&](size_t front) {
    const size_t end = front + text.size() + 1;
    return text.size() + 1 + (kAlignment - end % kAlignment) % kAlignment;
  };
  const int version = padded(10) <= UINT16_MAX ? 1 : 2;
  const size_t front = version == 1 ? 10 : 12;
  const auto length = static_cast<uint32_t>(padded(front));
  text.resize(length - 1, ' ');
  text.push_back('\n');

  std::string file(kMagic);
  file.push_back(static_cast<char>(version));
  file.push_back('\0');
  file.append(reinterpret_cast<const char*>(&length), front - 8);
  return file + text;
}

Mapping::~Mapping() {
  if (address_ != nullptr) munmap(address_, size_);
}

absl::StatusOr<NpyFile> NpyFile::Open(const std::string& path) {
  const File file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat stat;
  if (file.descriptor < 0 || fstat(file.descriptor, &stat) != 0) {
    return SystemError("open", path);
  }
  if (!S_ISREG(stat.st_mode) || stat.st_size == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a .npy file: empty, or not a file at all"));
  }
  const auto size = static_cast<size_t>(stat.st_size);
  void* address =
      mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor, 0);
  if (address == MAP_FAILED) return SystemError("map", path);
  Mapping mapping(address, size);

  absl::StatusOr<NpyHeader> header = ParseNpyHeader(
      {reinterpret_cast<const char*>(mapping.bytes().data()), size});
  if (!header.ok()) {
    return absl::Status(header.status().code(),
                        absl::StrCat(path, ": ", header.status().message()));
  }
  const int64_t elements = ElementCount(header->extents);
  int64_t data_bytes = 0;
  if (elements < 0 ||
      __builtin_mul_overflow(elements, ElementBytes(header->element_type),
                             &data_bytes) ||
      data_bytes > static_cast<int64_t>(size) - header->data_offset) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": cut short: its shape is (",
        absl::StrJoin(header->extents, ", "), "), but it has only ",
        static_cast<int64_t>(size) - header->data_offset, " bytes of data"));
  }
  if (header->big_endian) {
    // The mapping is private: what changes is a copy.
    if (mprotect(address, size, PROT_READ | PROT_WRITE) != 0) {
      return SystemError("map", path);
    }
    SwapBytes(header->element_type,
              mapping.bytes().subspan(static_cast<size_t>(header->data_offset),
                                      static_cast<size_t>(data_bytes)));
  }
  return NpyFile(std::move(mapping), *std::move(header));
}

UntypedHostView NpyFile::view() const {
  return {header_.element_type,
          mapping_.bytes().data() + header_.data_offset,
          {header_.extents, {}, header_.order}};
}

absl::StatusOr<NpyWriter> NpyWriter::Create(const std::string& path,
                                            const NpyHeader& header) {
  const std::string front = MakeNpyHeader(header);
  const auto size =
      static_cast<int64_t>(front.size()) +
      ElementCount(header.extents) * ElementBytes(header.element_type);
  std::string part = absl::StrCat(path, ".part-", getpid());
  const File file{
      open(part.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
  if (file.descriptor < 0) return SystemError("create", part);
  NpyWriter writer(path, std::move(part), Mapping(),
                   static_cast<int64_t>(front.size()));
  // Writing to a mapping of a file without its blocks would be fatal.
  if (const int error = posix_fallocate(file.descriptor, 0, size)) {
    errno = error;
    return SystemError("write", path);
  }
  void* address = mmap(nullptr, static_cast<size_t>(size),
                       PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor, 0);
  if (address == MAP_FAILED) return SystemError("map", path);
  writer.mapping_ = Mapping(address, static_cast<size_t>(size));
  std::memcpy(address, front.data(), front.size());
  return writer;
}

NpyWriter::NpyWriter(NpyWriter&& other) noexcept
    : path_(std::move(other.path_)),
      part_(std::exchange(other.part_, {})),
      mapping_(std::move(other.mapping_)),
      data_offset_(other.data_offset_) {}

NpyWriter::~NpyWriter() {
  if (!part_.empty()) unlink(part_.c_str());
}

absl::Status NpyWriter::Commit() {
  if (std::rename(part_.c_str(), path_.c_str()) != 0) {
    return SystemError("write", path_);
  }
  part_.clear();
  return absl::OkStatus();
}

}  // namespace tensord::cli
