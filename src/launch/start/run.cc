// Protocol of a run:
//   1. prepare() refuses everything that can be refused
//   2. create the run folder with run.json                      <- the run exists from here on
//   3. create attempts/<n>/ by mkdir, with the effective job.yaml; remove it if another process has started
//        an attempt since the run was seen to be over
//   4. write the supervisor's first event, start the ranks, and write the capsule in parallel
//   5. write the supervisor's last event, with the outcome
// A crash after 2 leaves a run without an attempt, a crash after 4 a run without a supervisor. Both are
// recognized.
#include "launch/start/run.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>

#include "base/file.h"
#include "checkpoint/foreign/latest.h"
#include "checkpoint/layout.h"
#include "checkpoint/read/catalog.h"
#include "launch/start/back_checkpoint.h"
#include "launch/start/changes.h"
#include "launch/start/claim_attempt.h"
#include "launch/start/container.h"
#include "launch/start/environment.h"
#include "launch/start/new_run.h"
#include "launch/start/shell_environment.h"
#include "launch/start/site_ports.h"
#include "launch/start/snapshot.h"
#include "launch/start/tracker_process.h"
#include "launch/state/history.h"
#include "observe/gpu.h"
#include "rank/capsule/facts.h"
#include "rank/environment.h"
#include "rank/gpu_binding.h"
#include "rank/group/group.h"
#include "record/capsule.h"
#include "record/state.h"
#include "slurm/queue/job_table.h"
#include "slurm/queue/scheduler.h"
#include "slurm/script/batch_script.h"

namespace stoker::launch {
namespace {

// Modules may be on a slow file system.
constexpr std::chrono::minutes kLoadPatience{2};
// Without a signal there is this much time; Slurm's KillWait is usually shorter.
constexpr std::chrono::minutes kStageOutTimeout{10};

// Best effort: readers accept missing parts.
void write_capsule(const Request& request, const rank::GroupOptions& group, const record::RunFolder& folder) {
  (void)record::write_execution(folder, {rank::node_facts()});
  (void)record::write_data(folder, rank::data_facts(request.job));
  (void)record::write_code(folder,
                           rank::code_facts(request.job.working_directory, request.job.record.directory));
  const std::string interpreter = rank::interpreter_of(group.command, request.job.environment);
  (void)record::write_environment(
      folder, rank::environment_facts(interpreter, group.environment, request.job.working_directory));
}

// The time limit of this attempt, and its key.
struct OwnTime {
  std::optional<Duration> time;
  std::string_view key;
};
OwnTime own_time(const Request& request) {
  if (request.links > 0 || request.is_link_of_task)
    return {request.job.chain.time_per_link, "chain.time_per_link"};
  return {request.job.resources.time, "resources.time"};
}

// Whether the job itself requeues after some causes.
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

// All options except the environment, which needs the deadline computed here.
// For the supervisors of the ranks. The trainer of `train` records its metrics itself.
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
    *group.deadline -= Seconds(stage_out_time(job, whole)).count();
    const Seconds left(std::max(0.0, *group.deadline - now));
    group.notice =
        slurm::signal_before(job.checkpoint.before_end, std::chrono::duration_cast<Duration>(left));
  }
  group.deadline_text = own.time ? format("time limit {} ({})", duration_text(*own.time), own.key)
                                 : "the allocation's time limit";
  group.working_directory = job.working_directory;
  group.start.world_size = prepared.plan.world_size().value;
  group.start.command = group.command;
  group.start.resume = resumed_from;
  group.start.resume_written = checkpoint_stamp(resumed_from).written;
  if (const auto step = checkpoint::step_of_folder(resumed_from.filename().string()))
    group.start.resume_step = step->value;
  group.start.links = request.links;
  group.start.may_restart = request.prepared && request.links == 0 && may_restart(job.restart);
  // The end of such a run is not that of the job, and cancelling it must not cancel the job.
  if (!prepared.plan.is_part_of_job) group.start.scheduler_job = prepared.plan.scheduler_job;
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

// The same for a checkpoint that a different program saved. It is no longer being written, so there is no
// wait.
void describe_foreign_checkpoint(const Path& checkpoints, RunResult* result) {
  RealClock clock;
  NoProgress progress;
  const auto latest =
      checkpoint::find_latest(checkpoints, {.match = "", .settle = Duration::zero()}, clock, progress);
  if (!latest.ok()) return;
  if (latest->path) {
    result->checkpoint =
        format("last checkpoint: {}, complete", printable(latest->path->filename().string()));
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

// The ending of an attempt whose ranks never started.
rank::Ending ending_of(const Status& why, int interrupted_by) {
  const bool is_stop = interrupted_by != 0;
  const int code = why.code() == Code::invalid ? 2 : why.code() == Code::unavailable ? 3 : 1;
  return {.outcome = is_stop ? record::Outcome::stopped : record::Outcome::failed,
          .exit_code = is_stop ? 128 + interrupted_by : code,
          .cause = std::string(why.message()),
          .other_ranks = "no rank was started",
          .interrupted_by = interrupted_by};
}

// The supervisor may have written its first event and started some of the ranks.
void write_failed_start(const rank::GroupOptions& group, const Status& why) {
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
  ending.other_ranks = "";
  (void)write_event(*events, rank::to_event(ending));
}

Result<rank::Ending> run_ranks(const rank::GroupOptions& group) {
  auto ending = rank::run_group(group);
  if (!ending.ok()) write_failed_start(group, ending.error());
  return ending;
}

void write_staged(record::EventWriter& events, const StagedNode& node, bool is_stage_out) {
  (void)write_event(events, record::Staged{.node = node.node,
                                           .host = node.host,
                                           .is_stage_out = is_stage_out,
                                           .folder = node.folder,
                                           .files = static_cast<std::int64_t>(node.files),
                                           .bytes = static_cast<std::int64_t>(node.bytes),
                                           .seconds = node.seconds,
                                           .received_bytes = static_cast<std::int64_t>(node.received_bytes),
                                           .cached_bytes = static_cast<std::int64_t>(node.cached_bytes)});
}

// Stages in the job's files before the ranks start, and stages out the results afterwards. A run is done only
// if its results are staged out.
Result<RunResult> run_staged(const Request& request, const Prepared& prepared, rank::GroupOptions& group,
                             RunResult result, Observer& observer) {
  STOKER_ASSIGN_OR_RETURN(events, record::EventWriter::open(result.attempt.node_events(0)));
  group.start.supervisor = record::this_process();
  STOKER_RETURN_IF_ERROR(write_event(events, group.start));
  group.has_begun = group.defers_done_event = true;
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
  for (const StagedNode& node : (*staging)->nodes()) write_staged(events, node, false);
  observer.on_staged((*staging)->nodes());
  set_variable(group.environment, rank::kStageVariable, (*staging)->folders());
  if (const std::string venv = staged_venv(request.job); !venv.empty())
    set_variable(group.environment, rank::kStagedVenvVariable, venv);
  group.excluded_pids.push_back((*staging)->pid());
  (*staging)->watch_rest([&](const StagedNode& node) { write_staged(events, node, false); });
  STOKER_ASSIGN_OR_RETURN(ending, run_ranks(group));
  result.ending = std::move(ending);
  result.stage_out_status = (*staging)->finish(Deadline::after(kStageOutTimeout)).with_context("stage.back");
  result.back = (*staging)->back();
  result.rest = (*staging)->rest();
  if (!request.job.stage.back.empty()) {
    for (const StagedNode& node : result.back) write_staged(events, node, true);
  }
  if (result.ending.exit_code != 0) return result;
  if (!result.stage_out_status.ok()) {
    result.ending.outcome = record::Outcome::failed;
    result.ending.exit_code = 1;
    result.ending.cause = std::string(result.stage_out_status.message());
  }
  write_ending(result.attempt, result.ending);
  return result;
}

// Before any rank starts. MIG devices have no numbers: the ranks get their ids.
Status check_local_gpus(Prepared& prepared) {
  constexpr std::string_view kVisible = "CUDA_VISIBLE_DEVICES";
  if (prepared.plan.start != rank::StartMethod::local || rank::needed_gpus(prepared.plan) == 0) return {};
  rank::VisibleGpus visible;
  for (const auto& [name, value] : prepared.environment) {
    if (name == kVisible) visible = value;
  }
  const observe::GpuReader reader = observe::GpuReader::open();
  const std::vector<std::string> usable = rank::usable_gpus(visible, reader.devices());
  STOKER_RETURN_IF_ERROR(rank::check_gpus(prepared.plan, visible, usable));
  const bool has_mig =
      std::ranges::any_of(reader.devices(), [](const auto& gpu) { return !gpu.mig_uuids.empty(); });
  if (!visible && has_mig) set_variable(prepared.environment, kVisible, join(usable, ","));
  return {};
}

// In the checkpoint folder of the run.
Result<ResumePoint> find_saved_point(const Request& request, const record::RunFolder& folder) {
  const Path checkpoints = checkpoint::directory_of_run(request.job.checkpoint.directory,
                                                        std::filesystem::absolute(folder.folder()));
  if (!path_exists(checkpoints)) return ResumePoint();
  RealClock clock;
  NoProgress progress;
  STOKER_ASSIGN_OR_RETURN(latest, checkpoint::find_latest(checkpoints, {}, clock, progress));
  if (latest.path) return ResumePoint{*latest.path, std::move(latest.skipped)};
  // Without steps, start from the beginning; with only damaged ones, fail. An incomplete first checkpoint of
  // another program does not count.
  STOKER_ASSIGN_OR_RETURN(steps, checkpoint::step_folders(checkpoints));
  if (steps.empty()) return ResumePoint{{}, std::move(latest.skipped)};
  return checkpoint::no_valid_step(checkpoints, latest.skipped);
}

}  // namespace

Result<ResumePoint> find_resume_point(const Request& request, const record::RunFolder& folder) {
  STOKER_ASSIGN_OR_RETURN(saved, find_saved_point(request, folder));
  if (!saved.step.empty()) return saved;
  if (auto found = find_back_checkpoint(request.job, folder)) saved.step = std::move(*found);
  return saved;
}

Result<Prepared> prepare(const Request& request) {
  Prepared prepared;
  STOKER_ASSIGN_OR_RETURN(context, rank::detect_launch_context());
  STOKER_ASSIGN_OR_RETURN(plan, rank::make_plan(request.job, context));
  prepared.plan = std::move(plan);
  // Only a cluster's network has closed ports.
  if (!prepared.plan.scheduler_job.empty()) prepared.plan.ports = ports_of_site(request.job, request.stoker);
  STOKER_RETURN_IF_ERROR(check_paths(request.job));
  STOKER_ASSIGN_OR_RETURN(loaded, load_environment(request.job.environment, current_environment(),
                                                   Deadline::after(kLoadPatience)));
  prepared.notes = std::move(loaded.notes);
  STOKER_RETURN_IF_ERROR(check_container(request.job, variable(loaded.variables, "PATH")));
  STOKER_ASSIGN_OR_RETURN(command, rank_command(request.job, request.stoker, loaded.variables));
  prepared.command = std::move(command.words);
  prepared.environment = inherited_environment(request.job, std::move(loaded.variables));
  if (!command.libraries.empty()) {
    const std::string path = variable(prepared.environment, "LD_LIBRARY_PATH");
    set_variable(prepared.environment, "LD_LIBRARY_PATH",
                 command.libraries.string() + (path.empty() ? "" : ":" + path));
  }
  STOKER_RETURN_IF_ERROR(check_local_gpus(prepared));
  return prepared;
}

namespace {

// The run's folder, new or resumed. With a code snapshot, `request` uses the copy from here on, and `notes`
// gets the files that it leaves out.
Result<record::RunFolder> open_folder(Request& request, const Prepared& prepared,
                                      std::vector<std::string>& notes) {
  const bool copies_code = needs_snapshot(request.job, request.resumed);
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
    STOKER_ASSIGN_OR_RETURN(snapshot, take_snapshot(*listing, *made));
    request.job.working_directory = snapshot.directory;
    notes = left_out_notes(*listing);
  }
  return std::move(*made);
}

Result<ResumePoint> choose_resume_point(const Request& request, const record::RunFolder& folder) {
  if (!request.resumed) return ResumePoint();
  return request.resume_from ? Result<ResumePoint>(*request.resume_from) : find_resume_point(request, folder);
}

}  // namespace

Result<RunResult> run(const Request& asked, const Prepared& prepared, Observer& observer) {
  Request request = asked;
  // Before the run exists: a folder that cannot be created leaves none.
  if (const auto& directory = request.job.checkpoint.directory)
    STOKER_RETURN_IF_ERROR(make_directories(*directory).with_context("checkpoint.directory"));
  std::vector<std::string> notes;
  STOKER_ASSIGN_OR_RETURN(folder, open_folder(request, prepared, notes));
  const Path checkpoints = checkpoint::directory_of_run(request.job.checkpoint.directory,
                                                        std::filesystem::absolute(folder.folder()));
  STOKER_ASSIGN_OR_RETURN(from, choose_resume_point(request, folder));
  // So that a script can save there without mkdir.
  STOKER_RETURN_IF_ERROR(make_directories(checkpoints).with_context("checkpoint.directory"));
  STOKER_ASSIGN_OR_RETURN(attempt,
                          claim_attempt(request, folder, prepared.plan.scheduler_job, to_yaml(request.job)));
  // From here on, the attempt exists: every return path records an ending in its events.
  observer.on_run_created(folder, attempt, from);
  for (const std::string& note : notes) observer.on_note(note);

  rank::GroupOptions group = group_of(request, prepared, attempt, from.step);
  group.environment = run_environment(prepared.environment, {.job = request.job,
                                                             .folder = folder,
                                                             .attempt = attempt,
                                                             .checkpoints = checkpoints,
                                                             .resume = from.step,
                                                             .deadline = group.deadline});
  set_variable(group.environment, rank::kMetricsVariable, metrics_from(request.job));
  if (!path_exists(folder.capsule())) group.background_task = [&] { write_capsule(request, group, folder); };
  RunResult result{.folder = folder,
                   .attempt = attempt,
                   .ending = {},
                   .checkpoint = "",
                   .cure = "",
                   .stage_out_status = {},
                   .back = {},
                   .rest = {},
                   .tracker_notes = {}};
  std::string problem;
  auto trackers =
      TrackerProcess::start(request.job, {.run = folder, .attempt = attempt}, request.stoker, &problem);
  if (trackers) group.excluded_pids.push_back(trackers->pid());
  if (!problem.empty()) observer.on_note(problem);
  if (request.job.is_staged()) {
    STOKER_ASSIGN_OR_RETURN(ended, run_staged(request, prepared, group, std::move(result), observer));
    result = std::move(ended);
  } else {
    STOKER_ASSIGN_OR_RETURN(ending, run_ranks(group));
    result.ending = std::move(ending);
  }
  if (trackers) result.tracker_notes = trackers->finish();
  describe_checkpoint(checkpoints, &result);
  if (const auto back = result.can_resume ? std::nullopt : find_back_checkpoint(request.job, folder)) {
    result.checkpoint =
        format("last checkpoint: {} (stage.back), complete", printable(back->filename().string()));
    result.can_resume = true;
  }
  if (result.ending.is_folder_lost) result.can_resume = false;
  result.has_command = request.job.command.has_value();
  return result;
}

Status check_resumable(const record::RunFolder& folder, const RunLife& life) {
  switch (life.life) {
    case Life::running:
      return invalid("run {}: is still running", folder.id()).cure("stoker logs -f {}", folder.id());
    case Life::done:
      return invalid("run {}: is done, there is nothing to resume", folder.id());
    case Life::queued:
      return invalid("run {}: is queued{}", folder.id(),
                     life.scheduler_job.empty() ? "" : format(" as job {}", life.scheduler_job))
          .cure("stoker status {}", folder.id());
    case Life::unknown:
      return unavailable("run {}: unknown whether it is queued or running ({})", folder.id(), life.note);
    default:
      return {};
  }
}

namespace {

// A done run is resumed only if a setting gives it more to do.
bool is_extended(const job::Job& before, const job::Job& after) {
  if (before.train && after.train) {
    const auto& steps = after.train->steps;
    const bool has_more_steps = before.train->steps && (!steps || *steps > *before.train->steps);
    return has_more_steps || after.train->epochs > before.train->epochs;
  }
  return before.command && after.command && before.command->arguments != after.command->arguments;
}

Status nothing_to_resume(const record::RunFolder& folder, const job::Job& job) {
  Status done = invalid("run {}: is done, there is nothing to resume", folder.id());
  if (!job.train) return std::move(done).cure("stoker rerun {}      (starts a new run)", folder.id());
  if (job.train->steps)
    return std::move(done).cure("stoker resume {} --set train.steps={}      (trains longer)", folder.id(),
                                2 * *job.train->steps);
  return std::move(done).cure("stoker resume {} --set train.epochs={}      (trains longer)", folder.id(),
                              2 * job.train->epochs);
}

}  // namespace

Result<Request> resume_request(const record::RunFolder& folder, const RunLife& life,
                               const std::vector<std::string>& settings) {
  const bool is_done = life.life == Life::done;
  if (!is_done) STOKER_RETURN_IF_ERROR(check_resumable(folder, life));
  job::LoadOptions options;
  options.set = settings;
  // The last attempt's job counts, so changes persist.
  const auto last = folder.last_attempt();
  const Path file = last.ok() && path_exists(last->job()) ? last->job() : folder.job();
  STOKER_ASSIGN_OR_RETURN(before, job::load(file));
  STOKER_ASSIGN_OR_RETURN(job, job::load(file, options));
  STOKER_RETURN_IF_ERROR(check_params(folder, before, settings));
  STOKER_RETURN_IF_ERROR(check_changes(folder, before, job));
  STOKER_RETURN_IF_ERROR(check_versions(folder, job));
  if (is_done && !is_extended(before, job)) return nothing_to_resume(folder, before);
  Request request{.job = std::move(job)};
  request.changes = describe_changes(folder, before, request.job);
  request.ignored_changes = describe_job_file_changes(folder, request.job);
  request.job_file = folder.description().job_file;
  request.resumed = folder;
  request.last_known_attempt = life.records.last_attempt;
  return request;
}

}  // namespace stoker::launch
