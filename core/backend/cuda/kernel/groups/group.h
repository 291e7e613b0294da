// The widest access a thread has to memory. Plain C++, for host and device.
#pragma once

namespace tensord::core::cuda {

/// Bytes of a group: neighbouring elements that move together.
inline constexpr int kGroupBytes = 16;

}  // namespace tensord::core::cuda
