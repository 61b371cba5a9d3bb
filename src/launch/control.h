// Ending a run and waiting for its end, wherever it lives: in the queue, or as processes of this machine.
// Used by `stoker cancel` and `stoker wait`. Thread-compatible.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "launch/life.h"
#include "record/run_folder.h"
#include "slurm/queue/scheduler.h"

namespace stoker::launch {

/// What `cancel` would do, or did.
struct Cancellation {
  enum class How {
    none,       ///< it was over already
    scheduler,  ///< the scheduler is asked to end its job
    signal,     ///< its supervisor on this machine gets SIGTERM
  };
  How how = How::none;
  std::string scheduler_job;
  std::int64_t pid = 0;  ///< of the supervisor
  RunLife before;
};

/// How this run would be ended. Unavailable when it runs elsewhere outside of a queue, or when it cannot be
/// told whether a job of it exists.
Result<Cancellation> plan_cancel(const record::RunFolder& run, slurm::Scheduler& scheduler,
                                 Deadline deadline);

/// Records that its end was asked for, and asks for it. Returns at once: wait_for tells when it is over.
Status cancel(const record::RunFolder& run, const Cancellation& what, slurm::Scheduler& scheduler,
              Deadline deadline);

struct WaitOptions {
  Deadline deadline = Deadline::never();
  std::function<void(const RunLife&)> on_change;  ///< called at first and whenever state or note changed
  std::function<bool()> should_stop;              ///< asked several times a second
};
/// Waits until the run is over. Looks at its records every half second and asks the scheduler ever more
/// seldom, at most every 15 s, and only where the records do not tell. Timeout, Cancelled when `should_stop`,
/// or NotFound when the run's folder was removed meanwhile.
Result<RunLife> wait_for(const record::RunFolder& run, slurm::Scheduler& scheduler,
                         const WaitOptions& options);

}  // namespace stoker::launch
