// Stands in for NVIDIA's header of this name in tests.
#pragma once

#include "simt/vector_types.h"

typedef float2 cuComplex;
typedef double2 cuDoubleComplex;
