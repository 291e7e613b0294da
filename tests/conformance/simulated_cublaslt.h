// The cuBLASLt that the CUDA backend finds in tests.
#pragma once

namespace tensord::test {

/// Whether backends that are created from now on find none.
void HideCublasLt(bool is_hidden);

}  // namespace tensord::test
