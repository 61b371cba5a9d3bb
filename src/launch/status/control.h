// Cancels a run and waits for its end, whether it is queued or runs as processes of this machine. Used by
// `stoker cancel` and `stoker wait`. Thread-compatible.
#pragma once

#include <functional>
#include <string>

#include "launch/status/life.h"
#include "record/run_folder.h"
#include "slurm/queue/scheduler.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::launch {

/// The action of `cancel`.
struct Cancellation {
  enum class How {
    none,       ///< the run has already ended
    scheduler,  ///< scancel of its job
    signal,     ///< SIGTERM to its supervisor on this machine
  };
  How how = How::none;
  std::string scheduler_job;
  std::int64_t pid = 0;  ///< of the supervisor
  RunLife before;
};

/// Chooses how to cancel the run. Unavailable when it runs on another machine outside a queue, or when it is
/// unknown whether its job exists.
Result<Cancellation> plan_cancel(const record::RunFolder& run, slurm::Scheduler& scheduler,
                                 Deadline deadline);

/// Records the request and sends it. Returns at once; use wait_for to wait for the end.
Status cancel(const record::RunFolder& run, const Cancellation& what, slurm::Scheduler& scheduler,
              Deadline deadline);

struct WaitOptions {
  Deadline deadline = Deadline::never();
  std::function<void(const RunLife&)> on_change;  ///< called first and after each change of state or note
  std::function<bool()> should_stop;              ///< polled several times a second
};
/// Waits until the run is over. Polls its records twice a second. Queries the scheduler only if the records
/// do not suffice, with growing intervals up to 15 s. Timeout, Cancelled when `should_stop`, or NotFound when
/// the run's folder was removed.
Result<RunLife> wait_for(const record::RunFolder& run, slurm::Scheduler& scheduler,
                         const WaitOptions& options);

}  // namespace stoker::launch
