// Certificates and tokens for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/testing/places.h"

namespace tensord::testing {

/// Leaves what deploy/certificates makes in `folder`.
inline void MakeCertificates(const std::string& folder) {
  const std::string command =
      InRepository("deploy/certificates") + " " + folder + " >/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
}

/// The secret that MakeTokens() makes known.
inline constexpr char kTokenSecret[] = "tensord_0123abcd_for-the-test";

/// Writes a server's file of tokens: one, of tenant `chemistry`.
inline void MakeTokens(const std::string& path) {
  const std::string salt(32, '0');
  const std::string command = "printf '0123abcd chemistry user never " + salt +
                              " %s\\n' $(printf " + salt + kTokenSecret +
                              " | sha256sum | cut -d' ' -f1) >" + path;
  ASSERT_EQ(std::system(command.c_str()), 0);
}

}  // namespace tensord::testing
