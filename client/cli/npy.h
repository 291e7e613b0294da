// NumPy's .npy files, mapped into memory rather than read or written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensord/element_type.h"
#include "tensord/layout.h"

namespace tensord::cli {

/// What the header of a .npy file says.
struct NpyHeader {
  ElementType element_type = ElementType::kUnspecified;
  std::vector<int64_t> extents;  // (mode)
  Order order = Order::kLastModeFastest;
  int64_t data_offset = 0;  // bytes
  bool big_endian = false;

  bool operator==(const NpyHeader&) const = default;
};

/// Reads the header at the front of `file`, of format 1, 2 or 3.
///
/// bfloat16, which NumPy itself lacks, is `<V2`: what NumPy writes for the
/// bfloat16 of ml_dtypes, which reads it back with `.view(ml_dtypes.bfloat16)`.
///
/// Errors  INVALID_ARGUMENT: not a .npy file, or an element type that tensord
///         does not have.
absl::StatusOr<NpyHeader> ParseNpyHeader(std::string_view file);

/// The front of a little-endian file of format 1, up to its data: `data_offset`
/// and `big_endian` are ignored. A header too long for format 1 is of format 2.
std::string MakeNpyHeader(const NpyHeader& header);

/// A file in memory, unmapped in the end.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* address, size_t size) : address_(address), size_(size) {}
  Mapping(Mapping&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Mapping();

  std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(address_), size_};
  }

 private:
  void* address_ = nullptr;
  size_t size_ = 0;
};

/// A .npy file that is read. It must not shrink meanwhile.
class NpyFile {
 public:
  /// Errors  NOT_FOUND and so on, as the system says; INVALID_ARGUMENT: as
  ///         ParseNpyHeader(), or a file cut short.
  static absl::StatusOr<NpyFile> Open(const std::string& path);

  /// Little-endian, whatever the file is.
  /// Lifetime  as this file's.
  UntypedHostView view() const;

 private:
  NpyFile(Mapping mapping, NpyHeader header)
      : mapping_(std::move(mapping)), header_(std::move(header)) {}

  Mapping mapping_;
  NpyHeader header_;
};

/// A .npy file that is written: filled through data(), it appears under its
/// name with Commit() and not at all without.
class NpyWriter {
 public:
  /// Errors  as the system says; RESOURCE_EXHAUSTED: the disk is full.
  static absl::StatusOr<NpyWriter> Create(const std::string& path,
                                          const NpyHeader& header);
  NpyWriter(NpyWriter&& other) noexcept;
  NpyWriter& operator=(NpyWriter&& other) = delete;
  ~NpyWriter();

  std::span<std::byte> data() const {
    return mapping_.bytes().subspan(data_offset_);
  }

  absl::Status Commit();

 private:
  NpyWriter(std::string path, std::string part, Mapping mapping,
            int64_t data_offset)
      : path_(std::move(path)),
        part_(std::move(part)),
        mapping_(std::move(mapping)),
        data_offset_(data_offset) {}

  std::string path_;
  std::string part_;  // what it is called until then; empty when done
  Mapping mapping_;
  int64_t data_offset_ = 0;
};

}  // namespace tensord::cli
