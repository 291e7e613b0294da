#include "tensord/handle.h"

#include <utility>

#include "client/cpp/src/connection.h"

namespace tensord::internal {

Handle::Handle(std::shared_ptr<Connection> connection, std::string name,
               bool is_owned)
    : connection_(std::move(connection)),
      name_(std::move(name)),
      is_owned_(is_owned) {}

Handle::Handle(Handle&& other) noexcept
    : connection_(std::move(other.connection_)),
      name_(std::move(other.name_)),
      is_owned_(std::exchange(other.is_owned_, false)) {}

Handle& Handle::operator=(Handle&& other) noexcept {
  if (this == &other) return *this;
  Discard();
  connection_ = std::move(other.connection_);
  name_ = std::move(other.name_);
  is_owned_ = std::exchange(other.is_owned_, false);
  return *this;
}

Handle::~Handle() { Discard(); }

void Handle::Discard() {
  if (is_owned_) connection_->Discard(name_);
}

}  // namespace tensord::internal
