// A run comes into being so:
//   1. everything that can be refused is refused (prepare)
//   2. the run folder, run.json inside                          <- the run exists from here on
//   3. attempts/<n>/ by mkdir, the effective job.yaml inside; given up again where somebody else has begun
//      one since the run was seen to be over
//   4. the supervisor's first event, then the ranks; the capsule is written beside them
//   5. the supervisor's last event, with the outcome
// A crash after 2 leaves a run without attempt, one after 4 a run whose supervisor is gone: both are seen for
// what they are.
#include "launch/run.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>

#include "base/file.h"
#include "checkpoint/catalog.h"
#include "checkpoint/foreign/latest.h"
#include "checkpoint/layout.h"
#include "launch/changes.h"
#include "launch/code/snapshot.h"
#include "launch/environment.h"
#include "launch/interactive/site_ports.h"
#include "launch/new_run.h"
#include "launch/next/history.h"
#include "launch/shell/container.h"
#include "launch/shell/shell_environment.h"
#include "launch/take_attempt.h"
#include "rank/capsule/facts.h"
#include "rank/environment.h"
#include "rank/group/group.h"
#include "record/capsule.h"
#include "record/state.h"
#include "slurm/queue/job_table.h"
#include "slurm/queue/scheduler.h"
#include "slurm/script/batch_script.h"

namespace stoker::launch {
namespace {

// Modules may lie on a file system that is slow to wake.
constexpr std::chrono::minutes kLoadPatience{2};
// Slurm's KillWait is shorter as a rule; outside of a signal there is this long.
constexpr std::chrono::minutes kTakingBack{10};

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

// How long this attempt may last, and the key that says so.
struct OwnTime {
  std::optional<Duration> time;
  std::string_view key;
};
OwnTime own_time(const Request& request) {
  if (request.links > 0 || request.is_link_of_task)
    return {request.job.chain.time_per_link, "chain.time_per_link"};
  return {request.job.resources.time, "resources.time"};
}

// Whether the job itself asks Slurm for another turn after some ends.
bool may_restart(const job::RestartOptions& restart) {
  return restart.timeout + restart.failed + restart.out_of_memory > 0;
}

std::optional<double> deadline_of(const OwnTime& own, const rank::Plan& plan, double now) {
  std::optional<double> deadline = plan.end_time;
  if (own.time) {
    const double end = now + Seconds(*own.time).count();
    if (!deadline || end < *deadline) deadline = end;
  }
  return deadline;
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
  const OwnTime own = own_time(request);
  group.deadline = deadline_of(own, prepared.plan, now);
  if (group.deadline) {
    const auto whole = std::chrono::duration_cast<Duration>(Seconds(std::max(0.0, *group.deadline - now)));
    *group.deadline -= Seconds(time_to_copy_back(job, whole)).count();
    const Seconds left(std::max(0.0, *group.deadline - now));
    group.notice =
        slurm::signal_before(job.checkpoint.before_end, std::chrono::duration_cast<Duration>(left));
  }
  group.deadline_text = own.time ? format("time {} is over ({})", duration_text(*own.time), own.key)
                                 : "the allocation's time is over";
  group.working_directory = job.working_directory;
  group.start.world_size = prepared.plan.world_size().value;
  group.start.command = group.command;
  group.start.resume = resumed_from;
  group.start.resume_written = mark_of(resumed_from).written;
  group.start.links = request.links;
  group.start.may_restart = request.prepared && request.links == 0 && may_restart(job.restart);
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

// "last checkpoint: step 100, valid"
std::string describe_step(const checkpoint::StepInfo& step) {
  const bool is_valid = step.state == checkpoint::StepState::valid;
  return format("last checkpoint: step {}, {}", step.step.value,
                is_valid ? "valid" : format("torn: {}", step.why));
}

// The same of what another program saved. It cannot be written any more: nothing is waited for.
void describe_foreign_checkpoint(const Path& checkpoints, RunResult* result) {
  RealClock clock;
  NoProgress progress;
  const auto latest =
      checkpoint::find_latest(checkpoints, {.match = "", .settle = Duration::zero()}, clock, progress);
  if (!latest.ok()) return;
  if (latest->path) {
    result->checkpoint = format("last checkpoint: {}, whole", printable(latest->path->filename().string()));
    result->can_resume = true;
  } else if (!latest->skipped.empty()) {
    const checkpoint::SkippedStep& newest = latest->skipped.front();
    result->checkpoint =
        format("last checkpoint: {}, torn: {}", printable(newest.folder.filename().string()), newest.why);
  }
}

void describe_checkpoint(const Path& checkpoints, RunResult* result) {
  result->checkpoint = "no checkpoint yet";
  const auto steps = checkpoint::list_steps(checkpoints, checkpoint::Depth::structure, RealClock().wall());
  if (!steps.ok()) return;
  const auto newest = std::find_if(steps->begin(), steps->end(), [](const checkpoint::StepInfo& step) {
    return step.state != checkpoint::StepState::writing;
  });
  if (newest == steps->end()) return describe_foreign_checkpoint(checkpoints, result);
  result->checkpoint = describe_step(*newest);
  result->can_resume = true;
}

void write_ending(const record::Attempt& attempt, const rank::Ending& ending) {
  auto events = record::EventWriter::open(attempt.node_events(0));
  if (events.ok()) (void)write_event(*events, rank::to_event(ending));
}

// How an attempt ended whose ranks never started.
rank::Ending ending_of(const Status& why, int interrupted_by) {
  const bool is_stop = interrupted_by != 0;
  const int code = why.code() == Code::invalid ? 2 : why.code() == Code::unavailable ? 3 : 1;
  return {.outcome = is_stop ? record::Outcome::stopped : record::Outcome::failed,
          .exit_code = is_stop ? 128 + interrupted_by : code,
          .cause = std::string(why.message()),
          .others = "no rank was started",
          .interrupted_by = interrupted_by};
}

// The supervisor may have come so far as to write its first event, and to start some of the ranks.
void write_false_start(const rank::GroupOptions& group, const Status& why) {
  auto events = record::EventWriter::open(group.attempt.node_events(0));
  if (!events.ok()) return;
  const auto log = record::read_attempt_events(group.attempt.folder());
  const bool has_begun =
      log.ok() && std::any_of(log->events.begin(), log->events.end(), [](const record::Event& event) {
        return record::attempt_started(event).has_value();
      });
  record::AttemptStarted start = group.start;
  start.supervisor = record::this_process();
  if (!has_begun) (void)write_event(*events, start);
  rank::Ending ending = ending_of(why, 0);
  ending.others = "";
  (void)write_event(*events, rank::to_event(ending));
}

Result<rank::Ending> run_ranks(const rank::GroupOptions& group) {
  auto ending = rank::run_group(group);
  if (!ending.ok()) write_false_start(group, ending.error());
  return ending;
}

void write_staged(record::EventWriter& events, const std::vector<StagedNode>& nodes, bool is_back) {
  for (const StagedNode& node : nodes) {
    (void)write_event(events, record::Staged{.node = node.node,
                                             .host = node.host,
                                             .is_back = is_back,
                                             .folder = node.folder,
                                             .files = static_cast<std::int64_t>(node.files),
                                             .bytes = static_cast<std::int64_t>(node.bytes),
                                             .seconds = node.seconds});
  }
}

// The ranks with all that the job wants on its nodes' own disks, brought before they start and taken back
// after them. A run is done once its results are here, and not done when they are lost.
Result<RunResult> run_staged(const Request& request, const Prepared& prepared, rank::GroupOptions& group,
                             RunResult result, Observer& observer) {
  OK_OR_RETURN(events, record::EventWriter::open(result.attempt.node_events(0)));
  group.start.supervisor = record::this_process();
  RETURN_IF_ERROR(write_event(events, group.start));
  group.has_begun = group.has_more_to_do = true;
  int interrupted_by = 0;
  auto staging = Staging::start({.job = request.job,
                                 .plan = prepared.plan,
                                 .attempt = result.attempt,
                                 .stoker = request.stoker,
                                 .environment = prepared.environment,
                                 .err_fd = request.err_fd},
                                &interrupted_by);
  Status ready = staging.status();
  if (ready.ok()) ready = check_staged_container(request.job, (*staging)->nodes().front().folder);
  if (!ready.ok()) {
    result.ending = ending_of(ready, interrupted_by);
    result.cure = ready.cure();
    write_ending(result.attempt, result.ending);
    return result;
  }
  write_staged(events, (*staging)->nodes(), false);
  observer.staged((*staging)->nodes());
  rank::set_variable(group.environment, rank::kStageVariable, (*staging)->folders());
  group.spared = (*staging)->pid();
  OK_OR_RETURN(ending, run_ranks(group));
  result.ending = std::move(ending);
  result.taken_back = (*staging)->finish(Deadline::after(kTakingBack)).with_context("stage.back");
  result.back = (*staging)->back();
  if (!request.job.stage.back.empty()) write_staged(events, result.back, true);
  if (result.ending.exit_code != 0) return result;
  if (!result.taken_back.ok()) {
    result.ending.outcome = record::Outcome::failed;
    result.ending.exit_code = 1;
    result.ending.cause = std::string(result.taken_back.message());
  }
  write_ending(result.attempt, result.ending);
  return result;
}

}  // namespace

Result<ResumePoint> step_to_resume(const Request& request, const record::RunFolder& folder) {
  const Path checkpoints = checkpoint::directory_of_run(request.job.checkpoint.directory,
                                                        std::filesystem::absolute(folder.folder()));
  if (!path_exists(checkpoints)) return ResumePoint();
  RealClock clock;
  NoProgress progress;
  OK_OR_RETURN(latest, checkpoint::find_latest(checkpoints, {}, clock, progress));
  if (latest.path) return ResumePoint{*latest.path, std::move(latest.skipped)};
  // A folder that holds none is a start from nothing; one that holds only damaged steps is not. What another
  // program was writing for the first time when it was killed is none yet.
  OK_OR_RETURN(steps, checkpoint::step_folders(checkpoints));
  if (steps.empty()) return ResumePoint{{}, std::move(latest.skipped)};
  return checkpoint::no_valid_step(checkpoints, latest.skipped);
}

Result<Prepared> prepare(const Request& request) {
  Prepared prepared;
  OK_OR_RETURN(surroundings, rank::look_around());
  OK_OR_RETURN(plan, rank::make_plan(request.job, surroundings));
  prepared.plan = std::move(plan);
  // Only a cluster's network knows of ports that are closed.
  if (!prepared.plan.scheduler_job.empty()) prepared.plan.ports = ports_of_site(request.job, request.stoker);
  RETURN_IF_ERROR(check_places(request.job));
  OK_OR_RETURN(command, rank_command(request.job, request.stoker));
  prepared.command = std::move(command);
  OK_OR_RETURN(loaded, load_environment(request.job.environment, current_environment(),
                                        Deadline::after(kLoadPatience)));
  prepared.notes = std::move(loaded.notes);
  RETURN_IF_ERROR(check_container(request.job, rank::variable(loaded.variables, "PATH")));
  prepared.environment = inherited_environment(request.job, std::move(loaded.variables));
  return prepared;
}

namespace {

// The run's folder, new or the one that goes on; with a copy of the code `request` works in that from here
// on.
Result<record::RunFolder> open_folder(Request& request, const Prepared& prepared) {
  const bool copies_code = wants_snapshot(request.job, request.resumed);
  auto listing = copies_code ? list_code(request.job) : Result<CodeListing>(CodeListing{});
  if (!listing.ok()) return std::move(listing).error();
  auto made = request.resumed ? Result<record::RunFolder>(*request.resumed)
                              : make_run_folder(request,
                                                {.command = prepared.command,
                                                 .hosts = prepared.plan.hosts,
                                                 .scheduler_job = prepared.plan.scheduler_job},
                                                to_yaml(request.job));
  if (!made.ok()) return std::move(made).error();
  if (copies_code) {
    OK_OR_RETURN(snapshot, take_snapshot(*listing, *made));
    request.job.working_directory = snapshot.directory;
  }
  return std::move(*made);
}

Result<ResumePoint> where_to_begin(const Request& request, const record::RunFolder& folder) {
  if (!request.resumed) return ResumePoint();
  return request.resume_from ? Result<ResumePoint>(*request.resume_from) : step_to_resume(request, folder);
}

}  // namespace

Result<RunResult> run(const Request& asked, const Prepared& prepared, Observer& observer) {
  Request request = asked;
  OK_OR_RETURN(folder, open_folder(request, prepared));
  const Path checkpoints = checkpoint::directory_of_run(request.job.checkpoint.directory,
                                                        std::filesystem::absolute(folder.folder()));
  OK_OR_RETURN(from, where_to_begin(request, folder));
  OK_OR_RETURN(attempt, take_attempt(request, folder, prepared.plan.scheduler_job, to_yaml(request.job)));
  // After this point the attempt exists: every way out leaves an ending in its events.
  observer.run_exists(folder, attempt, from);

  rank::GroupOptions group = group_of(request, prepared, attempt, from.step);
  group.environment = run_environment(prepared.environment, {.job = request.job,
                                                             .folder = folder,
                                                             .attempt = attempt,
                                                             .checkpoints = checkpoints,
                                                             .resume = from.step,
                                                             .deadline = group.deadline});
  if (!path_exists(folder.capsule())) group.beside = [&] { write_capsule(request, group, folder); };
  RunResult result{.folder = folder,
                   .attempt = attempt,
                   .ending = {},
                   .checkpoint = "",
                   .cure = "",
                   .taken_back = {},
                   .back = {}};
  if (request.job.stage.is_wanted()) {
    OK_OR_RETURN(ended, run_staged(request, prepared, group, std::move(result), observer));
    result = std::move(ended);
  } else {
    OK_OR_RETURN(ending, run_ranks(group));
    result.ending = std::move(ending);
  }
  describe_checkpoint(checkpoints, &result);
  return result;
}

Status check_can_go_on(const record::RunFolder& folder, const RunLife& life) {
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
      return {};
  }
}

Result<Request> resume_request(const record::RunFolder& folder, const RunLife& life,
                               const std::vector<std::string>& settings) {
  RETURN_IF_ERROR(check_can_go_on(folder, life));
  job::LoadOptions options;
  options.set = settings;
  // The last attempt's job counts: what was changed for it was changed for good.
  const auto last = folder.last_attempt();
  const Path file = last.ok() && path_exists(last->job()) ? last->job() : folder.job();
  OK_OR_RETURN(before, job::load(file));
  OK_OR_RETURN(job, job::load(file, options));
  RETURN_IF_ERROR(check_params(folder, before, settings));
  RETURN_IF_ERROR(check_changes(folder, before, job));
  RETURN_IF_ERROR(check_versions(folder, job));
  Request request{.job = std::move(job)};
  request.changes = told_changes(folder, before, request.job);
  request.not_taken = told_job_file(folder, request.job);
  request.job_file = folder.description().job_file;
  request.resumed = folder;
  request.last_seen = life.records.last_attempt;
  return request;
}

}  // namespace stoker::launch
