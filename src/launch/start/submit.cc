// Protocol of a submission:
//   1. refuse everything that can be refused
//   2. create the run folder and attempts/<n>/ by mkdir, with job.yaml and job.sbatch
//   3. write the event `submitting`, with the comment of the script
//   4. call sbatch once                                     <- the job exists from here on
//   5. write the event `submitted` with the job's id, or `submit_failed` with the reason
//   6. after a refusal: remove a run that is new
// A crash between 3 and 5 leaves an open submission: later commands find the job by its comment. The job
// itself does not need the record of 5: its script names the attempt's folder.
#include "launch/start/submit.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/file.h"
#include "base/version.h"
#include "launch/start/claim_attempt.h"
#include "launch/start/container.h"
#include "launch/start/environment.h"
#include "launch/start/new_run.h"
#include "launch/start/shell_environment.h"
#include "launch/start/snapshot.h"
#include "record/run_events.h"
#include "record/state.h"

namespace stoker::launch {
namespace {

// A task is a rank. With torchrun it is a node, which has the cores of its ranks.
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
  const Path folder = std::filesystem::absolute(attempt.folder()).lexically_normal();
  slurm::BatchScript script = job_script(job);
  script.title =
      format("{}, attempt {} of run {}, written by stoker {}", job.name, attempt.number(), run_id, version());
  script.comment = comment_of(run_id, attempt.number());
  if (script.time) *script.time *= order.bundle;
  script.signal_before = slurm::signal_before(job.checkpoint.before_end, script.time);
  script.array = order.array;
  script.dependency = order.dependency;
  script.log = folder / attempt.batch_log().filename();
  script.command = {request.stoker.string(), "run", folder.string()};
  std::vector<std::string> variables;
  if (order.from > 0) variables.push_back(format("{}={}", kArrayFromVariable, order.from));
  if (order.link > 1) variables.push_back(format("{}={}", kArrayLinkVariable, order.link));
  if (!variables.empty()) {
    variables.insert(variables.begin(), "env");
    script.command.insert(script.command.begin(), variables.begin(), variables.end());
  }
  return script;
}

std::string with_origin(std::string_view key, const job::Job& job) {
  return format("{}, {}", key, job.origins.where(key));
}

// The keys of the job that request a size.
std::vector<std::string_view> requested_size_keys(const job::Job& job) {
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

// Paths that #SBATCH lines cannot express.
Status check_path(const job::Job& job, std::string_view key, const std::string& path) {
  const bool has_control = std::any_of(
      path.begin(), path.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (has_control)
    return invalid("{}: Slurm allows no control characters in paths ({})", printable(path),
                   with_origin(key, job));
  // In a log name it would disable the %% before a per cent sign.
  if (key == "record.directory" && path.find('\\') != std::string::npos)
    return invalid("{}: Slurm allows no backslash in log paths ({})", printable(path), with_origin(key, job));
  return {};
}

// A chain is an array from 1; a chain with one link is a plain job.
int links_from_environment() {
  const auto last = environment_value("SLURM_ARRAY_TASK_MAX");
  std::int64_t links = 0;
  const bool is_array = last && parse_number(*last, &links) && links > 0;
  return is_array ? static_cast<int>(std::min<std::int64_t>(links, 1 << 20)) : 1;
}

}  // namespace

slurm::BatchScript job_script(const job::Job& job) {
  const job::Resources& resources = job.resources;
  slurm::BatchScript script;
  script.job_name = job.name;
  script.account = job.slurm.account.value_or("");
  script.partition = job.slurm.partition.value_or("");
  script.qos = job.slurm.qos.value_or("");
  script.reservation = job.slurm.reservation.value_or("");
  script.nodes = static_cast<int>(resources.nodes);
  describe_tasks(job, &script);
  script.gpus_per_node = static_cast<int>(resources.gpus_per_node());
  script.ranks_per_gpu = static_cast<int>(resources.ranks_per_gpu);
  script.memory_per_node = resources.memory_per_node;
  script.time = job.chain.is_enabled() ? job.chain.time_per_link : resources.time;
  script.signal_before = slurm::signal_before(job.checkpoint.before_end, script.time);
  script.directory = job.working_directory;
  script.extra = job.slurm.extra;
  return script;
}

std::string comment_of(const std::string& run_id, int attempt) {
  return format("stoker:{}/{}", run_id, attempt);
}

// Adds the keys responsible for sbatch's error: the keys in its message, else the keys that only sbatch
// checks.
Status with_key(Status refused, const job::Job& job) {
  const std::string lower = to_lower(refused.message());
  const auto mentions = [&](std::string_view word) { return lower.find(word) != std::string::npos; };
  std::vector<std::string_view> keys;
  if (mentions("node count") || mentions("node configuration")) keys = requested_size_keys(job);
  if (mentions("qos") && job.slurm.qos) keys = {"slurm.qos"};
  if (mentions("reservation") && job.slurm.reservation) keys = {"slurm.reservation"};
  if (mentions("time limit") && job.resources.time) keys = {"resources.time"};
  if (mentions("time limit") && job.chain.is_enabled()) keys = {"chain.time_per_link"};
  if (mentions("submit limit") && job.array.is_enabled()) keys = {"array.bundle"};
  if (mentions("memory") && job.resources.memory_per_node) keys = {"resources.memory_per_node"};
  if (mentions("partition") && job.slurm.partition) keys = {"slurm.partition"};
  if (mentions("account") && job.slurm.account) keys = {"slurm.account"};
  if (keys.empty() && !job.slurm.extra.empty()) keys = {"slurm.extra"};
  if (keys.empty() || refused.code() != Code::invalid) return refused;
  std::vector<std::string> places;
  for (std::string_view key : keys) places.push_back(with_origin(key, job));
  return Status(refused.code(), format("{} ({})", refused.message(), join(places, "; ")));
}

Status check_submission(const Request& request) {
  STOKER_RETURN_IF_ERROR(check_paths(request.job));
  if (request.job.launcher == job::Launcher::single && request.job.resources.nodes > 1) {
    return invalid("resources.nodes: {} requested, but launcher: single starts ranks on one node only",
                   request.job.resources.nodes)
        .cure("stoker submit --set launcher=srun");
  }
  STOKER_RETURN_IF_ERROR(
      check_path(request.job, "working_directory", request.job.working_directory.string()));
  STOKER_RETURN_IF_ERROR(check_path(request.job, "record.directory", request.job.record.directory.string()));
  // The folder's name follows later; errors can only be in the path and in the job.
  const record::Attempt attempt(request.job.record.directory / "run/attempts/1", 1);
  return batch_script(request, attempt, "run").status();
}

JobOrder chain_order(const Links& links, std::span<const Predecessor> predecessors) {
  return {links.count > 1 ? format("1-{}%1", links.count) : "", dependency_of(predecessors)};
}

Result<std::string> batch_script(const Request& request, const record::Attempt& attempt,
                                 const std::string& run_id, const JobOrder& order) {
  return slurm::write_batch_script(describe(request, attempt, run_id, order));
}

Links links_of(const Request& request) {
  return count_links(request.job, estimate_epochs(request.job, request.resumed));
}

Path job_file_directory(const Request& request) {
  std::error_code error;
  const Path here = std::filesystem::current_path(error);
  return (here / Path(request.job_file).parent_path() / "").lexically_normal();
}

void discard_run(const record::RunFolder& folder) {
  std::error_code ignored;
  std::filesystem::remove_all(folder.folder(), ignored);
}

Result<Submission> enqueue(const record::RunFolder& folder, const record::Attempt& attempt,
                           const QueueEntry& entry, slurm::Scheduler& scheduler, Deadline deadline) {
  STOKER_ASSIGN_OR_RETURN(events, record::EventWriter::open(attempt.submit_events()));
  STOKER_RETURN_IF_ERROR(
      write_file(attempt.batch_script(), entry.script, Durability::none, record::access_of(entry.script)));
  STOKER_RETURN_IF_ERROR(write_event(
      events, record::Submitting{
                  .host = record::this_process().host, .comment = entry.comment, .tasks = entry.tasks}));
  // From here on, a job may exist.
  auto job = scheduler.submit(std::filesystem::absolute(attempt.batch_script()), deadline);
  const Code code = job.status().code();
  if (code == Code::timeout || code == Code::corrupt) {
    return std::move(job).error().with_context(
        format("run {}: unknown whether it is in the queue", folder.id()));
  }
  if (!job.ok()) {
    const Status refused = entry.explain ? entry.explain(job.error()) : job.error();
    (void)write_event(events, record::SubmitFailed{.reason = std::string(refused.message())});
    if (entry.is_new_run) discard_run(folder);
    return refused;
  }
  const record::Submitted taken{.scheduler_job = *job, .links = entry.links, .after = entry.after};
  STOKER_RETURN_IF_ERROR(
      write_event(events, taken).with_context(format("job {} is in the queue, but not recorded", *job)));
  return Submission{folder, attempt, *job, {}, {}, {}};
}

Result<Submission> submit(const Request& request, slurm::Scheduler& scheduler, Deadline deadline) {
  STOKER_RETURN_IF_ERROR(check_submission(request));
  // A missing module is reported now, and not after hours in the queue.
  STOKER_ASSIGN_OR_RETURN(loaded, load_environment(request.job.environment, current_environment(), deadline));
  STOKER_RETURN_IF_ERROR(check_container(request.job, variable(loaded.variables, "PATH")));
  STOKER_ASSIGN_OR_RETURN(command, rank_command(request.job, request.stoker, loaded.variables));
  STOKER_ASSIGN_OR_RETURN(predecessors,
                          find_predecessors(request.job, job_file_directory(request), &scheduler, deadline));
  const Links links = links_of(request);
  const bool copies_code = needs_snapshot(request.job, request.resumed);
  auto listing = copies_code ? list_code(request.job) : Result<CodeListing>(CodeListing{});
  if (!listing.ok()) return std::move(listing).error();
  auto made = request.resumed
                  ? Result<record::RunFolder>(*request.resumed)
                  : make_run_folder(request, {.command = command.words, .hosts = {}, .scheduler_job = ""},
                                    to_yaml(request.job));
  if (!made.ok()) return std::move(made).error();
  Request used = request;
  used.job.after = folders_of(predecessors);
  std::vector<std::string> notes;
  if (copies_code) {
    STOKER_ASSIGN_OR_RETURN(snapshot, take_snapshot(*listing, *made));
    used.job.working_directory = snapshot.directory;
    notes = left_out_notes(*listing);
  }
  STOKER_ASSIGN_OR_RETURN(attempt, claim_attempt(used, *made, "", to_yaml(used.job)));
  STOKER_ASSIGN_OR_RETURN(script, batch_script(used, attempt, made->id(), chain_order(links, predecessors)));
  const auto explain = [&](Status refused) { return with_key(std::move(refused), request.job); };
  STOKER_ASSIGN_OR_RETURN(submitted, enqueue(*made, attempt,
                                             {.script = script,
                                              .comment = comment_of(made->id(), attempt.number()),
                                              .links = links.count,
                                              .after = used.job.after,
                                              .explain = explain,
                                              .is_new_run = !request.resumed},
                                             scheduler, deadline));
  submitted.links = links;
  submitted.predecessors = std::move(predecessors);
  submitted.notes = std::move(notes);
  return std::move(submitted);
}

Result<Request> prepared_request(const Path& attempt_folder) {
  const Path folder = std::filesystem::absolute(attempt_folder / "").lexically_normal().parent_path();
  std::int64_t number = 0;
  if (folder.parent_path().filename() != "attempts" || !parse_number(folder.filename().string(), &number)) {
    return invalid("{}: is a folder, but no attempt of a run", printable(attempt_folder.string()))
        .cure("stoker run job.yaml");
  }
  STOKER_ASSIGN_OR_RETURN(run, record::RunFolder::open(folder.parent_path().parent_path()));
  const record::Attempt attempt(folder, static_cast<int>(number));
  if (!path_exists(attempt.job())) return not_found("{}: no such attempt", printable(folder.string()));
  STOKER_ASSIGN_OR_RETURN(job, job::load(attempt.job()));
  Request request{.job = std::move(job)};
  request.job_file = run.description().job_file;
  request.resumed = run;
  request.prepared = attempt;
  if (request.job.chain.is_enabled()) request.links = links_from_environment();
  return request;
}

Environment scheduler_environment(const job::Job& job, Environment environment) {
  // Variables override #SBATCH lines, but the job file should override the shell.
  if (job.slurm.account) unset_variable(environment, "SBATCH_ACCOUNT");
  if (job.slurm.partition) unset_variable(environment, "SBATCH_PARTITION");
  if (job.slurm.qos) unset_variable(environment, "SBATCH_QOS");
  if (job.slurm.reservation) unset_variable(environment, "SBATCH_RESERVATION");
  return environment;
}

}  // namespace stoker::launch
