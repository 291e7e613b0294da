// A tensor that is part of a message.
#pragma once

#include "absl/strings/string_view.h"
#include "core/base/element_type.h"
#include "core/base/layout.h"

namespace tensord::server {

/// A tensor sent with the request. `data` is the memory from the first to the
/// last element and must outlive the request.
struct InlineTensor {
  core::ElementType element_type;
  core::Layout layout;
  absl::string_view data;
};

}  // namespace tensord::server
