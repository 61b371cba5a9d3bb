// Faults by Slurm commands: drain, an earlier time limit, a job of higher priority, a step that exceeds its
// memory request.
#include <algorithm>

#include "lab/fault/actions.h"
#include "lab/fault/slurm_query.h"
#include "slurm/node_list.h"
#include "slurm/queue/job_table.h"
#include "slurm/queue/scheduler.h"

namespace stoker::lab::fault {
namespace {

// The partition of `lab up` whose jobs are not preempted.
constexpr auto kHighPartition = "cpu";
constexpr auto kStepMemory = "64M";
constexpr auto kTakenMemory = "256M";
constexpr auto kStepTime = std::chrono::seconds(45);

Status prepare_job(const Lab& lab, const FaultRequest& request, JournalEntry* entry, QueuedJob* job) {
  if (request.rank)
    return invalid("{}: {} applies to a whole job (--rank {})", request.target, request.kind, *request.rank);
  STOKER_ASSIGN_OR_RETURN(found, find_running_job(lab, request.target));
  entry->notes["job"] = found.id;
  *job = found;
  return {};
}

Result<int> tier_of(const Lab& lab, const std::string& partition) {
  STOKER_ASSIGN_OR_RETURN(text, run_slurm_command(lab, {"sinfo", "-h", "-p", partition, "-o", "%p"}));
  std::int64_t tier = 0;
  if (!parse_number(trim(split(text, '\n')[0]), &tier))
    return corrupt("{}: sinfo printed no tier of '{}'", lab.name, partition);
  return static_cast<int>(tier);
}

// "draining", "drained", "drained*"
bool is_drained(std::string_view state) { return state.find("drain") != std::string_view::npos; }

std::string job_name(const JournalEntry& entry) { return "fault-" + entry.id; }

}  // namespace

Status prepare_drain(const Lab& lab, const FaultRequest& request, JournalEntry* entry) {
  STOKER_ASSIGN_OR_RETURN(node, find_node(lab, request.target));
  STOKER_ASSIGN_OR_RETURN(state, node_state(lab, node->name));
  if (is_drained(state)) {
    return invalid("{}: already drained ({})", node->name, state);
  }
  entry->text = "drained";
  entry->notes["effect"] = "its jobs continue, no job starts there";
  return {};
}

Status drain(Lab& lab, JournalEntry* entry) {
  return run_slurm_command(lab, {"scontrol", "update", "NodeName=" + entry->target, "State=DRAIN",
                                 "Reason=stoker lab fault"})
      .status();
}

Result<std::string> undo_drain(Lab& lab, const JournalEntry& entry) {
  STOKER_ASSIGN_OR_RETURN(state, node_state(lab, entry.target));
  if (is_drained(state)) {
    STOKER_RETURN_IF_ERROR(
        run_slurm_command(lab, {"scontrol", "update", "NodeName=" + entry.target, "State=RESUME"}).status());
  }
  // Slurm starts no job on the node until it has responded.
  if (wait_until_responding(lab, entry.target)) return std::string("accepts jobs again");
  return std::string("accepts jobs again, but does not respond yet");
}

Status prepare_expire(const Lab& lab, const FaultRequest& request, JournalEntry* entry) {
  QueuedJob job;
  STOKER_RETURN_IF_ERROR(prepare_job(lab, request, entry, &job));
  entry->notes["limit"] = job.limit;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(request.after).count();
  entry->notes["after_s"] = std::to_string(seconds);
  entry->text = seconds == 0 ? format("time limit expired (was {})", job.limit)
                             : format("time limit expires in {} s (was {})", seconds, job.limit);
  return {};
}

Status expire(Lab& lab, JournalEntry* entry) {
  // EndTime, because TimeLimit has a resolution of minutes.
  return run_slurm_command(lab, {"scontrol", "update", "JobId=" + entry->note("job"),
                                 format("EndTime=now+{}seconds", entry->note("after_s"))})
      .status();
}

Result<std::string> undo_expire(Lab& lab, const JournalEntry& entry) {
  const auto job = find_running_job(lab, entry.note("job"));
  if (!job) return std::string("has ended; nothing to undo");
  STOKER_RETURN_IF_ERROR(run_slurm_command(lab, {"scontrol", "update", "JobId=" + entry.note("job"),
                                                 "TimeLimit=" + entry.note("limit")})
                             .status());
  return format("time limit is {} again", entry.note("limit"));
}

Status prepare_preempt(const Lab& lab, const FaultRequest& request, JournalEntry* entry) {
  QueuedJob job;
  STOKER_RETURN_IF_ERROR(prepare_job(lab, request, entry, &job));
  STOKER_ASSIGN_OR_RETURN(tier, tier_of(lab, job.partition));
  STOKER_ASSIGN_OR_RETURN(highest, tier_of(lab, kHighPartition));
  if (tier >= highest) {
    return invalid("{}: runs in partition '{}', which has no preemption", request.target, job.partition)
        .cure("sbatch --partition low ...");
  }
  STOKER_ASSIGN_OR_RETURN(nodes, slurm::expand_node_list(job.nodes));
  entry->notes["nodes"] = job.nodes;
  entry->notes["count"] = std::to_string(nodes.size());
  entry->text = format("preempted on {}", job.nodes);
  return {};
}

Status preempt(Lab& lab, JournalEntry* entry) {
  STOKER_ASSIGN_OR_RETURN(output, run_slurm_command(lab, {"sbatch",      "--parsable",
                                                          "--partition", kHighPartition,
                                                          "--job-name",  job_name(*entry),
                                                          "--nodes",     entry->note("count"),
                                                          "--nodelist",  entry->note("nodes"),
                                                          "--exclusive", "--time",
                                                          "10",          "--output",
                                                          "/dev/null",   "--no-requeue",
                                                          "--chdir",     "/",
                                                          "--wrap",      "sleep 600"}));
  STOKER_ASSIGN_OR_RETURN(id, slurm::parse_sbatch_output(output));
  entry->notes["by"] = id;
  entry->text =
      format("preempted on {} by job {} of partition '{}'", entry->note("nodes"), id, kHighPartition);
  return {};
}

Result<std::string> undo_preempt(Lab& lab, const JournalEntry& entry) {
  // By name: the id may be unknown, if the process died before recording it.
  STOKER_RETURN_IF_ERROR(run_slurm_command(lab, {"scancel", "--name", job_name(entry)}).status());
  return std::string("the job that preempted it is cancelled");
}

Status prepare_oom(const Lab& lab, const FaultRequest& request, JournalEntry* entry) {
  QueuedJob job;
  STOKER_RETURN_IF_ERROR(prepare_job(lab, request, entry, &job));
  entry->text = "out of memory";
  return {};
}

Status oom(Lab& lab, JournalEntry* entry) {
  // An additional step inside the job. `tail` buffers an endless line, `sleep` keeps it alive: Slurm checks
  // the memory once a second.
  const std::string eat = format("( head -c {} /dev/zero; sleep 30 ) | tail -n 1 > /dev/null", kTakenMemory);
  Command command =
      login_command(lab, {"srun", "--jobid", entry->note("job"), "--overlap", "--nodes", "1", "--ntasks", "1",
                          "--mem", kStepMemory, "--job-name", "fault-oom", "bash", "-c", eat});
  command.environment = slurm::submission_environment(*command.environment);
  STOKER_ASSIGN_OR_RETURN(done, run_program(command, Deadline::after(kStepTime)));
  const std::size_t message = done.err.find("exceeded memory limit");
  if (message == std::string::npos) {
    if (!done.exit.ok()) return slurm::command_error("srun", done).with_context(entry->target);
    return unavailable("{}: Slurm let a step use {} instead of {} (JobAcctGatherParams)", entry->target,
                       kTakenMemory, kStepMemory);
  }
  const std::size_t step = done.err.rfind("StepId=", message);
  const std::size_t begin = step == std::string::npos ? message : step + std::string_view("StepId=").size();
  const std::string id(trim(std::string_view(done.err).substr(begin, done.err.find(' ', begin) - begin)));
  entry->text =
      format("step {} used {} instead of {} and was killed; without cgroups only its log shows the reason",
             id, kTakenMemory, kStepMemory);
  return {};
}

}  // namespace stoker::lab::fault
