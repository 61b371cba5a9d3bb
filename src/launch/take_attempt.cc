#include "launch/take_attempt.h"

#include "base/file.h"
#include "record/state.h"
#include "slurm/queue/job_table.h"

namespace stoker::launch {

Result<record::Attempt> take_attempt(const Request& request, const record::RunFolder& folder,
                                     const std::string& scheduler_job, const std::string& yaml) {
  if (request.prepared) {
    const Status claimed = File::create_new(request.prepared->node_events(0)).status();
    if (claimed.ok()) return *request.prepared;
    if (claimed.code() != Code::exists) return claimed;
    const record::RunState state = record::derive_state(folder);
    if (state.state == record::State::done) return invalid("run {}: is done already", folder.id());
    // The scheduler starts a job again, or the next link of a chain, only when its processes are gone.
    const bool is_requeued = !scheduler_job.empty() &&
                             slurm::submitted_job(state.scheduler_job) == slurm::submitted_job(scheduler_job);
    if (state.state == record::State::running && !is_requeued)
      return invalid("run {}: is still running", folder.id()).cure("stoker logs -f {}", folder.id());
  }
  return folder.start_attempt(yaml);
}

}  // namespace stoker::launch
