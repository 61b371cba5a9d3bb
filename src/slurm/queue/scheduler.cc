#include "slurm/queue/scheduler.h"

#include <algorithm>
#include <array>
#include <unistd.h>

namespace stoker::slurm {
namespace {

// Variables that identify the cluster and the user. All other SLURM_ variables belong to a job.
constexpr std::array<std::string_view, 4> kClusterVariables = {"SLURM_CONF", "SLURM_CONF_SERVER",
                                                               "SLURM_CLUSTERS", "SLURM_JWT"};
// Variables override #SBATCH lines. These correspond to lines that the script has or must not have.
constexpr std::array<std::string_view, 24> kSetByScript = {
    "SBATCH_JOB_NAME",        "SBATCH_TIMELIMIT",     "SBATCH_SIGNAL",
    "SBATCH_REQUEUE",         "SBATCH_NO_REQUEUE",    "SBATCH_OPEN_MODE",
    "SBATCH_OUTPUT",          "SBATCH_ERROR",         "SBATCH_COMMENT",
    "SBATCH_ARRAY_INX",       "SBATCH_GPUS",          "SBATCH_GPUS_PER_NODE",
    "SBATCH_GPUS_PER_TASK",   "SBATCH_CPUS_PER_TASK", "SBATCH_MEM_PER_NODE",
    "SBATCH_MEM_PER_CPU",     "SBATCH_MEM_PER_GPU",   "SBATCH_NTASKS",
    "SBATCH_NTASKS_PER_NODE", "SBATCH_NNODES",        "SBATCH_NODES",
    "SBATCH_CHDIR",           "SBATCH_WORKDIR",       "SBATCH_EXPORT"};
// With these variables sbatch does not simply submit.
constexpr std::array<std::string_view, 3> kNotSubmitting = {"SBATCH_WAIT", "SBATCH_TEST_ONLY",
                                                            "SBATCH_PARSABLE"};

struct KnownError {
  std::string_view words;
  Code code;
};
// Parts of slurm_strerror() texts; the first match decides.
constexpr KnownError kKnownErrors[] = {
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

// The controller is overloaded: a retry with backoff helps.
constexpr std::string_view kBusy[] = {"Socket timed out", "Zero Bytes were transmitted",
                                      "Resource temporarily unavailable", "temporarily unable to accept",
                                      "Slurm backup controller in standby mode"};
constexpr Duration kFirstPause = std::chrono::milliseconds(250);
// A command line argument has at most 128 KiB.
constexpr std::size_t kMaxIdsAtOnce = 8000;
// Few enough to query their steps, too.
constexpr std::size_t kFewJobs = 64;

bool is_busy(const Status& status) {
  return status.code() == Code::unavailable &&
         std::any_of(std::begin(kBusy), std::end(kBusy), [&](std::string_view words) {
           return status.message().find(words) != std::string_view::npos;
         });
}

// Adds the facts that only accounting knows.
void merge_accounting(JobInfo& job, const JobInfo& accounted) {
  job.failed = accounted.failed;
  if (accounted.worst_step_code) job.worst_step_code = accounted.worst_step_code;
  if (!job.exit_code) {
    job.exit_code = accounted.exit_code;
    job.exit_signal = accounted.exit_signal;
  }
}

// "sbatch: error: Batch job submission failed: Invalid account" as "Invalid account".
std::string_view without_prefix(std::string_view line, std::string_view program) {
  const auto drop = [&](std::string_view prefix) {
    if (line.starts_with(prefix)) line = trim(line.substr(prefix.size()));
  };
  drop(format("{}:", program));
  drop("fatal:");
  drop("error:");
  drop("Batch job submission failed:");
  drop("allocation failure:");  // of --test-only
  drop("slurm_load_jobs error:");
  return line;
}

}  // namespace

bool has_preempt_time(std::string_view record) {
  constexpr std::string_view kKey = " PreemptTime=";
  const std::size_t at = record.find(kKey);
  if (at == std::string_view::npos) return false;
  const std::string_view value = record.substr(at + kKey.size());
  return parse_slurm_time(value.substr(0, value.find_first_of(" \n"))).has_value();
}

Result<std::int64_t> parse_max_array_tasks(std::string_view config) {
  std::optional<std::int64_t> indices;
  std::optional<std::int64_t> tasks;
  for (std::string_view line : split(config, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view value = trim(line.substr(equals + 1));
    std::int64_t number = 0;
    if (trim(line.substr(0, equals)) == "MaxArraySize" && parse_number(value, &number)) indices = number;
    if (trim(line.substr(0, equals)) != "SchedulerParameters") continue;
    for (std::string_view parameter : split(value, ',')) {
      constexpr std::string_view kTasks = "max_array_tasks=";
      if (parameter.starts_with(kTasks) && parse_number(parameter.substr(kTasks.size()), &number))
        tasks = number;
    }
  }
  if (!indices) return corrupt("scontrol: printed no MaxArraySize");
  return std::max<std::int64_t>(0, std::min(*indices - 1, tasks.value_or(*indices)));
}

std::int64_t parse_max_jobs(std::string_view config) {
  for (std::string_view line : split(config, '\n')) {
    const std::size_t equals = line.find('=');
    std::int64_t number = 0;
    if (equals != std::string_view::npos && trim(line.substr(0, equals)) == "MaxJobCount" &&
        parse_number(trim(line.substr(equals + 1)), &number))
      return number;
  }
  return 0;
}

std::vector<std::string> sbatch_arguments(const Path& script) {
  return {"sbatch", "--parsable", script.string()};
}

std::vector<std::string> squeue_arguments() {
  // Free text is last, because it may contain a '|'. All states are listed, because recently ended jobs
  // matter, too.
  return {"squeue", "--all", format("--user={}", ::geteuid()), "--states=all",
          "--format=%i|%T|%r|%S|%e|%P|%N|%k"};
}

std::vector<std::string> squeue_arguments(std::span<const std::string> ids) {
  return {"squeue",
          "--all",
          "--states=all",
          "--array",
          "--jobs=" + join(ids, ","),
          "--format=%i|%T|%r|%S|%e|%P|%N|%u|%j"};
}

std::vector<std::string> sacct_arguments(std::span<const std::string> ids, Detail detail) {
  std::vector<std::string> words = {
      "sacct", "--parsable2", "--jobs=" + join(ids, ","),
      "--format=JobID,State,ExitCode,DerivedExitCode,Start,End,Partition,NodeList,User,JobName"};
  if (detail == Detail::jobs) words.emplace_back("--allocations");
  return words;
}

Environment submission_environment(Environment base, OptionPrecedence precedence) {
  const bool is_in_job =
      std::any_of(base.begin(), base.end(), [](const auto& entry) { return entry.first == "SLURM_JOB_ID"; });
  std::erase_if(base, [&](const auto& entry) {
    const std::string_view name = entry.first;
    if (std::find(kClusterVariables.begin(), kClusterVariables.end(), name) != kClusterVariables.end())
      return false;
    if (std::find(kNotSubmitting.begin(), kNotSubmitting.end(), name) != kNotSubmitting.end()) return true;
    const bool is_set = std::find(kSetByScript.begin(), kSetByScript.end(), name) != kSetByScript.end();
    if (is_set && precedence == OptionPrecedence::script) return true;
    if (precedence == OptionPrecedence::shell && !is_in_job) return false;
    return name.starts_with("SLURM_") || name.starts_with("SLURMD_") || name.starts_with("SRUN_");
  });
  return base;
}

Status command_error(std::string_view program, const Captured& captured) {
  std::vector<std::string> lines;
  Code code = Code::invalid;
  for (std::string_view line : split(captured.err, '\n')) {
    const bool is_fatal = trim(line).starts_with(format("{}: fatal:", program));
    line = without_prefix(trim(line), program);
    // Lines before a fatal error describe how it came about.
    if (is_fatal) lines.clear();
    if (!line.empty() && lines.size() < 3) lines.push_back(printable(line.substr(0, 500)));
    if (is_fatal) break;
  }
  const std::string error_text = join(lines, "; ");
  for (const KnownError& known : kKnownErrors) {
    if (error_text.find(known.words) == std::string::npos) continue;
    code = known.code;
    break;
  }
  if (error_text.empty()) return unavailable("{}: {} without output", program, to_text(captured.exit));
  Status status(code, format("{}: {}", program, error_text));
  const bool has_no_cluster = error_text.find("establish a configuration source") != std::string::npos ||
                              error_text.find("process configuration file") != std::string::npos;
  return has_no_cluster
             ? std::move(status).cure(
                   "export SLURM_CONF=FILE on a machine of a cluster, eval \"$(stoker lab env)\" for a lab")
             : status;
}

Result<std::string> parse_test(std::string_view text) {
  constexpr std::string_view kStart = "sbatch: Job ";
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with(kStart)) continue;
    line.remove_prefix(kStart.size());
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos || !is_job_id(line.substr(0, blank))) continue;
    return printable(trim(line.substr(blank)));
  }
  return corrupt("sbatch --test-only: reports no start time: '{}'", printable(text.substr(0, 200)));
}

SlurmCommands::SlurmCommands(Environment environment, OptionPrecedence precedence)
    : environment_(submission_environment(std::move(environment), precedence)),
      rate_limiter_(CallRateLimiter::for_user(variable(environment_, "XDG_RUNTIME_DIR"),
                                              variable(environment_, "SLURM_CONF"),
                                              variable(environment_, std::string(kCallsPerSecond)))) {}

namespace {

// With the last line that the program printed, which may have the reason.
Status no_answer(const std::string& program, Duration patience, std::string_view printed) {
  printed = trim(printed);
  const std::string_view last = trim(printed.substr(printed.rfind('\n') + 1));
  if (last.empty()) {
    return timeout("{}: no answer within {}", program, rounded_duration(patience))
        .cure("scontrol ping shows whether Slurm's controller is up");
  }
  std::string_view line = last.substr(0, 300);
  for (std::string_view prefix :
       {std::string_view(program), std::string_view(": error: "), std::string_view(": ")}) {
    if (line.starts_with(prefix)) line.remove_prefix(prefix.size());
  }
  Status status = timeout("{}: no answer within {}; its last message: {}", program,
                          rounded_duration(patience), printable(line));
  // sbatch repeats the request while the queue is full.
  if (line.find("temporarily unable to accept job") != std::string_view::npos)
    return std::move(status).cure(
        "squeue --me      (the queue may be full: scontrol show config | grep MaxJobCount)");
  return std::move(status).cure("scontrol ping shows whether Slurm's controller is up");
}

}  // namespace

// An idempotent query: rate-limited, and repeated while the controller is busy.
Result<std::string> SlurmCommands::query(std::vector<std::string> argv, Deadline deadline) {
  for (Duration pause = kFirstPause;; pause *= 2) {
    STOKER_RETURN_IF_ERROR(rate_limiter_.acquire(deadline).with_context(argv.at(0)));
    auto out = run_for_output(argv, deadline);
    if (out.ok() || !is_busy(out.error()) || deadline.left() < 2 * pause) return out;
    RealClock().sleep(pause);
  }
}

Result<Captured> SlurmCommands::run_command(std::vector<std::string> argv, Deadline deadline) {
  const std::string program = argv.at(0);
  Command command;
  command.argv = std::move(argv);
  command.environment = environment_;
  // Numeric times: independent of time zones and site formats. Not for sbatch, whose environment is passed to
  // the job.
  if (program != "sbatch") {
    std::erase_if(*command.environment, [](const auto& entry) { return entry.first == "SLURM_TIME_FORMAT"; });
    command.environment->emplace_back("SLURM_TIME_FORMAT", "%s");
  }
  const Duration patience = std::chrono::round<std::chrono::seconds>(deadline.left());
  const MonoTime begin = RealClock().mono();
  Captured partial;
  auto captured = run_program(command, deadline, 16_MiB, &partial);
  ++calls_.count;
  calls_.spent += RealClock().mono() - begin;
  if (!captured.ok()) {
    const Status error = std::move(captured).error();
    if (error.code() == Code::timeout) {
      return no_answer(program, patience, partial.err);
    }
    if (error.code() != Code::not_found) return error;
    return unavailable("{}: program not found in PATH (is this a machine with Slurm?)", program)
        .cure("module load slurm, or on a machine without Slurm: stoker run JOB");
  }
  if (!captured->exit.ok()) return command_error(program, *captured);
  return std::move(*captured);
}

Result<std::string> SlurmCommands::run_for_output(std::vector<std::string> argv, Deadline deadline) {
  STOKER_ASSIGN_OR_RETURN(captured, run_command(std::move(argv), deadline));
  return std::move(captured.out);
}

Result<std::string> SlurmCommands::test(const Path& script, Deadline deadline) {
  STOKER_ASSIGN_OR_RETURN(captured, run_command({"sbatch", "--test-only", script.string()}, deadline));
  return parse_test(captured.err);
}

Result<ClusterInfo> SlurmCommands::cluster(Deadline deadline) {
  ClusterInfo facts;
  STOKER_ASSIGN_OR_RETURN(config, run_for_output({"scontrol", "show", "config"}, deadline));
  STOKER_RETURN_IF_ERROR(parse_config(config, facts));
  STOKER_ASSIGN_OR_RETURN(found, partitions(deadline));
  facts.partitions = std::move(found);
  const auto shares =
      run_for_output({"sshare", "--noheader", "--parsable2", "--format=Account,User"}, deadline);
  if (shares.ok()) facts.accounts = parse_accounts(*shares);
  return facts;
}

Result<std::vector<PartitionNodes>> SlurmCommands::partitions(Deadline deadline) {
  STOKER_ASSIGN_OR_RETURN(nodes, run_for_output(sinfo_arguments(), deadline));
  return parse_partitions(nodes);
}

Result<std::string> SlurmCommands::submit(const Path& script, Deadline deadline) {
  STOKER_ASSIGN_OR_RETURN(out, run_for_output(sbatch_arguments(script), deadline));
  return parse_sbatch_output(out);
}

Result<JobList> SlurmCommands::jobs(Deadline deadline) {
  STOKER_ASSIGN_OR_RETURN(out, query(squeue_arguments(), deadline));
  return parse_job_table("squeue", out);
}

Result<JobList> SlurmCommands::query_accounting(std::span<const std::string> ids, Detail detail,
                                                Deadline deadline) {
  JobList all;
  for (std::size_t at = 0; at < ids.size(); at += kMaxIdsAtOnce) {
    const auto some = ids.subspan(at, std::min(kMaxIdsAtOnce, ids.size() - at));
    STOKER_ASSIGN_OR_RETURN(out, query(sacct_arguments(some, detail), deadline));
    STOKER_ASSIGN_OR_RETURN(list, parse_job_table("sacct", out));
    all.jobs.insert(all.jobs.end(), list.jobs.begin(), list.jobs.end());
    all.damaged += list.damaged;
  }
  return all;
}

Result<JobList> SlurmCommands::find(std::span<const std::string> ids, Deadline deadline) {
  if (ids.empty()) return JobList{};
  auto accounted = query_accounting(ids, ids.size() <= kFewJobs ? Detail::steps : Detail::jobs, deadline);
  if (accounted.ok()) return accounted;
  if (ids.size() == 1) {
    const auto out = query({"scontrol", "--oneliner", "--details", "show", "job", ids[0]}, deadline);
    if (!out.ok() && out.error().code() == Code::not_found) return JobList{};
    if (!out.ok()) return out.error();
    STOKER_ASSIGN_OR_RETURN(list, parse_job_records(*out));
    // scontrol may report the raw id of an array task: keep the requested id.
    if (list.jobs.size() == 1) list.jobs.front().id = ids[0];
    return std::move(list);
  }
  // One query for all of them.
  const auto some = ids.first(std::min(kMaxIdsAtOnce, ids.size()));
  STOKER_ASSIGN_OR_RETURN(out, query(squeue_arguments(some), deadline));
  return parse_job_table("squeue", out);
}

Result<JobList> SlurmCommands::describe(std::string_view id, Deadline deadline) {
  const std::vector<std::string> ids = {std::string(id)};
  JobList list;
  const auto listed = query(squeue_arguments(ids), deadline);
  if (!listed.ok() && listed.error().code() != Code::not_found) return listed.error();
  if (listed.ok()) {
    STOKER_ASSIGN_OR_RETURN(parsed, parse_job_table("squeue", *listed));
    list = std::move(parsed);
  }
  if (list.jobs.size() == 1) {
    // More details for a single job: exit codes, log, number of starts.
    const auto shown =
        query({"scontrol", "--oneliner", "--details", "show", "job", list.jobs[0].id}, deadline);
    auto record = shown.ok() ? parse_job_records(*shown) : Result<JobList>(shown.status());
    if (record.ok() && record->jobs.size() == 1) {
      record->jobs[0].id = list.jobs[0].id;
      list = *std::move(record);
    }
  }
  const bool is_single = list.jobs.size() == 1;
  if (!list.jobs.empty() && !(is_single && is_over(list.jobs[0].state))) return list;
  auto accounted = query_accounting(ids, Detail::steps, deadline);
  if (is_single) {
    const JobInfo* more = accounted.ok() ? accounted->find(list.jobs[0].id) : nullptr;
    if (more != nullptr) merge_accounting(list.jobs[0], *more);
    return list;
  }
  if (accounted.ok() && !accounted->jobs.empty()) return accounted;
  if (accounted.ok()) return not_found("job {}: unknown to Slurm", id);
  return not_found("job {}: not (or no longer) known to Slurm's controller, and {}", id,
                   accounted.error().message());
}

Status SlurmCommands::cancel(std::string_view id, Deadline deadline) {
  return run_for_output({"scancel", std::string(id)}, deadline).status();
}

Status SlurmCommands::cancel_pending(std::string_view id, Deadline deadline) {
  return run_for_output({"scancel", "--state=PENDING", std::string(id)}, deadline).status();
}

Status SlurmCommands::set_array_limit(std::string_view id, std::uint32_t at_once, Deadline deadline) {
  return run_for_output(
             {"scontrol", "update", format("JobId={}", id), format("ArrayTaskThrottle={}", at_once)},
             deadline)
      .status();
}

Status SlurmCommands::requeue(std::string_view id, Deadline deadline) {
  const Status status = run_for_output({"scontrol", "requeue", std::string(id)}, deadline).status();
  // Slurm requeues jobs of a failed node automatically, possibly before this call (ESLURM_JOB_PENDING).
  const bool waits_already = status.message().find("Job is pending execution") != std::string_view::npos;
  return waits_already ? Status() : status;
}

Result<bool> SlurmCommands::is_being_preempted(std::string_view id, Deadline deadline) {
  STOKER_ASSIGN_OR_RETURN(
      out, run_for_output({"scontrol", "--oneliner", "show", "job", std::string(id)}, deadline));
  return has_preempt_time(out);
}

Result<std::int64_t> SlurmCommands::max_jobs(Deadline deadline) {
  STOKER_ASSIGN_OR_RETURN(out, query({"scontrol", "show", "config"}, deadline));
  return parse_max_jobs(out);
}

Result<std::int64_t> SlurmCommands::max_array_tasks(Deadline deadline) {
  STOKER_ASSIGN_OR_RETURN(out, run_for_output({"scontrol", "show", "config"}, deadline));
  return parse_max_array_tasks(out);
}

Status SlurmCommands::cancel_step(std::string_view id, std::string_view step, Deadline deadline) {
  return run_for_output({"scancel", format("{}.{}", id, step)}, deadline).status();
}

}  // namespace stoker::slurm
