// What Slurm's commands print comes from a site we do not know: any text must be read within its bounds or
// refused, and what comes out must be fit to be given back to them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "slurm/queue/cluster.h"
#include "slurm/queue/job_table.h"
#include "slurm/queue/scheduler.h"
#include "slurm/script/batch_log.h"

namespace {

using namespace stoker::slurm;

void check_jobs(const stoker::Result<JobList>& list) {
  if (!list.ok()) return;
  for (const JobFacts& job : list->jobs) {
    const std::string id = job.id.substr(0, job.id.find("_["));
    if (!is_job_id(id) || job.state_text.empty()) std::abort();
    if (job.exit_code && (*job.exit_code < 0 || *job.exit_code > 65535)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_jobs(parse_job_table("squeue", text));
  // Most inputs have no header of their own.
  check_jobs(
      parse_job_table("squeue", "JOBID|STATE|REASON|START_TIME|END_TIME|COMMENT\n" + std::string(text)));
  check_jobs(parse_job_records(text));
  check_jobs(parse_job_records("JobId=7 " + std::string(text)));
  if (const auto id = parse_submitted(text); id.ok() && !is_job_id(*id)) std::abort();
  (void)last_ending(text, "7");
  (void)reason_words(text);
  ClusterFacts facts;
  (void)parse_config(text, facts);
  (void)parse_partitions(text);
  (void)parse_accounts(text);
  (void)parse_test(text);
  (void)parse_job_state(text);
  return 0;
}
