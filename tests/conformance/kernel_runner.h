// Runs kernels on cases and judges them by the oracle.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "tests/testing/oracle/oracle.h"
#include "tests/testing/random_problem.h"

namespace tensord::test {

/// Of the cases of a sweep, sanitized builds take about one in so many: they
/// look for faults of memory and of order, of which every case has a part, and
/// each case takes them several times as long.
#if defined(__SANITIZE_THREAD__)
inline constexpr int64_t kCaseStride = 11;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr int64_t kCaseStride = 5;
#else
inline constexpr int64_t kCaseStride = 1;
#endif

/// A backend that wants to be tested.
struct ConformanceTarget {
  std::string name;
  std::function<std::unique_ptr<core::Backend>(int thread_count)> create;
  /// Called before a test creates its first backend.
  std::function<void()> set_up = [] {};
  /// Kernels run on host memory: two cases of three get operands that end where
  /// the process may not read.
  bool uses_host_memory = false;
  /// Kernels named "gemm" may multiply on tensor cores.
  bool has_tensor_cores = false;
  /// Random cases of each operation but contraction, and of that.
  uint32_t random_case_count = 1500;
  uint32_t random_contraction_count = 1500;
  /// Kernels that need not solve any problem.
  std::set<std::string> idle_kernels = {};
  /// Check() takes the first case of a test and, scattered, about one in so
  /// many of the others.
  int64_t case_stride = kCaseStride;
  /// Copies between host memory and the backend's, either way.
  std::function<void(void* to, const void* from, size_t bytes)> copy =
      [](void* to, const void* from, size_t bytes) {
        std::memcpy(to, from, bytes);
      };
};

inline void PrintTo(const ConformanceTarget& target, std::ostream* out) {
  *out << target.name;
}

/// What became of one kernel so far.
struct KernelRecord {
  int64_t runs = 0;
  int64_t solved = 0;  // of what was offered
  int64_t declines = 0;
  Real worst_error = 0;  // in units of the bound
};

/// Threads  used by one thread at a time.
class KernelRunner {
 public:
  KernelRunner(const ConformanceTarget& target, int thread_count);

  /// Runs every kernel that supports the case, unless the target's case_stride
  /// passes it over. Fails the test when one gives a wrong element, touches a
  /// byte that is not its own or declines as the last of its list.
  void Check(const Case<core::PermutationDesc>& c);
  void Check(const Case<core::ElementwiseDesc>& c);
  void Check(const Case<core::ReductionDesc>& c);
  void Check(const Case<core::ContractionDesc>& c);

  /// Has every kernel solve the case, and counts who does. Runs none.
  void Offer(const Case<core::PermutationDesc>& c);
  void Offer(const Case<core::ElementwiseDesc>& c);
  void Offer(const Case<core::ReductionDesc>& c);
  void Offer(const Case<core::ContractionDesc>& c);

  /// The bytes of d from its first element to its last, gaps included, by name
  /// of the kernel that wrote them.
  using Images = std::map<std::string, std::vector<std::byte>, std::less<>>;
  Images Run(const Case<core::PermutationDesc>& c);
  Images Run(const Case<core::ElementwiseDesc>& c);
  Images Run(const Case<core::ReductionDesc>& c);
  Images Run(const Case<core::ContractionDesc>& c);

  const std::map<std::string, KernelRecord>& records() const {
    return records_;
  }
  /// Of the cases that Check() was offered, those that it took.
  int64_t offered_count() const { return offered_count_; }
  int64_t taken_count() const { return taken_count_; }
  const core::Backend& backend() const { return *backend_; }

 private:
  template <typename Desc>
  struct Prepared;

  /// Whether the case that Check() is offered now is one to take.
  bool TakesNextCase();

  template <typename Desc>
  static Prepared<Desc> Prepare(const Case<Desc>& c);
  template <typename Desc>
  void CheckCase(const Case<Desc>& c);
  template <typename Desc>
  void OfferCase(const Case<Desc>& c);
  template <typename Desc>
  Images RunCase(const Case<Desc>& c);
  template <typename Desc, typename Solution>
  std::vector<std::byte> Launch(const Prepared<Desc>& prepared,
                                const Solution& solution);
  template <typename Desc>
  void Judge(const Prepared<Desc>& prepared,
             const std::vector<Expected>& elements,
             const std::vector<std::byte>& image, const std::string& kernel);

  const ConformanceTarget target_;
  const std::unique_ptr<core::Backend> backend_;
  const std::unique_ptr<core::Stream> stream_;
  std::map<std::string, KernelRecord> records_;
  int64_t offered_count_ = 0;
  int64_t taken_count_ = 0;
};

}  // namespace tensord::test
