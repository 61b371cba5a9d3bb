// What `hello` and `check --on-nodes` share: the ranks of a job started without it.
#pragma once

#include <optional>

#include "base/status.h"
#include "cli/output.h"
#include "job/job.h"
#include "rank/hello/session.h"

namespace stoker::cli {

/// The session for the job's ranks, with its variables and virtual environment; without a job for those of
/// the place. Errors as of rank::hello::choose.
Result<rank::hello::SessionOptions> hello_session(const std::optional<job::Job>& job,
                                                  std::optional<std::int64_t> nodes,
                                                  std::optional<std::int64_t> ranks_per_node);

/// The rungs that were climbed, a line each.
void print_rungs(const rank::hello::Report& report, Output& out);

/// Keeps what was found beside the job's runs; a folder that cannot be written to loses nothing but that.
void keep_hello(const job::Job& job, const rank::hello::Report& report, bool is_well);

}  // namespace stoker::cli
