// What a server says at its start of who may do what.
#pragma once

#include <string>

#include "server/config/options.h"
#include "server/identity/authenticator.h"

namespace tensord::server {

/// Who is an operator, and why.
struct OperatorsReport {
  std::string who;
  std::string why;
};
OperatorsReport ReportOperators(const Options& options,
                                Authenticator& authenticator);

/// What is open to whom.
struct AccessReport {
  std::string anybody;    // what everybody may ask for
  std::string users;      // who may ask for all but what is operators'
  std::string operators;  // what they alone may
};
AccessReport ReportAccess(const Options& options,
                          const Authenticator& authenticator);

}  // namespace tensord::server
