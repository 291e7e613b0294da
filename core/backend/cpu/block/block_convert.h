// Loading and storing blocks of elements with conversion.
#pragma once

#include <cstdint>

#include "core/base/element_type.h"

namespace tensord::core {

/// block[i] = converted(source[i * stride]), i in [0, count). Stride 0 repeats
/// one element.
using LoadBlock = void (*)(const void* source, int64_t stride, int64_t count,
                           void* block);

/// target[i * stride] = converted(block[i]), i in [0, count).
using StoreBlock = void (*)(const void* block, int64_t count, void* target,
                            int64_t stride);

/// From elements stored as `stored` to blocks of `element`, a type that
/// ComputeElement() gives; null when there is no such conversion.
LoadBlock FindLoad(ElementType stored, ElementType element);

/// From blocks of `element` to elements stored as `stored`, likewise.
StoreBlock FindStore(ElementType element, ElementType stored);

}  // namespace tensord::core
