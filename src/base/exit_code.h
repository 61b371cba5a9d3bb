// The exit codes of Stoker's programs: docs/exit-codes.md. Thread-safe: no state.
#pragma once

#include <span>
#include <string_view>

#include "stoker/status.h"

namespace stoker::exit_code {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;        ///< invalid arguments or configuration
inline constexpr int kUnavailable = 3;  ///< the environment is not available; a retry may succeed
inline constexpr int kBug = 70;         ///< EX_SOFTWARE of sysexits.h
inline constexpr int kStoppedAfterCheckpoint = 75;
inline constexpr int kTimeout = 124;  ///< `stoker wait`: time limit without a checkpoint, as timeout(1)
inline constexpr int kInterrupted = 130;
inline constexpr int kOutOfMemory = 137;  ///< `stoker wait`: 128 + SIGKILL

/// The exit code of an error: invalid 2, unavailable 3, internal 70, cancelled 130, everything else 1; ok 0.
int from_status(const Status& status);

/// A code with its meaning for users.
struct ExitCodeText {
  int code;
  std::string_view meaning;
};
/// All codes, in ascending order, as docs/exit-codes.md lists them.
std::span<const ExitCodeText> texts();

}  // namespace stoker::exit_code
