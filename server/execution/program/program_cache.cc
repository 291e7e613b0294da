#include "server/execution/program/program_cache.h"

#include <optional>
#include <type_traits>
#include <variant>

#include "absl/time/time.h"

namespace tensord::server {
namespace {

int64_t BytesOf(const std::pair<std::string, ProgramCache::Ref>& entry) {
  return static_cast<int64_t>(entry.first.size()) + entry.second->size_bytes();
}

/// Appends numbers and texts so that different ones never look alike.
class KeyWriter {
 public:
  template <typename Number>
  requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
  void Add(Number number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  void Add(absl::string_view text) {
    Add(text.size());
    bytes_.append(text.data(), text.size());
  }
  void Add(const core::Scalar& scalar) {
    Add(scalar.real);
    Add(scalar.imaginary);
  }
  template <typename Number>
  void AddAll(absl::Span<const Number> list) {
    Add(list.size());
    for (const Number& number : list) Add(number);
  }
  template <typename T>
  void Add(const std::optional<T>& value) {
    Add(value.has_value());
    if (value) Add(*value);
  }
  std::string Take() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

void AddSource(const ProgramSource& source, KeyWriter& key) {
  key.Add(source.index());
  if (const auto* text = std::get_if<std::string>(&source)) {
    key.Add(absl::string_view(*text));
  } else if (const auto* einsum = std::get_if<EinsumText>(&source)) {
    key.Add(absl::string_view(einsum->subscripts));
  } else {
    const auto& ncon = std::get<NconText>(source);
    key.Add(ncon.labels.size());
    for (const auto& labels : ncon.labels) {
      key.AddAll(absl::MakeConstSpan(labels));
    }
    key.AddAll(absl::MakeConstSpan(ncon.order));
    key.AddAll(absl::MakeConstSpan(ncon.output));
  }
}

}  // namespace

std::string ProgramKeyOf(const ProgramSource& source,
                         absl::Span<const core::NamedOperand> operands,
                         absl::Span<const ProgramOutputRequest> outputs,
                         const ProgramOptions& options,
                         absl::string_view device) {
  KeyWriter key;
  AddSource(source, key);
  key.Add(operands.size());
  for (const core::NamedOperand& operand : operands) {
    key.Add(absl::string_view(operand.name));
    key.Add(operand.scalar.has_value());
    if (operand.scalar) continue;
    key.Add(operand.element_type);
    key.AddAll(absl::MakeConstSpan(operand.layout.extents));
    key.AddAll(absl::MakeConstSpan(operand.layout.strides));
    key.Add(operand.alignment_bytes);
    key.Add(operand.is_constant);
  }
  key.Add(outputs.size());
  for (const ProgramOutputRequest& output : outputs) {
    key.Add(absl::string_view(output.name));
    key.Add(output.element_type);
    key.Add(output.order);
  }
  key.Add(options.order);
  key.Add(options.method);
  key.Add(absl::ToInt64Nanoseconds(options.time_budget));
  for (const auto* steps : {&options.given_path, &options.start.steps}) {
    key.Add(steps->size());
    for (const auto& positions : *steps) {
      key.AddAll(absl::MakeConstSpan(positions));
    }
  }
  key.Add(options.start.sliced.size());
  for (const std::string& label : options.start.sliced) {
    key.Add(absl::string_view(label));
  }
  key.Add(options.costs.has_value());
  key.Add(absl::string_view(options.costs.value_or("")));
  key.Add(options.memory_limit_bytes);
  key.Add(options.seed);
  key.Add(options.compute_type);
  key.Add(options.workspace_limit_bytes);
  key.Add(options.deterministic);
  key.Add(options.selection);
  key.Add(device);
  return std::move(key).Take();
}

ProgramCache::Ref ProgramCache::Find(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->second;
}

void ProgramCache::Add(std::string key, Ref program) {
  std::pair entry(std::move(key), std::move(program));
  const int64_t bytes = BytesOf(entry);
  if (bytes > byte_limit_) return;
  absl::MutexLock lock(&mutex_);
  if (by_key_.contains(entry.first)) return;
  byte_count_ += bytes;
  entries_.push_front(std::move(entry));
  by_key_.emplace(entries_.front().first, entries_.begin());
  while (byte_count_ > byte_limit_) DropLast();
}

void ProgramCache::DropLast() {
  byte_count_ -= BytesOf(entries_.back());
  by_key_.erase(entries_.back().first);
  entries_.pop_back();
}

int64_t ProgramCache::byte_count() const {
  absl::MutexLock lock(&mutex_);
  return byte_count_;
}

}  // namespace tensord::server
