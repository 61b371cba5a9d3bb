// A run gets into the queue so:
//   1. everything that can be refused is refused
//   2. the run folder, attempts/<n>/ by mkdir, job.yaml and job.sbatch inside
//   3. the event `submitting`, with the comment that the script carries
//   4. sbatch, once                                         <- the job exists from here on
//   5. the event `submitted` with the job's id, or `submit_failed` with the reason
// A crash between 3 and 5 leaves an open submission: whoever looks at the run asks the scheduler for the
// comment. The job itself needs no record of 5: its script names the attempt's folder.
#include "launch/submit.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/file.h"
#include "base/version.h"
#include "launch/code/snapshot.h"
#include "launch/environment.h"
#include "launch/new_run.h"
#include "launch/shell/container.h"
#include "launch/shell/shell_environment.h"
#include "launch/take_attempt.h"
#include "rank/environment.h"
#include "record/run_events.h"
#include "record/state.h"

namespace stoker::launch {
namespace {

// A task is a rank, or with torchrun a node, which then has the cores of its ranks.
void describe_tasks(const job::Job& job, slurm::BatchScript* script) {
  const job::Resources& resources = job.resources;
  const std::uint32_t cpus = resources.cpus_per_rank.value_or(0);
  script->tasks_per_node = static_cast<int>(resources.ranks_per_node);
  script->cpus_per_task = static_cast<int>(cpus);
  if (job.launcher == job::Launcher::torchrun) {
    script->tasks_per_node = 1;
    script->cpus_per_task = static_cast<int>(std::max(1u, cpus) * resources.ranks_per_node);
  } else if (resources.world_size() != resources.nodes * resources.ranks_per_node) {
    script->tasks_per_node = 0;
    script->tasks = static_cast<int>(resources.world_size());
  }
}

slurm::BatchScript describe(const Request& request, const record::Attempt& attempt, const std::string& run_id,
                            const JobOrder& order) {
  const job::Job& job = request.job;
  const job::Resources& resources = job.resources;
  const Path folder = std::filesystem::absolute(attempt.folder()).lexically_normal();
  slurm::BatchScript script;
  script.title =
      format("{}, attempt {} of run {}, written by stoker {}", job.name, attempt.number(), run_id, version());
  script.job_name = job.name;
  script.comment = comment_of(run_id, attempt.number());
  script.account = job.slurm.account.value_or("");
  script.partition = job.slurm.partition.value_or("");
  script.qos = job.slurm.qos.value_or("");
  script.reservation = job.slurm.reservation.value_or("");
  script.nodes = static_cast<int>(resources.nodes);
  describe_tasks(job, &script);
  script.gpus_per_node = static_cast<int>(resources.gpus_per_node());
  script.ranks_per_gpu = static_cast<int>(resources.ranks_per_gpu);
  script.memory_per_node = resources.memory_per_node;
  script.time = job.chain.is_on() ? job.chain.time_per_link : resources.time;
  if (script.time) *script.time *= order.bundle;
  script.signal_before = slurm::signal_before(job.checkpoint.before_end, script.time);
  script.array = order.array;
  script.dependency = order.dependency;
  script.directory = job.working_directory;
  script.log = folder / attempt.batch_log().filename();
  script.extra = job.slurm.extra;
  script.command = {request.stoker.string(), "run", folder.string()};
  std::vector<std::string> told;
  if (order.from > 0) told.push_back(format("{}={}", kArrayFromVariable, order.from));
  if (order.link > 1) told.push_back(format("{}={}", kArrayLinkVariable, order.link));
  if (!told.empty()) {
    told.insert(told.begin(), "env");
    script.command.insert(script.command.begin(), told.begin(), told.end());
  }
  return script;
}

std::string with_place(std::string_view key, const job::Job& job) {
  return format("{}, {}", key, job.origins.where(key));
}

// The keys with which the job itself says how large it is.
std::vector<std::string_view> sizes_asked_for(const job::Job& job) {
  std::vector<std::string_view> keys = {"resources.memory_per_node",
                                        "resources.gpus_per_rank",
                                        "resources.ranks_per_gpu",
                                        "resources.cpus_per_rank",
                                        "resources.ranks_per_node",
                                        "resources.ranks",
                                        "resources.nodes"};
  std::erase_if(keys, [&](std::string_view key) { return job.origins.where(key) == "default"; });
  return keys;
}

// What #SBATCH lines cannot say of a path.
Status check_path(const job::Job& job, std::string_view key, const std::string& path) {
  const bool has_control = std::any_of(
      path.begin(), path.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (has_control)
    return invalid("{}: Slurm takes no control character in a path ({})", printable(path),
                   with_place(key, job));
  // In the name of a log it would switch off the %% before a per cent sign.
  if (key == "record.directory" && path.find('\\') != std::string::npos)
    return invalid("{}: Slurm takes no backslash in the path of a log ({})", printable(path),
                   with_place(key, job));
  return {};
}

// A chain is an array from 1 on; one of a single link is a plain job.
int links_here() {
  const auto last = environment_value("SLURM_ARRAY_TASK_MAX");
  std::int64_t links = 0;
  const bool is_array = last && parse_number(*last, &links) && links > 0;
  return is_array ? static_cast<int>(std::min<std::int64_t>(links, 1 << 20)) : 1;
}

}  // namespace

std::string comment_of(const std::string& run_id, int attempt) {
  return format("stoker:{}/{}", run_id, attempt);
}

// Where the user can change what sbatch refuses: the keys whose word is in its complaint, else those that
// only sbatch understands.
Status with_key(Status refused, const job::Job& job) {
  const std::string lower = to_lower(refused.message());
  const auto said = [&](std::string_view word) { return lower.find(word) != std::string::npos; };
  std::vector<std::string_view> keys;
  if (said("node count") || said("node configuration")) keys = sizes_asked_for(job);
  if (said("qos") && job.slurm.qos) keys = {"slurm.qos"};
  if (said("reservation") && job.slurm.reservation) keys = {"slurm.reservation"};
  if (said("time limit") && job.resources.time) keys = {"resources.time"};
  if (said("time limit") && job.chain.is_on()) keys = {"chain.time_per_link"};
  if (said("submit limit") && job.array.is_on()) keys = {"array.bundle"};
  if (said("memory") && job.resources.memory_per_node) keys = {"resources.memory_per_node"};
  if (said("partition") && job.slurm.partition) keys = {"slurm.partition"};
  if (said("account") && job.slurm.account) keys = {"slurm.account"};
  if (keys.empty() && !job.slurm.extra.empty()) keys = {"slurm.extra"};
  if (keys.empty() || refused.code() != Code::invalid) return refused;
  std::vector<std::string> places;
  for (std::string_view key : keys) places.push_back(with_place(key, job));
  return Status(refused.code(), format("{} ({})", refused.message(), join(places, "; ")));
}

Status check_submission(const Request& request) {
  RETURN_IF_ERROR(check_places(request.job));
  RETURN_IF_ERROR(rank_command(request.job, request.stoker).status());
  if (request.job.launcher == job::Launcher::single && request.job.resources.nodes > 1) {
    return invalid("resources.nodes: {} asked for, but launcher: single starts ranks on one node only",
                   request.job.resources.nodes)
        .cure("stoker submit --set launcher=srun");
  }
  RETURN_IF_ERROR(check_path(request.job, "working_directory", request.job.working_directory.string()));
  RETURN_IF_ERROR(check_path(request.job, "record.directory", request.job.record.directory.string()));
  // The folder's name is made later; what can be wrong with a script is in its path and in the job.
  const record::Attempt attempt(request.job.record.directory / "run/attempts/1", 1);
  return batch_script(request, attempt, "run").status();
}

JobOrder order_of(const Links& links, std::span<const Predecessor> predecessors) {
  return {links.count > 1 ? format("1-{}%1", links.count) : "", dependency_of(predecessors)};
}

Result<std::string> batch_script(const Request& request, const record::Attempt& attempt,
                                 const std::string& run_id, const JobOrder& order) {
  return slurm::write_batch_script(describe(request, attempt, run_id, order));
}

Links links_of(const Request& request) {
  return count_links(request.job, measured_pace(request.job, request.resumed));
}

Path folder_of_job_file(const Request& request) {
  std::error_code error;
  const Path here = std::filesystem::current_path(error);
  return (here / Path(request.job_file).parent_path() / "").lexically_normal();
}

Result<Submission> enqueue(const record::RunFolder& folder, const record::Attempt& attempt,
                           const QueueEntry& entry, slurm::Scheduler& scheduler, Deadline deadline) {
  OK_OR_RETURN(events, record::EventWriter::open(attempt.submit_events()));
  RETURN_IF_ERROR(write_file(attempt.batch_script(), entry.script));
  RETURN_IF_ERROR(write_event(
      events, record::Submitting{
                  .host = record::this_process().host, .comment = entry.comment, .tasks = entry.tasks}));
  // After this point a job may exist.
  auto job = scheduler.submit(std::filesystem::absolute(attempt.batch_script()), deadline);
  const Code code = job.status().code();
  if (code == Code::timeout || code == Code::corrupt) {
    return std::move(job).error().with_context(
        format("run {}: whether it is in the queue is not known", folder.id()));
  }
  if (!job.ok()) {
    const Status refused = entry.explain ? entry.explain(job.error()) : job.error();
    (void)write_event(events, record::SubmitFailed{.reason = std::string(refused.message())});
    return refused;
  }
  const record::Submitted taken{.scheduler_job = *job, .links = entry.links, .after = entry.after};
  RETURN_IF_ERROR(
      write_event(events, taken).with_context(format("job {} is in the queue, but not recorded", *job)));
  return Submission{folder, attempt, *job, {}, {}};
}

Result<Submission> submit(const Request& request, slurm::Scheduler& scheduler, Deadline deadline) {
  RETURN_IF_ERROR(check_submission(request));
  // A module that is not there is told now, and not after hours in the queue.
  OK_OR_RETURN(loaded, load_environment(request.job.environment, current_environment(), deadline));
  RETURN_IF_ERROR(check_container(request.job, rank::variable(loaded.variables, "PATH")));
  OK_OR_RETURN(command, rank_command(request.job, request.stoker));
  OK_OR_RETURN(waits_for, find_predecessors(request.job, folder_of_job_file(request), &scheduler, deadline));
  const Links links = links_of(request);
  const bool copies_code = wants_snapshot(request.job, request.resumed);
  auto listing = copies_code ? list_code(request.job) : Result<CodeListing>(CodeListing{});
  if (!listing.ok()) return std::move(listing).error();
  auto made = request.resumed
                  ? Result<record::RunFolder>(*request.resumed)
                  : make_run_folder(request, {.command = command, .hosts = {}, .scheduler_job = ""},
                                    to_yaml(request.job));
  if (!made.ok()) return std::move(made).error();
  Request used = request;
  used.job.after = folders_of(waits_for);
  if (copies_code) {
    OK_OR_RETURN(snapshot, take_snapshot(*listing, *made));
    used.job.working_directory = snapshot.directory;
  }
  OK_OR_RETURN(attempt, take_attempt(used, *made, "", to_yaml(used.job)));
  OK_OR_RETURN(script, batch_script(used, attempt, made->id(), order_of(links, waits_for)));
  const auto explain = [&](Status refused) { return with_key(std::move(refused), request.job); };
  OK_OR_RETURN(submitted, enqueue(*made, attempt,
                                  {.script = script,
                                   .comment = comment_of(made->id(), attempt.number()),
                                   .links = links.count,
                                   .after = used.job.after,
                                   .explain = explain},
                                  scheduler, deadline));
  submitted.links = links;
  submitted.waits_for = std::move(waits_for);
  return std::move(submitted);
}

bool was_submitted(const record::RunFolder& folder) {
  const auto attempts = folder.attempts();
  return attempts.ok() && std::any_of(attempts->begin(), attempts->end(), [](const record::Attempt& attempt) {
           return path_exists(attempt.submit_events());
         });
}

Result<Request> prepared_request(const Path& attempt_folder) {
  const Path folder = std::filesystem::absolute(attempt_folder / "").lexically_normal().parent_path();
  std::int64_t number = 0;
  if (folder.parent_path().filename() != "attempts" || !parse_number(folder.filename().string(), &number)) {
    return invalid("{}: a folder, and no attempt of a run", printable(attempt_folder.string()))
        .cure("stoker run job.yaml");
  }
  OK_OR_RETURN(run, record::RunFolder::open(folder.parent_path().parent_path()));
  const record::Attempt attempt(folder, static_cast<int>(number));
  if (!path_exists(attempt.job())) return not_found("{}: no such attempt", printable(folder.string()));
  OK_OR_RETURN(job, job::load(attempt.job()));
  Request request{.job = std::move(job)};
  request.job_file = run.description().job_file;
  request.resumed = run;
  request.prepared = attempt;
  if (request.job.chain.is_on()) request.links = links_here();
  return request;
}

Environment scheduler_environment(const job::Job& job, Environment environment) {
  // Variables win over #SBATCH lines, and the job file should win over the shell.
  if (job.slurm.account) rank::unset_variable(environment, "SBATCH_ACCOUNT");
  if (job.slurm.partition) rank::unset_variable(environment, "SBATCH_PARTITION");
  if (job.slurm.qos) rank::unset_variable(environment, "SBATCH_QOS");
  if (job.slurm.reservation) rank::unset_variable(environment, "SBATCH_RESERVATION");
  return environment;
}

}  // namespace stoker::launch
