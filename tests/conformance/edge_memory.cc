#include "tests/conformance/edge_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace tensord::test {

EdgeMemory::EdgeMemory(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t usable = (bytes + page - 1) / page * page;
  mapped_bytes_ = usable + page;
  void* const mapped = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) std::abort();
  mapped_ = static_cast<std::byte*>(mapped);
  if (mprotect(mapped_ + usable, page, PROT_NONE) != 0) std::abort();
  data_ = mapped_ + usable - bytes;
}

EdgeMemory::~EdgeMemory() { munmap(mapped_, mapped_bytes_); }

}  // namespace tensord::test
