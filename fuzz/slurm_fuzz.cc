// Output of Slurm's commands on an unknown site: any text is parsed within its bounds or rejected, and the
// results are valid arguments for the same commands.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "slurm/queue/batch_log.h"
#include "slurm/queue/cluster.h"
#include "slurm/queue/job_table.h"
#include "slurm/queue/scheduler.h"

namespace {

using namespace stoker::slurm;

void check_jobs(const stoker::Result<JobList>& list) {
  if (!list.ok()) return;
  for (const JobInfo& job : list->jobs) {
    const std::string id = job.id.substr(0, job.id.find("_["));
    if (!is_job_id(id) || job.state_text.empty()) std::abort();
    if (job.exit_code && (*job.exit_code < 0 || *job.exit_code > 65535)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_jobs(parse_job_table("squeue", text));
  // Most inputs have no header.
  check_jobs(
      parse_job_table("squeue", "JOBID|STATE|REASON|START_TIME|END_TIME|COMMENT\n" + std::string(text)));
  check_jobs(parse_job_records(text));
  check_jobs(parse_job_records("JobId=7 " + std::string(text)));
  if (const auto id = parse_sbatch_output(text); id.ok() && !is_job_id(*id)) std::abort();
  (void)last_termination(text, "7");
  (void)reason_text(text);
  ClusterInfo facts;
  (void)parse_config(text, facts);
  (void)parse_partitions(text);
  (void)parse_accounts(text);
  (void)parse_test(text);
  (void)parse_job_state(text);
  return 0;
}
