#include "preflight/production/run_points.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/file.h"
#include "preflight/production/history.h"
#include "script_lint/rule.h"
#include "stoker/text.h"

namespace stoker::preflight {
namespace {

// The mean of all finite values; nothing without one.
std::optional<double> mean(std::span<const double> values) {
  double sum = 0;
  std::size_t count = 0;
  for (double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

std::string file_in(const PastRun& run, const std::string& name) {
  return printable((run.folder.folder() / "attempts" / std::to_string(run.state.attempts) / name).string());
}

bool has_not_run(const ProductionFacts& facts, ProductionPoint& point) {
  if (facts.newest() != nullptr) return false;
  point.evidence.push_back(
      message("no run with this name in {}", printable(facts.job.record.directory.string())));
  point.cure = message("stoker run, or stoker submit");
  return true;
}

std::size_t count_lines(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// The purging storage of the site that contains the folder.
Message purge_text(const ProductionFacts& facts, const Path& folder) {
  if (!facts.site) return {};
  for (const auto& [name, storage] : facts.site->storage) {
    if (!storage.path || !storage.purge_days) continue;
    std::string path = *storage.path;
    if (path.starts_with('$')) path = rank_variable(facts.job, path.substr(1)).value_or("");
    if (!path.empty() && folder.string().starts_with(path))
      return message("{} of {} deletes files after {} days without access", name, facts.site->name,
                     *storage.purge_days);
  }
  return {};
}

// Requirements without a pinned version.
std::vector<std::string> loose_requirements(const Path& file) {
  std::vector<std::string> loose;
  const auto text = read_file(file, 1_MiB);
  if (!text.ok()) return loose;
  for (std::string_view line : split(*text, '\n')) {
    line = trim(line.substr(0, line.find('#')));
    const bool is_fixed =
        line.find("==") != std::string_view::npos || line.find(" @ ") != std::string_view::npos;
    if (!line.empty() && !line.starts_with('-') && !is_fixed) loose.push_back(printable(line));
  }
  return loose;
}

}  // namespace

ProductionPoint usage_measured(const ProductionFacts& facts) {
  ProductionPoint point{.name = "use-measured",
                        .question = "are GPU usage, data waits and I/O measured",
                        .evidence = {},
                        .cure = {}};
  if (has_not_run(facts, point)) return point;
  const PastRun& run = *facts.newest();
  point.answer = PointAnswer::yes;
  const auto wait = facts.steps ? mean(facts.steps->column("data_s")) : std::nullopt;
  const auto step = facts.steps ? mean(facts.steps->column("step_s")) : std::nullopt;
  if (wait && step && *step > 0) {
    point.evidence.push_back(message("{:.0f} % of a step waits for data ({})", 100 * *wait / *step,
                                     file_in(run, "metrics-0000.csv")));
  } else {
    point.answer = PointAnswer::no;
    point.evidence.push_back(message("no data wait times in {}", file_in(run, "metrics-0000.csv")));
    point.cure = message("train: {{model: ...}}, which records its steps");
  }
  const auto read = facts.system ? mean(facts.system->column("rank0.asked_bytes_per_s")) : std::nullopt;
  if (read) {
    point.evidence.push_back(message("rank 0 reads {}/s ({})",
                                     rounded(ByteCount{static_cast<std::uint64_t>(std::max(0.0, *read))}),
                                     file_in(run, "system-0000.csv")));
  } else {
    point.answer = PointAnswer::no;
    point.evidence.push_back(message("no I/O in {}", file_in(run, "system-0000.csv")));
    if (point.cure.empty()) point.cure = message("record: {{sample_every: 1s}}, and a run longer than that");
  }
  if (!facts.has_gpus()) {
    point.evidence.push_back(message("no GPUs requested (resources.gpus_per_rank)"));
    return point;
  }
  const auto busy = facts.system ? mean(facts.system->column("gpu0.busy_percent")) : std::nullopt;
  if (busy) {
    point.evidence.push_back(
        message("GPU 0 is busy {:.0f} % of the time ({})", *busy, file_in(run, "system-0000.csv")));
  } else {
    point.answer = PointAnswer::no;
    point.evidence.push_back(message("no GPU usage in {}", file_in(run, "system-0000.csv")));
    if (point.cure.empty()) point.cure = message("run on a node with an NVIDIA driver");
  }
  return point;
}

ProductionPoint checkpoints_placed(const ProductionFacts& facts) {
  ProductionPoint point{.name = "checkpoints-kept",
                        .question = "do checkpoints have a location, a retention and no purge",
                        .evidence = {},
                        .cure = {}};
  const job::CheckpointOptions& options = facts.job.checkpoint;
  const Path folder = options.directory.value_or(facts.job.record.directory);
  const Message where = message("in {}", printable(folder.string()));
  if (facts.job.train && options.every.is_never()) {
    point.answer = PointAnswer::no;
    point.evidence.push_back(
        message("no checkpoints are saved ({})", facts.job.origins.where("checkpoint.every")));
    point.cure = "checkpoint: {every: auto}";
    return point;
  }
  const bool is_on_node = options.directory && script_lint::is_local_path(options.directory->string());
  if (is_on_node) {
    point.answer = PointAnswer::no;
    point.evidence.push_back(
        message("{} is node-local and deleted with the job", printable(folder.string())));
    point.cure = message("checkpoint: {{directory: shared storage, local: {}}}", folder.string());
    return point;
  }
  if (const Message purge = purge_text(facts, folder); !purge.empty()) {
    point.answer = PointAnswer::no;
    point.evidence.push_back(message("{}: {}", where, purge));
    point.cure = message("checkpoint: {{directory: storage that is not purged}}");
    return point;
  }
  if (facts.job.train) {
    point.answer = PointAnswer::yes;
    point.evidence.push_back(message("the last {} are kept {}", options.keep_last, where));
    return point;
  }
  if (has_not_run(facts, point)) return point;
  point.answer = facts.checkpoints > 0 ? PointAnswer::yes : PointAnswer::no;
  point.evidence.push_back(
      facts.checkpoints == 1
          ? message("run {} left 1 file or folder for checkpoints {}", facts.newest()->folder.id(), where)
          : message("run {} left {} files or folders for checkpoints {}", facts.newest()->folder.id(),
                    facts.checkpoints, where));
  if (facts.checkpoints == 0) point.cure = message("save to $STOKER_CHECKPOINT_DIR");
  return point;
}

ProductionPoint runs_tracked(const ProductionFacts& facts) {
  ProductionPoint point{.name = "runs-tracked",
                        .question = "are parameters, metrics and artifacts of the run kept",
                        .evidence = {},
                        .cure = {}};
  if (has_not_run(facts, point)) return point;
  const PastRun& run = *facts.newest();
  point.answer = PointAnswer::yes;
  point.evidence.push_back(message("parameters: {}", printable((run.folder.job()).string())));
  if (facts.steps) {
    point.evidence.push_back(message("steps with metrics: {}, in {}", grouped(facts.steps->rows()),
                                     file_in(run, "metrics-0000.csv")));
  } else if (!facts.logged.empty()) {
    point.evidence.push_back(message("logged metrics: {}, in {}", facts.logged.size(),
                                     file_in(run, record::point_file_name(0, ""))));
  } else {
    point.answer = PointAnswer::no;
    point.evidence.push_back(message("metrics: none in {}", file_in(run, "metrics-0000.csv")));
    point.cure = facts.job.train ? message("train: {{model: ...}} with record: {{metrics: true}}")
                                 : message("`stoker.log({{'loss': loss}}, step=step)` in the script");
  }
  if (facts.checkpoints > 0 || !facts.job.stage.back.empty()) {
    point.evidence.push_back(facts.checkpoints > 0 ? message("artifacts: checkpoints ({})", facts.checkpoints)
                                                   : message("artifacts: stage.back"));
  } else {
    point.answer = PointAnswer::no;
    point.evidence.push_back(message("artifacts: none"));
    if (point.cure.empty())
      point.cure = message("save to $STOKER_CHECKPOINT_DIR, or stage: {{back: [results]}}");
  }
  return point;
}

ProductionPoint environment_frozen(const ProductionFacts& facts) {
  ProductionPoint point{
      .name = "environment-frozen", .question = "is the environment frozen", .evidence = {}, .cure = {}};
  const job::Environment& environment = facts.job.environment;
  if (environment.container) {
    point.answer = PointAnswer::yes;
    point.evidence.push_back(message("image {}", printable(environment.container->string())));
    return point;
  }
  for (const std::string& module : environment.modules) {
    if (module.find('/') != std::string::npos) continue;
    point.answer = PointAnswer::no;
    point.evidence.push_back(message("module {} has no version ({})", printable(module),
                                     facts.job.origins.where("environment.modules")));
    point.cure = format("environment: {{modules: [{}/VERSION]}}", module);
  }
  if (point.answer == PointAnswer::no) return point;
  if (environment.venv && path_exists(*environment.venv) && !folder_exists(*environment.venv)) {
    const std::vector<std::string> loose = loose_requirements(*environment.venv);
    point.answer = loose.empty() ? PointAnswer::yes : PointAnswer::no;
    point.evidence.push_back(
        loose.empty() ? message("every package of {} is pinned", printable(environment.venv->string()))
                      : message("{} of {} is not pinned, {} in total", loose.front(),
                                printable(environment.venv->string()), loose.size()));
    if (!loose.empty())
      point.cure = format("pip freeze > {}", shell_quote(environment.venv->filename().string()));
    return point;
  }
  if (facts.job.train) {
    point.answer = PointAnswer::yes;
    point.evidence.push_back(message("stoker-train runs; run.json has its version"));
    return point;
  }
  if (has_not_run(facts, point)) return point;
  const PastRun& run = *facts.newest();
  const std::size_t packages = run.capsule.environment ? count_lines(run.capsule.environment->packages) : 0;
  const bool is_own = environment.venv || environment.conda;
  point.answer = packages > 0 && is_own ? PointAnswer::yes : PointAnswer::no;
  point.evidence.push_back(packages > 0 ? message("packages: {}, in {}", packages,
                                                  printable((run.folder.capsule() / "packages.txt").string()))
                                        : message("no packages were recorded"));
  if (!is_own)
    point.evidence.push_back(message("the Python belongs to the machine, and others may change it"));
  if (point.answer == PointAnswer::no)
    point.cure = message("environment: {{venv: requirements.txt}}, every package with ==");
  return point;
}

ProductionPoint scaling_documented(const ProductionFacts& facts) {
  ProductionPoint point{.name = "scaling-documented",
                        .question = "is scaling documented with graphs",
                        .evidence = {},
                        .cure = {}};
  if (has_not_run(facts, point)) return point;
  std::set<int> sizes;
  std::string report;
  for (const PastRun& run : facts.runs) {
    if (run.state.state != record::State::done) continue;
    sizes.insert(run.world_size);
    if (path_exists(run.folder.report())) report = printable(run.folder.report().string());
  }
  std::string list;
  for (int size : sizes) list += format("{}{}", list.empty() ? "" : ", ", size);
  point.answer = sizes.size() >= 2 && !report.empty() ? PointAnswer::yes : PointAnswer::no;
  point.evidence.push_back(sizes.empty() ? message("no run with this name has succeeded")
                                         : message("succeeded with these numbers of ranks: {}", list));
  point.evidence.push_back(report.empty() ? message("no report exists") : message("graphs in {}", report));
  if (point.answer == PointAnswer::no) {
    point.cure = "stoker report RUN RUN";
    if (sizes.size() < 2)
      point.cure = message("stoker run --set resources.ranks_per_node=N, with a different N");
  }
  return point;
}

ProductionPoint baseline_versioned(const ProductionFacts& facts) {
  ProductionPoint point{.name = "baseline-versioned",
                        .question = "are the baseline and the compared runs versioned",
                        .evidence = {},
                        .cure = {}};
  if (has_not_run(facts, point)) return point;
  std::size_t done = 0;
  std::size_t versioned = 0;
  const PastRun* baseline = nullptr;
  for (const PastRun& run : facts.runs) {
    if (run.state.state != record::State::done) continue;
    ++done;
    if (run.commit().empty()) continue;
    ++versioned;
    baseline = &run;  // the oldest one in the end
  }
  point.answer = versioned >= 2 && versioned == done ? PointAnswer::yes : PointAnswer::no;
  point.evidence.push_back(
      message("{} of {} successful runs have a clean commit (capsule/code.json)", versioned, done));
  if (baseline != nullptr)
    point.evidence.push_back(
        message("the first: {} at {}", baseline->folder.id(), baseline->commit().substr(0, 12)));
  if (point.answer == PointAnswer::no)
    point.cure = versioned < done ? message("git commit before a run, or code: {{snapshot: true}}")
                                  : message("stoker run, at least twice");
  return point;
}

}  // namespace stoker::preflight
