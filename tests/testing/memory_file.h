// Files in memory, good and bad, and packets that bring them.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "server/shared_memory/local_socket.h"

namespace tensord::testing {

struct MemoryFileOptions {
  int64_t bytes = 4096;
  int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  bool is_allocated = true;
};

/// A descriptor of one.
inline shared_memory::Descriptor MemoryFile(
    const MemoryFileOptions& options = {}) {
  shared_memory::Descriptor file(
      memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (options.is_allocated) {
    if (fallocate(file.get(), 0, 0, options.bytes) != 0) return {};
  } else if (ftruncate(file.get(), options.bytes) != 0) {
    return {};
  }
  if (fcntl(file.get(), F_ADD_SEALS, options.seals) != 0) return {};
  return file;
}

/// Where the same is mapped in the test.
inline std::byte* Mapped(const shared_memory::Descriptor& file, int64_t bytes) {
  return static_cast<std::byte*>(mmap(nullptr, static_cast<size_t>(bytes),
                                      PROT_READ | PROT_WRITE, MAP_SHARED,
                                      file.get(), 0));
}

/// How many descriptors one packet brings at most.
inline constexpr size_t kMostDescriptors = 253;

/// Sends one, and does not care whether it comes: servers close what they will.
inline void SendPacket(int socket, std::span<const std::byte> bytes,
                       std::span<const int> descriptors = {}) {
  alignas(cmsghdr)
      std::array<std::byte, CMSG_SPACE(kMostDescriptors * sizeof(int))>
          control = {};
  iovec part = {.iov_base = const_cast<std::byte*>(bytes.data()),
                .iov_len = bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(),
                descriptors.size_bytes());
  }
  sendmsg(socket, &message, MSG_NOSIGNAL);
}

}  // namespace tensord::testing
