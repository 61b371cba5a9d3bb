// What a run's capsule records, gathered from git, the interpreter, the datasets and this host. Every part
// has a deadline and is best effort: what cannot be found out is left empty. Programs are started, so this
// runs in a process of its own beside the ranks. Thread-safe: no state.
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

/// Commit, uncommitted changes and untracked files of the repository around `folder`. What is below
/// `excluded` (the runs themselves) is no part of the code.
record::CodeFacts code_facts(const Path& folder, const Path& excluded);

/// The interpreter that `command` starts: its own program when that is a Python, the virtual environment's
/// when a shell starts it; "" when there is none.
std::string interpreter_of(const std::vector<std::string>& command, const job::Environment& environment);

/// `variables` with secrets masked, and the packages that `interpreter` sees.
record::EnvironmentFacts environment_facts(const std::string& interpreter, const Environment& variables,
                                           const Path& folder);

/// True for a variable whose value should not be kept: its name says so (TOKEN, SECRET, PASSWORD, KEY, ...),
/// or it is an address with a password in it.
bool is_secret(std::string_view name, std::string_view value);

/// Version and size of every dataset of the job.
std::vector<record::DataFacts> data_facts(const job::Job& job);

/// This host: processor, memory, kernel, GPUs.
record::NodeFacts node_facts();

}  // namespace stoker::rank
