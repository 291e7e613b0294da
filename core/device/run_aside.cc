#include "core/device/run_aside.h"

#include <memory>
#include <system_error>
#include <thread>

#include "core/device/interruption.h"
#include "core/device/signal.h"

namespace tensord::core {

void RunAside(absl::FunctionRef<void()> work) {
  Interruption* const interruption = CurrentWork::interruption();
  if (interruption == nullptr) return work();
  const auto end = std::make_shared<Signal>();
  Interruption stops;  // all that it hears
  std::thread aside;
  try {
    aside = std::thread([&] {
      const CurrentWork current(&stops);
      work();
      end->Notify();
    });
  } catch (const std::system_error&) {
    return work();  // there are no more threads
  }
  interruption->Await(end);
  if (interruption->is_stopped()) stops.Stop();
  interruption->Outlast(end);
  aside.join();
  if (stops.is_cut()) interruption->Cut();
}

}  // namespace tensord::core
