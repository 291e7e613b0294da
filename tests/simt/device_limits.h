// What a fake device can do; the figures of an H200.
#pragma once

namespace tensord::simt {

inline constexpr int kWarpThreads = 32;
inline constexpr int kMaxThreadsPerBlock = 1024;
inline constexpr int kMaxThreadsPerMultiprocessor = 2048;
inline constexpr int kMaxBlocksPerMultiprocessor = 32;
inline constexpr int kDefaultSharedBytes = 48 * 1024;  // of a block
inline constexpr int kOptInSharedBytes = 227 * 1024;   // that asks for it
inline constexpr int kReservedSharedBytes = 1024;      // of a block
inline constexpr int kSharedBytesPerMultiprocessor = 228 * 1024;
inline constexpr int kMemoryBusBits = 6144;
inline constexpr int kL2CacheBytes = 60 << 20;

}  // namespace tensord::simt
