// Gathers what was true when a run started: code, environment, data, machine. What cannot be known (no git,
// no Python, no manifest) is left empty: recording must never end a training. Thread-safe: no state; each
// call asks the machine anew and may take up to a second.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "base/status.h"
#include "job/job.h"
#include "record/capsule.h"

namespace stoker::rank {

/// The short commit id of the repository around `folder`, "" outside one: part of a run's name. A few
/// milliseconds.
std::string short_commit(const Path& folder);

/// Commit, branch, remote (credentials masked), uncommitted changes against the commit, untracked files that
/// are not ignored.
record::CodeFacts gather_code(const Path& folder);

/// Versions of stoker and of the Python that the ranks use, its packages, and `environment` with values of
/// names that look like secrets masked.
record::EnvironmentFacts gather_environment(const job::Job& job, const Environment& environment);

/// The manifests of the job's datasets. One that cannot be read has an empty version.
std::vector<record::DataFacts> gather_data(const job::Job& job);

/// This machine.
record::NodeFacts gather_node(const std::string& host);

/// Gathers and writes all four parts, each as soon as it is known: meant for a thread beside the ranks. The
/// first error of writing.
Status write_capsule(const record::RunFolder& run, const job::Job& job, const Environment& environment,
                     const std::string& host);

/// `value`, or "(masked)" when the variable's name says that it is a secret; user and password of a URL are
/// masked in any value.
std::string masked(std::string_view name, std::string_view value);

}  // namespace stoker::rank
