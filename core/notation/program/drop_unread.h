// Takes out of a program what nobody needs.
#pragma once

#include "core/notation/program/program.h"

namespace tensord::core {

/// Takes out steps that write temporaries alone which no step behind them
/// reads, unless that one is taken out itself. Products whose result is not
/// computed any more are marked.
void DropUnread(Program& program);

}  // namespace tensord::core
