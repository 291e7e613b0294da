// What handles of tensors, plans and programs have in common.
#pragma once

#include <memory>
#include <string>

namespace tensord::internal {

class Connection;

/// Something with a name on a server, which leaves it with this handle. Keeps
/// the session open.
///
/// Owner     whoever holds it; a moved-from handle holds nothing.
/// Lifetime  may outlive the Session that made it.
class Handle {
 public:
  /// If not `is_owned`, it stays.
  Handle(std::shared_ptr<Connection> connection, std::string name,
         bool is_owned);
  Handle(Handle&& other) noexcept;
  Handle& operator=(Handle&& other) noexcept;
  ~Handle();

  const std::shared_ptr<Connection>& connection() const { return connection_; }
  bool is_owned() const { return is_owned_; }

  /// Leaves it on the server.
  void Release() { is_owned_ = false; }

 private:
  void Discard();

  std::shared_ptr<Connection> connection_;
  std::string name_;
  bool is_owned_;
};

}  // namespace tensord::internal
