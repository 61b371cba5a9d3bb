// Shared by `hello` and `check --on-nodes`: starts the ranks of a job without the job.
#pragma once

#include <optional>

#include "cli/output.h"
#include "job/job.h"
#include "netcheck/network_check.h"
#include "stoker/status.h"

namespace stoker::cli {

/// The session for the job's ranks, with its variables and virtual environment; without a job, for the
/// current allocation or machine. Errors as of rank::hello::choose.
Result<netcheck::NetworkCheckOptions> hello_session(const std::optional<job::Job>& job,
                                                    std::optional<std::int64_t> nodes,
                                                    std::optional<std::int64_t> ranks_per_node);

/// Prints one line per check.
void print_check_results(const netcheck::Report& report, const Translator& words, Output& out);

/// Records the result next to the job's runs; ignores write errors.
void save_hello_record(const job::Job& job, const netcheck::Report& report, bool is_well);

}  // namespace stoker::cli
