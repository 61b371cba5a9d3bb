// Slurm's own words against a node or a job: drain, an earlier limit, a job of higher priority, a step that
// takes more memory than it asked for.
#include <algorithm>

#include "lab/fault/act.h"
#include "lab/fault/ask.h"
#include "slurm/node_list.h"
#include "slurm/queue/job_table.h"
#include "slurm/queue/scheduler.h"

namespace stoker::lab::fault {
namespace {

// Where nothing preempts: `lab up` makes it.
constexpr auto kHighPartition = "cpu";
constexpr auto kStepMemory = "64M";
constexpr auto kTakenMemory = "256M";
constexpr auto kStepTime = std::chrono::seconds(45);

Status prepare_job(const Lab& lab, const Request& request, Entry* entry, JobView* job) {
  if (request.rank)
    return invalid("{}: {} is of a whole job (--rank {})", request.target, request.kind, *request.rank);
  OK_OR_RETURN(found, find_running_job(lab, request.target));
  entry->notes["job"] = found.id;
  *job = found;
  return {};
}

Result<int> tier_of(const Lab& lab, const std::string& partition) {
  OK_OR_RETURN(text, ask_slurm(lab, {"sinfo", "-h", "-p", partition, "-o", "%p"}));
  std::int64_t tier = 0;
  if (!parse_number(trim(split(text, '\n')[0]), &tier))
    return corrupt("{}: sinfo told no tier of '{}'", lab.name, partition);
  return static_cast<int>(tier);
}

// "draining", "drained", "drained*"
bool is_drained(std::string_view state) { return state.find("drain") != std::string_view::npos; }

std::string job_name(const Entry& entry) { return "fault-" + entry.id; }

}  // namespace

Status prepare_drain(const Lab& lab, const Request& request, Entry* entry) {
  OK_OR_RETURN(node, find_node(lab, request.target));
  OK_OR_RETURN(state, node_state(lab, node->name));
  if (is_drained(state)) {
    return invalid("{}: is drained already ({})", node->name, state);
  }
  entry->text = "drained";
  entry->notes["effect"] = "its jobs run on, nothing starts there";
  return {};
}

Status drain(Lab& lab, Entry* entry) {
  return ask_slurm(lab, {"scontrol", "update", "NodeName=" + entry->target, "State=DRAIN",
                         "Reason=stoker lab fault"})
      .status();
}

Result<std::string> undo_drain(Lab& lab, const Entry& entry) {
  OK_OR_RETURN(state, node_state(lab, entry.target));
  if (is_drained(state)) {
    RETURN_IF_ERROR(
        ask_slurm(lab, {"scontrol", "update", "NodeName=" + entry.target, "State=RESUME"}).status());
  }
  // Slurm asks the node first, and starts nothing on it until it has answered.
  if (wait_until_heard(lab, entry.target)) return std::string("takes jobs again");
  return std::string("takes jobs again, but Slurm has not heard from it yet");
}

Status prepare_expire(const Lab& lab, const Request& request, Entry* entry) {
  JobView job;
  RETURN_IF_ERROR(prepare_job(lab, request, entry, &job));
  entry->notes["limit"] = job.limit;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(request.after).count();
  entry->notes["after_s"] = std::to_string(seconds);
  entry->text = seconds == 0 ? format("time limit expired (was {})", job.limit)
                             : format("time limit expires in {} s (was {})", seconds, job.limit);
  return {};
}

Status expire(Lab& lab, Entry* entry) {
  // EndTime, because TimeLimit counts in whole minutes from the start.
  return ask_slurm(lab, {"scontrol", "update", "JobId=" + entry->note("job"),
                         format("EndTime=now+{}seconds", entry->note("after_s"))})
      .status();
}

Result<std::string> undo_expire(Lab& lab, const Entry& entry) {
  const auto job = find_running_job(lab, entry.note("job"));
  if (!job) return std::string("has ended; nothing to undo");
  RETURN_IF_ERROR(
      ask_slurm(lab, {"scontrol", "update", "JobId=" + entry.note("job"), "TimeLimit=" + entry.note("limit")})
          .status());
  return format("time limit is {} again", entry.note("limit"));
}

Status prepare_preempt(const Lab& lab, const Request& request, Entry* entry) {
  JobView job;
  RETURN_IF_ERROR(prepare_job(lab, request, entry, &job));
  OK_OR_RETURN(tier, tier_of(lab, job.partition));
  OK_OR_RETURN(highest, tier_of(lab, kHighPartition));
  if (tier >= highest) {
    return invalid("{}: runs in partition '{}', where no job is preempted", request.target, job.partition)
        .cure("sbatch --partition low ...");
  }
  OK_OR_RETURN(nodes, slurm::expand_node_list(job.nodes));
  entry->notes["nodes"] = job.nodes;
  entry->notes["count"] = std::to_string(nodes.size());
  entry->text = format("preempted on {}", job.nodes);
  return {};
}

Status preempt(Lab& lab, Entry* entry) {
  OK_OR_RETURN(said, ask_slurm(lab, {"sbatch",      "--parsable",
                                     "--partition", kHighPartition,
                                     "--job-name",  job_name(*entry),
                                     "--nodes",     entry->note("count"),
                                     "--nodelist",  entry->note("nodes"),
                                     "--exclusive", "--time",
                                     "10",          "--output",
                                     "/dev/null",   "--no-requeue",
                                     "--chdir",     "/",
                                     "--wrap",      "sleep 600"}));
  OK_OR_RETURN(id, slurm::parse_submitted(said));
  entry->notes["by"] = id;
  entry->text =
      format("preempted on {} by job {} of partition '{}'", entry->note("nodes"), id, kHighPartition);
  return {};
}

Result<std::string> undo_preempt(Lab& lab, const Entry& entry) {
  // By name: the id may be unknown, if the process died before it could write it down.
  RETURN_IF_ERROR(ask_slurm(lab, {"scancel", "--name", job_name(entry)}).status());
  return std::string("the job that preempted it is cancelled");
}

Status prepare_oom(const Lab& lab, const Request& request, Entry* entry) {
  JobView job;
  RETURN_IF_ERROR(prepare_job(lab, request, entry, &job));
  entry->text = "out of memory";
  return {};
}

Status oom(Lab& lab, Entry* entry) {
  // One step more inside the job. `tail` keeps a line that has no end, `sleep` keeps it from ending: the
  // accounting looks once a second.
  const std::string eat = format("( head -c {} /dev/zero; sleep 30 ) | tail -n 1 > /dev/null", kTakenMemory);
  Command command =
      login_command(lab, {"srun", "--jobid", entry->note("job"), "--overlap", "--nodes", "1", "--ntasks", "1",
                          "--mem", kStepMemory, "--job-name", "fault-oom", "bash", "-c", eat});
  command.environment = slurm::submission_environment(*command.environment);
  OK_OR_RETURN(done, run_program(command, Deadline::after(kStepTime)));
  const std::size_t said = done.err.find("exceeded memory limit");
  if (said == std::string::npos) {
    if (!done.exit.ok()) return slurm::complaint("srun", done).with_context(entry->target);
    return unavailable("{}: Slurm let a step take {} of its {} (JobAcctGatherParams)", entry->target,
                       kTakenMemory, kStepMemory);
  }
  const std::size_t step = done.err.rfind("StepId=", said);
  const std::size_t begin = step == std::string::npos ? said : step + std::string_view("StepId=").size();
  const std::string id(trim(std::string_view(done.err).substr(begin, done.err.find(' ', begin) - begin)));
  entry->text = format(
      "step {} took {} of its {} and Slurm killed it; without cgroups no state tells why, only its log", id,
      kTakenMemory, kStepMemory);
  return {};
}

}  // namespace stoker::lab::fault
