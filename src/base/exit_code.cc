#include "base/exit_code.h"

namespace stoker::exit_code {

int from_status(const Status& status) {
  switch (status.code()) {
    case Code::ok:
      return kOk;
    case Code::invalid:
      return kUsage;
    case Code::unavailable:
      return kUnavailable;
    case Code::internal:
      return kBug;
    case Code::cancelled:
      return kInterrupted;
    default:
      return kFailed;
  }
}

std::span<const ExitCodeText> texts() {
  static constexpr ExitCodeText kTexts[] = {
      {kOk, "success"},
      {kFailed, "the operation failed: something is missing, damaged, full, or already exists"},
      {kUsage, "usage or configuration error: invalid argument, option or key"},
      {kUnavailable, "the environment is unavailable; a retry may help"},
      {kBug, "internal error in Stoker: please report the printed line"},
      {kStoppedAfterCheckpoint,
       "checkpoint-and-exit on a signal or shortly before the time limit: `stoker resume` continues the run"},
      {kTimeout, "`stoker wait`: the run reached its time limit without a checkpoint"},
      {kInterrupted, "interrupted; `stoker wait`: the run was cancelled"},
      {kOutOfMemory, "`stoker wait`: the run exceeded its memory"},
  };
  return kTexts;
}

}  // namespace stoker::exit_code
