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

}  // namespace stoker::exit_code
