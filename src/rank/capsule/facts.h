// Collects a run's capsule from git, the interpreter, the datasets and this host. Each part has a deadline
// and is best effort: unknown facts are left empty. It starts programs, so it runs in a separate process next
// to the ranks. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "base/process.h"
#include "job/job.h"
#include "record/capsule.h"

namespace stoker::rank {

/// The short commit of the code in `folder`, "" outside a repository or without git. Takes a few
/// milliseconds.
std::string short_commit(const Path& folder);

/// Commit, uncommitted changes (secrets in added lines are hidden) and untracked files of the repository
/// around `folder`. Excludes files below `excluded` (the runs).
record::CodeInfo code_facts(const Path& folder, const Path& excluded);

/// The interpreter that `command` starts: its program if that is Python, the virtual environment's if a shell
/// starts it; "" without one.
std::string interpreter_of(const std::vector<std::string>& command, const job::Environment& environment);

/// `variables` with secrets hidden, and the packages of `interpreter`.
record::EnvironmentInfo environment_facts(const std::string& interpreter, const Environment& variables,
                                          const Path& folder);

/// Version and size of every dataset of the job.
std::vector<record::DataInfo> data_facts(const job::Job& job);

/// This host: processor, memory, kernel, GPUs.
record::NodeInfo node_facts();

}  // namespace stoker::rank
