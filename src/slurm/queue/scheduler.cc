#include "slurm/queue/scheduler.h"

#include <algorithm>
#include <array>
#include <unistd.h>

namespace stoker::slurm {
namespace {

// Variables that say where the cluster is and who we are; everything else named SLURM_ belongs to a job.
constexpr std::array<std::string_view, 4> kOfTheCluster = {"SLURM_CONF", "SLURM_CONF_SERVER",
                                                           "SLURM_CLUSTERS", "SLURM_JWT"};
// Variables win over #SBATCH lines; these stand for lines that the script has, or must not have.
constexpr std::array<std::string_view, 27> kSetByScript = {
    "SBATCH_JOB_NAME",      "SBATCH_TIMELIMIT",     "SBATCH_SIGNAL",        "SBATCH_REQUEUE",
    "SBATCH_NO_REQUEUE",    "SBATCH_OPEN_MODE",     "SBATCH_OUTPUT",        "SBATCH_ERROR",
    "SBATCH_COMMENT",       "SBATCH_ARRAY_INX",     "SBATCH_WAIT",          "SBATCH_GPUS",
    "SBATCH_GPUS_PER_NODE", "SBATCH_GPUS_PER_TASK", "SBATCH_CPUS_PER_TASK", "SBATCH_MEM_PER_NODE",
    "SBATCH_MEM_PER_CPU",   "SBATCH_MEM_PER_GPU",   "SBATCH_NTASKS",        "SBATCH_NTASKS_PER_NODE",
    "SBATCH_NNODES",        "SBATCH_NODES",         "SBATCH_CHDIR",         "SBATCH_WORKDIR",
    "SBATCH_EXPORT",        "SBATCH_TEST_ONLY",     "SBATCH_PARSABLE"};

struct Known {
  std::string_view words;
  Code code;
};
// Parts of slurm_strerror() texts; the first that occurs decides.
constexpr Known kKnown[] = {
    {"Unable to contact slurm controller", Code::unavailable},
    {"Unable to contact", Code::unavailable},
    {"Unable to establish", Code::unavailable},
    {"Connection refused", Code::unavailable},
    {"Connection timed out", Code::unavailable},
    {"Socket timed out", Code::unavailable},
    {"Zero Bytes were transmitted", Code::unavailable},
    {"Transport endpoint", Code::unavailable},
    {"Communication connection failure", Code::unavailable},
    {"Slurm backup controller in standby mode", Code::unavailable},
    {"temporarily unable to accept job", Code::unavailable},
    {"Resource temporarily unavailable", Code::unavailable},
    {"Could not establish a configuration source", Code::unavailable},
    {"Unable to process configuration file", Code::unavailable},
    {"accounting storage is disabled", Code::unavailable},
    {"Invalid job id specified", Code::not_found},
    {"not found", Code::not_found},
};

// "sbatch: error: Batch job submission failed: Invalid account" as "Invalid account".
std::string_view without_prefix(std::string_view line, std::string_view program) {
  const auto drop = [&](std::string_view prefix) {
    if (line.starts_with(prefix)) line = trim(line.substr(prefix.size()));
  };
  drop(format("{}:", program));
  drop("fatal:");
  drop("error:");
  drop("Batch job submission failed:");
  drop("slurm_load_jobs error:");
  return line;
}

}  // namespace

std::vector<std::string> sbatch_arguments(const Path& script) {
  return {"sbatch", "--parsable", script.string()};
}

std::vector<std::string> squeue_arguments() {
  // Free text last: it may hold a '|'. Rows of all states: a job that ended a moment ago is still worth a
  // word.
  return {"squeue", "--all", format("--user={}", ::geteuid()), "--states=all",
          "--format=%i|%T|%r|%S|%e|%P|%N|%k"};
}

std::vector<std::string> sacct_arguments(std::span<const std::string> ids) {
  return {"sacct", "--parsable2", "--allocations", "--jobs=" + join(ids, ","),
          "--format=JobID,State,ExitCode,Start,End,Partition,NodeList"};
}

Environment submission_environment(Environment base) {
  std::erase_if(base, [](const auto& entry) {
    const std::string_view name = entry.first;
    if (std::find(kOfTheCluster.begin(), kOfTheCluster.end(), name) != kOfTheCluster.end()) return false;
    if (std::find(kSetByScript.begin(), kSetByScript.end(), name) != kSetByScript.end()) return true;
    return name.starts_with("SLURM_") || name.starts_with("SLURMD_") || name.starts_with("SRUN_");
  });
  return base;
}

Status complaint(std::string_view program, const Captured& captured) {
  std::vector<std::string> lines;
  Code code = Code::invalid;
  for (std::string_view line : split(captured.err, '\n')) {
    const bool is_fatal = trim(line).starts_with(format("{}: fatal:", program));
    line = without_prefix(trim(line), program);
    // What comes before a fatal error are the steps of its failing.
    if (is_fatal) lines.clear();
    if (!line.empty() && lines.size() < 3) lines.push_back(printable(line.substr(0, 500)));
    if (is_fatal) break;
  }
  const std::string said = join(lines, "; ");
  for (const Known& known : kKnown) {
    if (said.find(known.words) == std::string::npos) continue;
    code = known.code;
    break;
  }
  if (said.empty()) return unavailable("{}: {} without a word", program, to_text(captured.exit));
  Status status(code, format("{}: {}", program, said));
  const bool has_no_cluster = said.find("establish a configuration source") != std::string::npos ||
                              said.find("process configuration file") != std::string::npos;
  return has_no_cluster
             ? std::move(status).cure(
                   "export SLURM_CONF=FILE on a machine of a cluster, eval \"$(stoker lab env)\" for a lab")
             : status;
}

SlurmCommands::SlurmCommands(Environment environment)
    : environment_(submission_environment(std::move(environment))) {}

Result<std::string> SlurmCommands::output_of(std::vector<std::string> argv, Deadline deadline) const {
  const std::string program = argv.at(0);
  Command command;
  command.argv = std::move(argv);
  command.environment = environment_;
  // Times as numbers: no time zone, no site's own format.
  std::erase_if(*command.environment, [](const auto& entry) { return entry.first == "SLURM_TIME_FORMAT"; });
  command.environment->emplace_back("SLURM_TIME_FORMAT", "%s");
  const Duration patience = std::chrono::round<std::chrono::seconds>(deadline.left());
  auto captured = run_program(command, deadline);
  if (!captured.ok()) {
    const Status error = std::move(captured).error();
    if (error.code() == Code::timeout) {
      return timeout("{}: no answer within {}", program, rounded_duration(patience))
          .cure("scontrol ping tells whether Slurm's controller is up");
    }
    if (error.code() != Code::not_found) return error;
    return unavailable("{}: no such program in PATH (is this a machine with Slurm?)", program)
        .cure("module load slurm, or on a machine of your own: stoker run JOB");
  }
  if (!captured->exit.ok()) return complaint(program, *captured);
  return std::move(captured->out);
}

Result<std::string> SlurmCommands::submit(const Path& script, Deadline deadline) {
  OK_OR_RETURN(out, output_of(sbatch_arguments(script), deadline));
  return parse_submitted(out);
}

Result<JobList> SlurmCommands::jobs(Deadline deadline) {
  OK_OR_RETURN(out, output_of(squeue_arguments(), deadline));
  return parse_job_table("squeue", out);
}

Result<JobList> SlurmCommands::find(std::span<const std::string> ids, Deadline deadline) {
  if (ids.empty()) return JobList{};
  auto accounted = output_of(sacct_arguments(ids), deadline);
  if (accounted.ok()) return parse_job_table("sacct", *accounted);
  JobList all;
  for (const std::string& id : ids) {
    auto out = output_of({"scontrol", "--oneliner", "show", "job", id}, deadline);
    if (!out.ok() && out.error().code() == Code::not_found) continue;
    if (!out.ok()) return std::move(out).error();
    OK_OR_RETURN(list, parse_job_records(*out));
    // scontrol names a task of an array by a number of its own; we asked for this one.
    if (list.jobs.size() == 1) list.jobs.front().id = id;
    all.jobs.insert(all.jobs.end(), list.jobs.begin(), list.jobs.end());
    all.damaged += list.damaged;
  }
  return all;
}

Status SlurmCommands::cancel(std::string_view id, Deadline deadline) {
  return output_of({"scancel", std::string(id)}, deadline).status();
}

Status SlurmCommands::cancel_step(std::string_view id, std::string_view step, Deadline deadline) {
  return output_of({"scancel", format("{}.{}", id, step)}, deadline).status();
}

}  // namespace stoker::slurm
