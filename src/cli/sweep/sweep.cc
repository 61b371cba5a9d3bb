// `stoker sweep SWEEP`: docs/commands/sweep.md
#include <chrono>
#include <csignal>
#include <filesystem>

#include "base/encode.h"
#include "base/enum_names.h"
#include "base/language/counted.h"
#include "cli/check/inspect.h"
#include "cli/run_request.h"
#include "cli/runs.h"
#include "cli/site/sites.h"
#include "cli/sweep/study_choice.h"
#include "job/site/find.h"
#include "slurm/script/user_script.h"
#include "sweep/file/sweep_file.h"
#include "sweep/results/ranking.h"
#include "sweep/results/spread.h"
#include "sweep/results/trial_table.h"
#include "sweep/runner/command_template.h"
#include "sweep/storage/storage_url.h"
#include "trials/array.h"
#include "trials/driver.h"
#include "trials/job_starter.h"
#include "trials/local_starter.h"

namespace stoker::cli {
namespace {

using namespace std::chrono_literals;

constexpr Duration kStepInterval = 500ms;
constexpr Duration kStopGrace = 60s;  // a run saves a checkpoint before it ends
constexpr Duration kSubmitLimit = 60s;
constexpr Duration kLeaseLimit = 150s;  // longer than a lease of a node that does not answer
constexpr Duration kLeaseInterval = 5s;

struct SweepArguments {
  std::string file;
  std::string job;
  std::string place;
  std::int64_t at_once = 0;
  std::int64_t most_failed = 3;
  bool dry_run = false;
  bool force = false;
  bool is_task = false;
};

// The plan of the file with this command's options.
Result<sweep::TrialPlan> plan_of(const SweepArguments& o, const sweep::SweepFile& file) {
  sweep::TrialPlan plan = file.plan;
  const Path folder = Path(o.file).parent_path();
  if (!plan.job.empty() && plan.job.is_relative()) plan.job = folder / plan.job;
  if (!o.job.empty()) plan.job = o.job;
  if (o.at_once < 0) return invalid("--at-once: {} is below 1", o.at_once);
  if (o.at_once > 0) plan.at_once = static_cast<std::uint32_t>(std::min<std::int64_t>(o.at_once, 100'000));
  if (!o.place.empty()) {
    const auto place = enum_named<sweep::TrialPlace>(o.place);
    const auto names = names_of(sweep::TrialPlace{});
    if (!place)
      return invalid("--place: '{}' is unknown{}", printable(o.place), suggestion(o.place, std::span(names)));
    plan.place = *place;
  }
  if (plan.job.empty())
    return invalid("{}: has no job, a job file or batch script that each trial runs", printable(o.file))
        .cure("stoker sweep {} --job job.yaml", shell_quote(o.file));
  return plan;
}

bool is_batch_script(const Path& file) {
  const auto text = read_file(file);
  return text.ok() && slurm::is_script(*text);
}

Result<sweep::TrialPlace> choose_place(const sweep::TrialPlan& plan, bool is_script) {
  const bool needs_job_file = plan.place == sweep::TrialPlace::here || plan.place == sweep::TrialPlace::array;
  if (needs_job_file && is_script)
    return invalid("{}: a batch script runs only as a job (place: {})", printable(plan.job.string()),
                   stoker::to_text(plan.place))
        .cure("place: jobs");
  if (plan.place != sweep::TrialPlace::automatic) return plan.place;
  if (is_script) return sweep::TrialPlace::jobs;
  STOKER_ASSIGN_OR_RETURN(allocation, slurm::current_allocation(slurm::process_environment()));
  const bool has_slurm = !job::detect_cluster(slurm::process_environment()).cluster.empty();
  return !allocation && has_slurm ? sweep::TrialPlace::jobs : sweep::TrialPlace::here;
}

// A point in the middle of the space, to try the job file with.
sweep::Assignment middle_of(const sweep::Space& space) {
  return space.decode(space.normalized(sweep::Coordinates(space.parameters().size(), sweep::kInactive)));
}

// Facts of each trial from its job file.
struct TrialNeeds {
  double gpus = 0;
  std::uint32_t most_at_once = 0;  // that fit; 0: any number
};

// Refuses what would fail in each trial.
Result<TrialNeeds> check_job(const trials::TrialJob& job, const sweep::Space& space, sweep::TrialPlace place,
                             const Force& force, Output& out) {
  if (job.is_script) {
    if (job.plan.gpu_hours)
      return invalid("{}: budget.gpu_hours needs the number of GPUs, and thus a job file", job.file);
    STOKER_RETURN_IF_ERROR(refuse_lost_script(job.file.string(), {}, force, out));
    return TrialNeeds();
  }
  STOKER_ASSIGN_OR_RETURN(request, trials::trial_request(job, {}, middle_of(space)));
  if (request.job.array.is_enabled()) return invalid("{}: an array cannot be a trial (array.over)", job.file);
  const job::Resources& resources = request.job.resources;
  TrialNeeds needs{.gpus = static_cast<double>(resources.nodes) * resources.gpus_per_node()};
  if (place == sweep::TrialPlace::here) {
    auto fitting = trials::fitting_trials(resources);
    if (!fitting) return std::move(fitting).error().with_context(job.file.string());
    needs.most_at_once = fitting->value_or(0);
    if (needs.most_at_once > 0 && needs.most_at_once < job.plan.at_once)
      out.note("at_once: {} of {} nodes at a time fit into the allocation, not {}",
               counted(needs.most_at_once, "trial"), resources.nodes, job.plan.at_once);
    return needs;
  }
  STOKER_RETURN_IF_ERROR(check_site_limits(request.job, out));
  STOKER_RETURN_IF_ERROR(refuse_lost_job(request.job, force, out));
  return needs;
}

// Takes changed limits of the sweep file while it runs.
class PlanFile {
 public:
  PlanFile(const SweepArguments& o, std::uint32_t at_once, std::string definition)
      : o_(o), at_once_(at_once), definition_(std::move(definition)), time_(written()) {}
  void poll(trials::Driver& driver, Output& out) {
    const auto time = written();
    if (time == time_) return;
    time_ = time;
    const auto file = sweep::load_sweep(o_.file);
    const auto plan = file ? plan_of(o_, *file) : Result<sweep::TrialPlan>(file.error());
    if (!plan) return out.note("{} (the earlier limits stay)", plan.error().message());
    if (plan->at_once != at_once_) out.note("at_once: {}", plan->at_once);
    at_once_ = plan->at_once;
    driver.set_plan(*plan);
    sweep::Definition changed = file->definition;
    const sweep::Definition& known = driver.study().definition();
    changed.id = known.id;
    changed.warm_start = known.warm_start;
    changed.prior_trials = known.prior_trials;
    if (to_json(changed) != definition_)
      out.note("{}: differs from its study; only its limits count until the next sweep", o_.file);
  }

 private:
  std::filesystem::file_time_type written() const {
    std::error_code ignored;
    return std::filesystem::last_write_time(o_.file, ignored);
  }

  const SweepArguments& o_;
  std::uint32_t at_once_;
  std::string definition_;
  std::filesystem::file_time_type time_;
};

std::string counts_text(const sweep::TrialCounts& counts) {
  std::string text = counted(counts.complete, "complete trial");
  if (counts.pruned > 0) text += format(", {} pruned", counts.pruned);
  if (counts.failed > 0) text += format(", {} failed", counts.failed);
  if (counts.running > 0) text += format(", {} running", counts.running);
  return text;
}

std::string numbers_text(const std::vector<std::uint64_t>& numbers) {
  std::vector<std::string> texts;
  for (const std::uint64_t number : numbers) texts.push_back(format("{}", number));
  return join(texts, ", ");
}

std::string place_text(sweep::TrialPlace place) {
  if (place == sweep::TrialPlace::array) return "as tasks of one array";
  return place == sweep::TrialPlace::jobs ? "each as a job in the queue" : "here";
}

int show_result(const trials::Driver& driver, const SweepArguments& o, Output& out) {
  const sweep::Study& study = driver.study();
  const auto counts = sweep::count_trials(study.trials());
  const auto best = sweep::best_trials(study.definition(), study.trials());
  out.line("{}: {}", study.definition().name, counts_text(counts));
  if (!best.empty())
    out.line("  best  trial {}: {}   {}", best[0]->number, sweep::values_text(study.definition(), *best[0]),
             sweep::to_text(study.definition().space.decode(best[0]->point)));
  out.line("  next  stoker sweep show {}", shell_quote(o.file));
  out.json(format(R"({{"study":{},"complete":{},"pruned":{},"failed":{},"running":{},"best":{}}})",
                  json_string(sweep::shown_url(study.location())), counts.complete, counts.pruned,
                  counts.failed, counts.running,
                  best.empty() ? "null" : sweep::json_object(study.definition(), *best[0])));
  return counts.complete == 0 && counts.failed > 0 ? exit_code::kFailed : exit_code::kOk;
}

void note_stop(const trials::Driver& driver, const SweepArguments& o, bool is_here, Output& out) {
  const std::size_t running = driver.running();
  if (running == 0) return;
  if (is_here) {
    out.note("stopping {}, to be resumed by the next stoker sweep", counted(running, "trial"));
  } else {
    out.note("{} in the queue; stoker sweep {} continues", counted(running, "trial stays", "trials stay"),
             o.file);
  }
}

int drive(trials::Driver& driver, const SweepArguments& o, bool is_here, PlanFile& file, Output& out) {
  const ScopedStopSignals signals;
  RealClock clock;
  Result<bool> is_open = true;
  while (!stop_requested()) {
    is_open = driver.step();
    if (!is_open.ok() || !*is_open) break;
    file.poll(driver, out);
    clock.sleep(kStepInterval);
  }
  if (stop_requested()) note_stop(driver, o, is_here, out);
  driver.shut_down(kStopGrace);
  if (!is_open.ok()) return out.fail(is_open.error());
  const int code = show_result(driver, o, out);
  return stop_requested() ? 128 + SIGINT : code;
}

// The command of a task: the same file with the same options.
std::vector<std::string> task_command(const SweepArguments& o, const Path& stoker) {
  std::vector<std::string> words = {
      stoker.string(), "sweep",        std::filesystem::absolute(o.file).string(),
      "--task",        "--max-failed", format("{}", o.most_failed)};
  if (!o.job.empty()) words.insert(words.end(), {"--job", std::filesystem::absolute(o.job).string()});
  return words;
}

int submit_trials(const sweep::Study& study, const SweepArguments& o, const trials::TrialJob& job,
                  slurm::Scheduler& scheduler, Output& out) {
  const auto request = trials::trial_request(job, {}, middle_of(study.definition().space));
  if (!request.ok()) return out.fail(request.error());
  const auto done = trials::submit_array(study, {job, *request, task_command(o, job.stoker)}, scheduler,
                                         Deadline::after(kSubmitLimit));
  if (!done.ok()) return out.fail(done.error());
  const std::string& name = study.definition().name;
  for (const std::string& id : done->known)
    out.line("{}: array {} is in the queue, {} at once", name, id, job.plan.at_once);
  if (!done->job.empty())
    out.line("{}: array {} of {}, {} at once", name, done->job, counted(done->tasks, "task"),
             job.plan.at_once);
  if (done->left_out > 0)
    out.note("{}: the largest array leaves out {}; the same command submits the rest later", name,
             counted(done->left_out, "trial"));
  if (done->job.empty() && done->known.empty()) out.line("{}: no trial is left", name);
  out.line("  next  stoker sweep status {}", shell_quote(o.file));
  out.json(format(R"({{"study":{},"job":{},"tasks":{},"open":{}}})",
                  json_string(sweep::shown_url(study.location())),
                  done->job.empty() ? "null" : json_string(done->job), done->tasks, done->open));
  return exit_code::kOk;
}

// Without a new trial, a task waits until the lease of a task that is gone expires: on a node that died it is
// not given back.
int run_task(sweep::Study study, const trials::StudyOpener& open, trials::DriverOptions options,
             const trials::TrialJob& job, Output& out) {
  auto scheduler = make_scheduler();
  trials::TrialArrayTask task;
  const auto number = environment_value("SLURM_ARRAY_TASK_ID");
  if (!number || !parse_number(*number, &task.number))
    return out.fail(invalid("sweep: --task: this is no task of an array")
                        .cure("stoker sweep {}.yaml --place array", job.study));
  auto starter = trials::make_local_starter(job);
  if (!starter.ok()) return out.fail(starter.error());
  const ScopedStopSignals signals;
  RealClock clock;
  options.plan.at_once = 1;
  options.most_ended = 1;
  const Deadline patience = Deadline::after(kLeaseLimit);
  for (;; task.must_continue = true) {
    auto driver = trials::drive_task(open, options, task, **starter, scheduler);
    if (!driver.ok()) return out.fail(driver.error());
    Result<bool> is_open = driver->has_value();
    while (is_open.ok() && *is_open && !stop_requested()) {
      is_open = (*driver)->step();
      if (is_open.ok() && *is_open) clock.sleep(kStepInterval);
    }
    const bool has_result = driver->has_value() && (*driver)->ended() + (*driver)->failed() > 0;
    if (*driver) (*driver)->shut_down(kStopGrace);
    if (!is_open.ok()) return out.fail(is_open.error());
    if (stop_requested()) return 128 + SIGTERM;
    if (has_result) return exit_code::kOk;
    if (const Status read = study.refresh(); !read.ok()) return out.fail(read);
    if (patience.passed() || !trials::has_unfinished_task(study)) break;
    clock.sleep(kLeaseInterval);
  }
  out.note("{}: no trial is left", study.definition().name);
  return exit_code::kOk;
}

}  // namespace

int sweep(std::span<const std::string> words, Output& out) {
  SweepArguments o;
  Arguments arguments("sweep",
                      "Run the trials of a sweep file, each as a run of its job, until none is left.");
  arguments.positional("SWEEP", &o.file, "Sweep file with the key job");
  arguments.option("--job", &o.job, "FILE", "Job file or batch script of a trial, in place of the file's");
  arguments.option("--at-once", &o.at_once, "N",
                   "Trials that run or wait at the same time, in place of the file's");
  arguments.option("--place", &o.place, "PLACE",
                   "Where trials run: auto, here, jobs or array, in place of the file's");
  arguments.option("--max-failed", &o.most_failed, "N",
                   "Stop after this many failed trials in a row, 0 never");
  arguments.flag("--dry-run", &o.dry_run, "Show what would run, start nothing");
  arguments.flag("--task", &o.is_task, "Run one trial, as a task of the sweep's array (used by its script)");
  arguments.flag("--force", &o.force, "Run a job that stoker check expects to be lost");
  arguments.example("stoker sweep lr.yaml --at-once 2");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto file = sweep::load_sweep(o.file);
  if (!file.ok()) return out.fail(file.error());
  auto plan = plan_of(o, *file);
  if (!plan.ok()) return out.fail(plan.error());
  if (o.is_task) plan->place = sweep::TrialPlace::here;
  const auto program = own_program();
  if (!program.ok()) return out.fail(program.error());
  trials::TrialJob job{.file = plan->job, .is_script = is_batch_script(plan->job), .plan = *plan};
  const auto place = choose_place(*plan, job.is_script);
  if (!place.ok()) return out.fail(place.error());
  job.study = file->definition.name;
  job.typed = typed_command("sweep", words);
  job.stoker = *program;
  const sweep::Space& space = file->definition.space;
  const bool has_seeds = !file->definition.seeds.empty();
  if (const Status checked = sweep::check_command(plan->arguments, space, has_seeds ? "seed" : "");
      !checked.ok())
    return out.fail(checked);
  trials::DriverOptions options{.plan = *plan};
  options.most_failed = static_cast<std::uint32_t>(std::max<std::int64_t>(0, o.most_failed));
  job.runs = "runs";
  const auto needs = check_job(job, space, *place, {o.force, "stoker sweep"}, out);
  if (!needs.ok()) return out.fail(needs.error());
  options.gpus_per_trial = needs->gpus;
  options.most_at_once = needs->most_at_once;
  if (o.dry_run) {
    out.line("would run {}, {} at once, {}", printable(plan->job.string()), plan->at_once,
             place_text(*place));
    out.line("  middle  {}", sweep::to_text(middle_of(space)));
    if (has_seeds)
      out.line("  seeds   {}, the value is their {}", numbers_text(file->definition.seeds),
               stoker::to_text(file->definition.seed_average));
    out.json(format(R"({{"job":{},"at_once":{},"place":"{}"}})", json_string(plan->job.string()),
                    plan->at_once, stoker::to_text(*place)));
    return exit_code::kOk;
  }
  auto study = open_study(o.file, sweep::MissingStudy::create, out);
  if (!study.ok()) return out.fail(study.error());
  // Before anything is submitted.
  if (const Status bound = study->bind_folder(); !bound.ok()) return out.fail(bound);
  job.runs = trials::runs_folder(*study);
  ignore_sigpipe();
  options.on_event = [&out](const std::string& text) { out.note("{}", text); };
  const auto open = [&o]() -> Result<sweep::Study> {
    STOKER_ASSIGN_OR_RETURN(opened, sweep::open_study(o.file, sweep::MissingStudy::refuse));
    return std::move(opened.study);
  };
  if (o.is_task) return run_task(*std::move(study), open, std::move(options), job, out);
  auto scheduler = make_scheduler();
  if (*place == sweep::TrialPlace::array) return submit_trials(*study, o, job, scheduler, out);
  auto starter =
      *place == sweep::TrialPlace::jobs
          ? Result<std::unique_ptr<trials::TrialStarter>>(trials::make_job_starter(job, space, scheduler))
          : trials::make_local_starter(job);
  if (!starter.ok()) return out.fail(starter.error());
  PlanFile limits(o, plan->at_once, to_json(study->definition()));
  auto driver = trials::Driver::create(*std::move(study), std::move(options), **starter, scheduler);
  if (!driver.ok()) return out.fail(driver.error());
  return drive(*driver, o, *place == sweep::TrialPlace::here, limits, out);
}

}  // namespace stoker::cli
