// A run comes into being so:
//   1. everything that can be refused is refused (prepare)
//   2. the run folder, run.json inside                          <- the run exists from here on
//   3. attempts/<n>/ by mkdir, the effective job.yaml inside
//   4. the supervisor's first event, then the ranks; the capsule is written beside them
//   5. the supervisor's last event, with the outcome
// A crash after 2 leaves a run without attempt, one after 4 a run whose supervisor is gone: both are seen for
// what they are.
#include "launch/run.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/file.h"
#include "checkpoint/catalog.h"
#include "checkpoint/layout.h"
#include "launch/changes.h"
#include "launch/environment.h"
#include "launch/new_run.h"
#include "rank/capsule/facts.h"
#include "rank/group/group.h"
#include "record/capsule.h"
#include "record/state.h"
#include "slurm/queue/scheduler.h"
#include "slurm/script/batch_script.h"

namespace stoker::launch {
namespace {

// Best effort: what of it cannot be written is absent, and every reader says so.
void write_capsule(const Request& request, const rank::GroupOptions& group, const record::RunFolder& folder) {
  (void)record::write_execution(folder, {rank::node_facts()});
  (void)record::write_data(folder, rank::data_facts(request.job));
  (void)record::write_code(folder,
                           rank::code_facts(request.job.working_directory, request.job.record.directory));
  const std::string interpreter = rank::interpreter_of(group.command, request.job.environment);
  (void)record::write_environment(
      folder, rank::environment_facts(interpreter, group.environment, request.job.working_directory));
}

std::optional<double> deadline_of(const job::Job& job, const rank::Plan& plan, double now) {
  std::optional<double> deadline = plan.end_time;
  if (job.resources.time) {
    const double own = now + Seconds(*job.resources.time).count();
    if (!deadline || own < *deadline) deadline = own;
  }
  return deadline;
}

// The step to go on from; empty when there is none yet.
Result<Path> step_to_resume(const Path& checkpoints) {
  if (!path_exists(checkpoints)) return Path();
  auto step = checkpoint::latest_valid(checkpoints);
  if (step.ok()) return std::move(*step);
  if (step.error().code() == Code::not_found) {
    // A folder that holds none is a start from nothing; one that holds only damaged ones is not.
    OK_OR_RETURN(steps, checkpoint::step_folders(checkpoints));
    if (steps.empty()) return Path();
  }
  return std::move(step).error();
}

// The attempt that this process runs. A submitted one is claimed by making its first events file, which one
// of two can do; when that is there already, the scheduler has started the script again and the next attempt
// is ours.
Result<record::Attempt> take_attempt(const Request& request, const record::RunFolder& folder,
                                     const std::string& scheduler_job, const std::string& yaml) {
  if (request.prepared) {
    const Status claimed = File::create_new(request.prepared->node_events(0)).status();
    if (claimed.ok()) return *request.prepared;
    if (claimed.code() != Code::exists) return claimed;
    const record::RunState state = record::derive_state(folder);
    if (state.state == record::State::done) return invalid("run {}: is done already", folder.id());
    // The scheduler starts a job again only when its processes are gone.
    const bool is_requeued = !scheduler_job.empty() && state.scheduler_job == scheduler_job;
    if (state.state == record::State::running && !is_requeued)
      return invalid("run {}: is still running", folder.id()).cure("stoker logs -f {}", folder.id());
  }
  return folder.start_attempt(yaml);
}

// All but the environment, which needs the deadline that is decided here.
rank::GroupOptions group_of(const Request& request, const Prepared& prepared, const record::Attempt& attempt,
                            const Path& resumed_from) {
  const job::Job& job = request.job;
  rank::GroupOptions group{.plan = prepared.plan, .command = prepared.command, .attempt = attempt};
  if (job.train) {
    group.command.insert(group.command.end(), {"--job", std::filesystem::absolute(attempt.job()).string()});
  }
  const double now = unix_seconds(RealClock().wall());
  group.deadline = deadline_of(job, prepared.plan, now);
  if (group.deadline) {
    const Seconds left(std::max(0.0, *group.deadline - now));
    group.notice =
        slurm::signal_before(job.checkpoint.before_end, std::chrono::duration_cast<Duration>(left));
  }
  group.deadline_text = job.resources.time
                            ? format("time {} is over (resources.time)", duration_text(*job.resources.time))
                            : "the allocation's time is over";
  group.working_directory = job.working_directory;
  group.start.world_size = prepared.plan.world_size().value;
  group.start.command = group.command;
  group.start.resume = resumed_from;
  group.start.scheduler_job = prepared.plan.scheduler_job;
  group.timeouts = job.timeouts;
  group.end_step = [id = prepared.plan.scheduler_job](const std::string& step) {
    (void)slurm::SlurmCommands(current_environment())
        .cancel_step(id, step, Deadline::after(std::chrono::seconds(5)));
  };
  group.sample_every = job.record.sample_every;
  group.stoker = request.stoker;
  group.out_fd = request.out_fd;
  group.err_fd = request.err_fd;
  return group;
}

void describe_checkpoint(const Path& checkpoints, RunResult* result) {
  result->checkpoint = "no checkpoint yet";
  const auto steps = checkpoint::list_steps(checkpoints, checkpoint::Depth::structure, RealClock().wall());
  if (!steps.ok()) return;
  for (const checkpoint::StepInfo& step : *steps) {
    if (step.state == checkpoint::StepState::writing) continue;
    const bool is_valid = step.state == checkpoint::StepState::valid;
    result->checkpoint = format("last checkpoint: step {}, {}", step.step.value,
                                is_valid ? "valid" : format("torn: {}", step.why));
    result->can_resume = true;
    return;
  }
}

}  // namespace

Result<Prepared> prepare(const Request& request) {
  Prepared prepared;
  OK_OR_RETURN(surroundings, rank::look_around());
  OK_OR_RETURN(plan, rank::make_plan(request.job, surroundings));
  prepared.plan = std::move(plan);
  RETURN_IF_ERROR(check_places(request.job));
  OK_OR_RETURN(command, rank_command(request.job, request.stoker));
  prepared.command = std::move(command);
  prepared.environment = inherited_environment(request.job, current_environment());
  return prepared;
}

Result<RunResult> run(const Request& request, const Prepared& prepared, Observer& observer) {
  const std::string yaml = to_yaml(request.job);
  auto made = request.resumed ? Result<record::RunFolder>(*request.resumed)
                              : make_run_folder(request,
                                                {.command = prepared.command,
                                                 .hosts = prepared.plan.hosts,
                                                 .scheduler_job = prepared.plan.scheduler_job},
                                                yaml);
  if (!made.ok()) return std::move(made).error();
  const record::RunFolder& folder = *made;
  const Path checkpoints = checkpoint::directory_of_run(request.job.checkpoint.directory,
                                                        std::filesystem::absolute(folder.folder()));
  Path resumed_from;
  if (request.resumed) {
    OK_OR_RETURN(step, step_to_resume(checkpoints));
    resumed_from = step;
  }
  OK_OR_RETURN(attempt, take_attempt(request, folder, prepared.plan.scheduler_job, yaml));
  // After this point the attempt exists: every way out leaves an ending in its events.
  observer.run_exists(folder, attempt, resumed_from);

  rank::GroupOptions group = group_of(request, prepared, attempt, resumed_from);
  group.environment = run_environment(prepared.environment, {.job = request.job,
                                                             .folder = folder,
                                                             .attempt = attempt,
                                                             .checkpoints = checkpoints,
                                                             .resume = resumed_from,
                                                             .deadline = group.deadline});
  if (!path_exists(folder.capsule())) group.beside = [&] { write_capsule(request, group, folder); };
  OK_OR_RETURN(ending, rank::run_group(group));
  RunResult result{.folder = folder, .attempt = attempt, .ending = std::move(ending)};
  describe_checkpoint(checkpoints, &result);
  return result;
}

Result<Request> resume_request(const record::RunFolder& folder, const RunLife& life,
                               const std::vector<std::string>& settings) {
  switch (life.life) {
    case Life::running:
      return invalid("run {}: is still running", folder.id()).cure("stoker logs -f {}", folder.id());
    case Life::done:
      return invalid("run {}: is done, there is nothing to resume", folder.id());
    case Life::queued:
      return invalid("run {}: waits in the queue{}", folder.id(),
                     life.scheduler_job.empty() ? "" : format(" as job {}", life.scheduler_job))
          .cure("stoker status {}", folder.id());
    case Life::unknown:
      return unavailable("run {}: whether it still waits or runs is not known ({})", folder.id(), life.note);
    default:
      break;
  }
  job::LoadOptions options;
  options.set = settings;
  // The last attempt's job counts: what was changed for it was changed for good.
  const auto last = folder.last_attempt();
  const Path file = last.ok() && path_exists(last->job()) ? last->job() : folder.job();
  OK_OR_RETURN(before, job::load(file));
  OK_OR_RETURN(job, job::load(file, options));
  RETURN_IF_ERROR(check_changes(folder, before, job));
  RETURN_IF_ERROR(check_versions(folder, job));
  Request request{.job = std::move(job)};
  request.job_file = folder.description().job_file;
  request.resumed = folder;
  return request;
}

}  // namespace stoker::launch
