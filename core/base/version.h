// What deploy/version said when CMake last ran, in a file of its own: a commit
// changes nothing else.
#pragma once

namespace tensord::core {

/// E.g. "0.1.0.dev1764101533+g8c03451af2": a number, and time and commit where
/// it is no release.
extern const char kVersion[];

}  // namespace tensord::core
