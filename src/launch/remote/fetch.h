// Copies a run's folder from a remote host. Used by `stoker fetch`. Main thread only.
#pragma once

#include <cstdint>
#include <optional>

#include "base/file.h"
#include "launch/remote/call.h"
#include "launch/remote/message.h"
#include "stoker/status.h"

namespace stoker::launch {

/// The result of a fetch.
struct FetchResult {
  Path folder;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  bool replaced_older = false;  ///< an older copy was replaced
};
/// Fetches a run's folder into `runs`. The folder is complete or unchanged. Exists when a run with that name
/// is there that was not fetched. Nothing, with the remote exit code in `code`, when the remote side has
/// printed an error.
Result<std::optional<FetchResult>> fetch_run(RemoteCall& call, const RemoteRequest& request,
                                             const RemoteHost& host, const Path& runs, int* code);

}  // namespace stoker::launch
