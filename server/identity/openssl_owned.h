// Ends the life of what OpenSSL has made.
#pragma once

namespace tensord::server {

/// Deletes with `free`, e.g. std::unique_ptr<BIO, Freed<BIO_free>>.
template <auto free>
struct Freed {
  template <typename T>
  void operator()(T* x) const {
    free(x);
  }
};

}  // namespace tensord::server
