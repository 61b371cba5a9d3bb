// Which ranks a `stoker hello` starts, and where: those of a job, all nodes of the allocation, this machine,
// or nodes that srun asks for. Pure.
#pragma once

#include <optional>

#include "job/job.h"
#include "rank/hello/session.h"
#include "rank/plan.h"

namespace stoker::rank::hello {

/// What the command line says; empty: the job or the place decides.
struct Wish {
  const job::Job* job = nullptr;  ///< null without one
  std::optional<std::int64_t> nodes;
  std::optional<std::int64_t> ranks_per_node;
};

/// The parts of SessionOptions that say who takes part. Invalid for numbers that make no sense, and for
/// several nodes where there is neither an allocation nor srun.
Result<SessionOptions> choose(const Wish& wish, const Surroundings& here, bool has_srun);

/// Whether a program of that name is in PATH of `environment`.
bool finds_program(std::string_view name, const Environment& environment);

}  // namespace stoker::rank::hello
