// The cuSOLVER that the CUDA backend finds in tests.
#pragma once

namespace tensord::test {

/// Whether backends that are created from now on find none.
void HideCusolver(bool is_hidden);

}  // namespace tensord::test
