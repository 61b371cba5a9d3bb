#include "trials/array.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/language/counted.h"
#include "base/version.h"
#include "launch/start/submit.h"
#include "record/work_lease.h"
#include "slurm/script/batch_script.h"
#include "stoker/text.h"
#include "sweep/results/ranking.h"

namespace stoker::trials {

namespace {

constexpr std::string_view kTaskWorker = "array-";
constexpr std::uint64_t kMostTasks = 100'000;

std::optional<std::uint64_t> worker_number(std::string_view worker) {
  std::uint64_t number = 0;
  if (!worker.starts_with(kTaskWorker)) return std::nullopt;
  return parse_number(worker.substr(kTaskWorker.size()), &number) ? std::optional(number) : std::nullopt;
}

// Trials that have no result yet.
Result<std::uint64_t> trials_left(const sweep::Study& study) {
  const sweep::Definition& definition = study.definition();
  const auto counts = sweep::count_trials(study.trials());
  std::uint64_t most = definition.most_trials;
  if (most == 0 && definition.sampler == sweep::SamplerKind::grid)
    most = definition.space.count().value_or(0);
  if (most == 0)
    return invalid("{}: an array needs the number of trials (place: array)", definition.name)
        .cure("trials: 50");
  return most - std::min<std::uint64_t>(most, counts.complete + counts.pruned);
}

std::string comment_of_array(const sweep::Study& study) {
  return format("stoker-sweep:{}", study.folder_id());
}

// A lease that is there while the array is submitted.
Result<record::WorkLease> submission_lease(const sweep::Study& study) {
  auto lease = record::WorkLease::take(study.folder() / "array.json", "submits its array");
  if (!lease) return std::move(lease).error().with_context(study.folder().string());
  return lease;
}

Result<std::string> array_script(const sweep::Study& study, const TrialArrayRequest& wanted,
                                 std::uint64_t tasks) {
  const job::Job& job = wanted.request.job;
  slurm::BatchScript script = launch::job_script(job);
  script.title = format("trials of the study {}, written by stoker {}", study.definition().name, version());
  script.job_name = study.definition().name;
  script.comment = comment_of_array(study);
  script.tasks_per_node = 1;  // the trial's step, which starts the ranks
  script.tasks = 0;
  script.cpus_per_task =
      static_cast<int>(job.resources.cpus_per_rank.value_or(1) * job.resources.ranks_per_node);
  script.array = format("1-{}%{}", tasks, wanted.job.plan.at_once);
  std::error_code error;
  script.directory = std::filesystem::current_path(error);
  if (error) return posix_error("current folder", error.value());
  script.log = std::filesystem::absolute(study.folder()) / "array.log";
  script.command = wanted.command;
  return slurm::write_batch_script(script);
}

}  // namespace

std::optional<std::uint64_t> array_tasks_of(std::string_view id) {
  const std::size_t open = id.find('[');
  if (open == std::string_view::npos) return 1;
  const std::string_view list = id.substr(open + 1, id.find_first_of("%]", open) - open - 1);
  std::uint64_t count = 0;
  for (const std::string_view range : split(list, ',')) {
    const std::size_t dash = range.find('-');
    std::uint64_t first = 0;
    if (!parse_number(range.substr(0, dash), &first)) return std::nullopt;
    std::uint64_t last = first;
    if (dash != std::string_view::npos && !parse_number(range.substr(dash + 1), &last)) return std::nullopt;
    if (last < first) return std::nullopt;
    count += last - first + 1;
  }
  return count;
}

Result<TrialArray> submit_array(const sweep::Study& study, const TrialArrayRequest& wanted,
                                slurm::Scheduler& scheduler, Deadline deadline) {
  const auto& request = wanted.request;
  if (request.job.resources.nodes > 1)
    return invalid("{}: a task of an array runs a trial on one node, not {} (place: array)", wanted.job.file,
                   request.job.resources.nodes)
        .cure("place: jobs");
  STOKER_ASSIGN_OR_RETURN(left, trials_left(study));
  const auto lease = submission_lease(study);
  if (!lease) return lease.status();
  STOKER_ASSIGN_OR_RETURN(listed, scheduler.jobs(deadline));
  TrialArray result;
  std::set<std::string> known;
  bool is_counted = true;
  for (const slurm::JobInfo& each : listed.jobs) {
    if (each.comment != comment_of_array(study) || slurm::is_over(each.state)) continue;
    known.emplace(slurm::base_job_id(each.id));
    const auto tasks = array_tasks_of(each.id);
    is_counted = is_counted && tasks;
    result.open += tasks.value_or(0);
  }
  result.known.assign(known.begin(), known.end());
  for (const std::string& id : result.known)
    STOKER_RETURN_IF_ERROR(scheduler.set_array_limit(id, wanted.job.plan.at_once, deadline));
  if (!is_counted || left <= result.open) return result;
  STOKER_ASSIGN_OR_RETURN(largest, scheduler.max_array_tasks(deadline));
  const std::uint64_t missing = left - result.open;
  result.tasks =
      std::min({missing, kMostTasks, static_cast<std::uint64_t>(std::max<std::int64_t>(largest, 1))});
  result.left_out = missing - result.tasks;

  const Path folder = std::filesystem::absolute(study.folder());
  STOKER_ASSIGN_OR_RETURN(text, array_script(study, wanted, result.tasks));
  STOKER_RETURN_IF_ERROR(write_file(folder / "array.sbatch", text));
  auto submitted = scheduler.submit(folder / "array.sbatch", deadline);
  if (!submitted) return launch::with_key(std::move(submitted).error(), request.job);
  result.job = *submitted;
  return result;
}

bool has_unfinished_task(const sweep::Study& study) {
  return std::ranges::any_of(study.trials(), [](const sweep::StudyTrial& trial) {
    return trial.state == sweep::TrialState::running && worker_number(trial.worker);
  });
}

Result<std::optional<Driver>> drive_task(const StudyOpener& open, DriverOptions options, TrialArrayTask task,
                                         TrialStarter& starter, slurm::Scheduler& scheduler) {
  const auto try_worker = [&](std::uint64_t number) -> Result<std::optional<Driver>> {
    STOKER_ASSIGN_OR_RETURN(opened, open());
    options.worker = format("{}{}", kTaskWorker, number);
    auto driver = Driver::create(std::move(opened), options, starter, scheduler);
    if (driver) return std::optional<Driver>(*std::move(driver));
    if (driver.error().code() == Code::exists) return std::optional<Driver>();
    return std::move(driver).error();
  };
  STOKER_ASSIGN_OR_RETURN(known, open());
  std::set<std::uint64_t> unfinished;
  for (const sweep::StudyTrial& trial : known.trials()) {
    const auto number = worker_number(trial.worker);
    if (number && trial.state == sweep::TrialState::running) unfinished.insert(*number);
  }
  for (const std::uint64_t number : unfinished) {
    auto driver = try_worker(number);
    if (!driver || *driver) return driver;
  }
  if (task.must_continue) return std::optional<Driver>();
  for (std::uint64_t number = task.number; number < task.number + kMostTasks; ++number) {
    if (unfinished.contains(number)) continue;
    auto driver = try_worker(number);
    if (!driver || *driver) return driver;
  }
  return unavailable("{}: {} run", known.definition().name, counted(kMostTasks, "task"));
}

}  // namespace stoker::trials
