#include "preflight/shape.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "job/tasks.h"
#include "stoker/text.h"
#include "stoker/time.h"

namespace stoker::preflight {
namespace {

constexpr std::size_t kManyJobs = 100;
constexpr std::size_t kTooManyAtOnce = 1000;
constexpr std::chrono::minutes kShortJob{5};
constexpr std::size_t kLeastGrid = 24;
constexpr std::size_t kLeastValues = 3;

// Columns that count repetitions or name inputs: every row is wanted.
constexpr std::array<std::string_view, 10> kNoHyperparameters = {"seed",  "fold", "split", "repeat", "trial",
                                                                 "index", "id",   "task",  "year",   "chunk"};

// By column: its values.
using Columns = std::map<std::string, std::set<std::string>>;

bool is_hyperparameter(const std::string& name, const std::set<std::string>& values) {
  const std::string last = to_lower(name.substr(name.rfind('.') + 1));
  const bool is_excluded = std::any_of(
      kNoHyperparameters.begin(), kNoHyperparameters.end(),
      [&](std::string_view word) { return last == word || last.ends_with("_" + std::string(word)); });
  return !is_excluded && values.size() >= kLeastValues &&
         std::all_of(values.begin(), values.end(), [](const auto& text) {
           double number = 0;
           return parse_number(text, &number);
         });
}

// The hyperparameters of a table that has each combination of its values once, if all columns are such.
std::vector<std::string> grid_of(const job::ArrayTasks& table) {
  Columns columns;
  std::set<std::string> rows;
  for (const job::ArrayTask& task : table.tasks) {
    std::string row;
    for (const auto& [name, value] : task.values) {
      columns[name].insert(value);
      row += value + '\n';
    }
    rows.insert(row);
  }
  std::size_t combinations = 1;
  std::vector<std::string> names;
  for (const auto& [name, values] : columns) {
    combinations *= std::min(values.size(), job::kMaxTasks);
    if (!is_hyperparameter(name, values) || combinations > table.tasks.size()) return {};
    names.push_back(name);
  }
  const bool is_full = combinations == table.tasks.size() && rows.size() == combinations;
  return is_full && names.size() > 1 ? names : std::vector<std::string>();
}

void check_count(const job::Job& job, std::size_t tasks, Notes& notes) {
  const std::optional<Duration>& time = job.resources.time;
  const bool is_separate = job.train || job.resources.world_size() > 1;
  // Submission packs short tasks of one process, unless `bundle` is set.
  const std::size_t bundle = job.array.bundle.value_or(1);
  const std::size_t jobs = (tasks + bundle - 1) / bundle;
  const bool is_short = time && *time * static_cast<std::int64_t>(bundle) <= kShortJob;
  const bool is_packed = !job.array.bundle && !is_separate;
  if (is_short && !is_packed && jobs >= kManyJobs) {
    notes.found("array-flood", Level::time, job.array.bundle ? "array.bundle" : "resources.time",
                // several, at least kManyJobs
                message("{} jobs of at most {}: starting each one costs Slurm more than the work",
                        grouped(jobs), duration_text(*time * static_cast<std::int64_t>(bundle))),
                job.array.bundle ? message("omit array.bundle: Stoker then packs short tasks")
                                 : message("stoker farm TASKS"));
  } else if (is_short && tasks >= kManyJobs) {
    notes.found(
        "short-tasks", Level::advice, "resources.time",
        // several, at least kManyJobs
        message("{} tasks of at most {}: a farm packs them into few allocations, and starts a task in "
                "milliseconds",
                grouped(tasks), duration_text(*time)),
        "stoker farm TASKS");
  }
  if (job.array.at_once || jobs < kManyJobs) return;
  notes.found(
      "uncapped-array", jobs < kTooManyAtOnce ? Level::advice : Level::time, "array.over",
      // several, at least kManyJobs
      message(
          "{} jobs without a limit on concurrent ones: they can use your whole limit, and your other jobs "
          "wait",
          grouped(jobs)),
      "array: {at_once: 20}");
}

}  // namespace

void check_shape(const job::Job& job, Notes& notes) {
  if (!job.array.is_enabled()) return;
  const auto table = job::read_tasks(*job.array.over);
  // Submission reads the table, too, and reports its errors.
  if (!table.ok()) return;
  const std::size_t tasks = table->tasks.size();
  check_count(job, tasks, notes);
  const std::vector<std::string> grid = tasks >= kLeastGrid ? grid_of(*table) : std::vector<std::string>();
  if (grid.empty()) return;
  notes.found(
      "grid-search", Level::advice, "array.over",
      // several, at least kLeastGrid
      message("{} tasks are the full grid over {}: a search finds good values in fewer trials, and can stop "
              "poor ones early",
              grouped(tasks), printable(join(grid, ", "))),
      "stoker sweep SWEEP.yaml");
}

}  // namespace stoker::preflight
