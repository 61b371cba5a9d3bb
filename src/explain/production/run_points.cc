// Questions about what runs record: use of the machine, checkpoints, figures, environment, studies.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "explain/production/history.h"
#include "explain/script/rule.h"

namespace stoker::explain {
namespace {

// The mean of what is a number; nothing without one.
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
      facts.words.say("no run of this name in {}", printable(facts.job.record.directory.string())));
  point.cure = facts.words.say("stoker run, or stoker submit");
  return true;
}

std::size_t count_lines(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// The storage of the site in which a folder lies, when that purges.
std::string purge_text(const ProductionFacts& facts, const Path& folder) {
  if (!facts.site) return "";
  for (const auto& [name, storage] : facts.site->storage) {
    if (!storage.path || !storage.purge_days) continue;
    std::string path = *storage.path;
    if (path.starts_with('$')) path = rank_variable(facts.job, path.substr(1)).value_or("");
    if (!path.empty() && folder.string().starts_with(path))
      return facts.words.say("{} of {} removes what nobody touched for {} days", name, facts.site->name,
                             *storage.purge_days);
  }
  return "";
}

// Requirements without a fixed version.
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

ProductionPoint use_measured(const ProductionFacts& facts) {
  ProductionPoint point{.name = "use-measured",
                        .question = "are GPU use, waiting for data and I/O measured",
                        .evidence = {},
                        .cure = {}};
  if (has_not_run(facts, point)) return point;
  const PastRun& run = *facts.newest();
  point.answer = Answer::yes;
  const auto wait = facts.steps ? mean(facts.steps->column("data_s")) : std::nullopt;
  const auto step = facts.steps ? mean(facts.steps->column("step_s")) : std::nullopt;
  if (wait && step && *step > 0) {
    point.evidence.push_back(facts.words.say("{:.0f} % of a step waits for data ({})", 100 * *wait / *step,
                                             file_in(run, "metrics-0000.csv")));
  } else {
    point.answer = Answer::no;
    point.evidence.push_back(
        facts.words.say("no step's waiting for data in {}", file_in(run, "metrics-0000.csv")));
    point.cure = facts.words.say("train: {{model: ...}}, which records its steps");
  }
  const auto read = facts.system ? mean(facts.system->column("rank0.asked_bytes_per_s")) : std::nullopt;
  if (read) {
    point.evidence.push_back(facts.words.say(
        "rank 0 reads {}/s ({})", rounded(ByteCount{static_cast<std::uint64_t>(std::max(0.0, *read))}),
        file_in(run, "system-0000.csv")));
  } else {
    point.answer = Answer::no;
    point.evidence.push_back(facts.words.say("no I/O in {}", file_in(run, "system-0000.csv")));
    if (point.cure.empty())
      point.cure = facts.words.say("record: {{sample_every: 1s}}, and a run longer than that");
  }
  if (!facts.has_gpus()) {
    point.evidence.push_back(facts.words.say("no GPUs asked for (resources.gpus_per_rank)"));
    return point;
  }
  const auto busy = facts.system ? mean(facts.system->column("gpu0.busy_percent")) : std::nullopt;
  if (busy) {
    point.evidence.push_back(
        facts.words.say("GPU 0 is busy {:.0f} % of the time ({})", *busy, file_in(run, "system-0000.csv")));
  } else {
    point.answer = Answer::no;
    point.evidence.push_back(facts.words.say("no GPU's use in {}", file_in(run, "system-0000.csv")));
    if (point.cure.empty()) point.cure = facts.words.say("a run on a node with NVIDIA's driver");
  }
  return point;
}

ProductionPoint checkpoints_placed(const ProductionFacts& facts) {
  ProductionPoint point{.name = "checkpoints-kept",
                        .question = "do checkpoints have a place, a number that is kept, and no purge",
                        .evidence = {},
                        .cure = {}};
  const job::CheckpointOptions& options = facts.job.checkpoint;
  const Path folder = options.directory.value_or(facts.job.record.directory);
  const std::string where = facts.words.say("in {}", printable(folder.string()));
  if (facts.job.train && options.every.is_never()) {
    point.answer = Answer::no;
    point.evidence.push_back(
        facts.words.say("none are saved ({})", facts.job.origins.where("checkpoint.every")));
    point.cure = "checkpoint: {every: auto}";
    return point;
  }
  const bool is_on_node = options.directory && is_local_path(options.directory->string());
  if (is_on_node) {
    point.answer = Answer::no;
    point.evidence.push_back(
        facts.words.say("{} is a node's own, and gone with the job", printable(folder.string())));
    point.cure = facts.words.say("checkpoint: {{directory: shared storage, local: {}}}", folder.string());
    return point;
  }
  if (const std::string purge = purge_text(facts, folder); !purge.empty()) {
    point.answer = Answer::no;
    point.evidence.push_back(format("{}: {}", where, purge));
    point.cure = facts.words.say("checkpoint: {{directory: storage that is not purged}}");
    return point;
  }
  if (facts.job.train) {
    point.answer = Answer::yes;
    point.evidence.push_back(facts.words.say("the newest {} are kept {}", options.keep, where));
    return point;
  }
  if (has_not_run(facts, point)) return point;
  point.answer = facts.checkpoints > 0 ? Answer::yes : Answer::no;
  point.evidence.push_back(facts.checkpoints == 1
                               ? facts.words.say("run {} left 1 file or folder for checkpoints {}",
                                                 facts.newest()->folder.id(), where)
                               : facts.words.say("run {} left {} files or folders for checkpoints {}",
                                                 facts.newest()->folder.id(), facts.checkpoints, where));
  if (facts.checkpoints == 0) point.cure = facts.words.say("save to $STOKER_CHECKPOINT_DIR");
  return point;
}

ProductionPoint runs_tracked(const ProductionFacts& facts) {
  ProductionPoint point{.name = "runs-tracked",
                        .question = "are parameters, metrics and artifacts of the run kept",
                        .evidence = {},
                        .cure = {}};
  if (has_not_run(facts, point)) return point;
  const PastRun& run = *facts.newest();
  point.answer = Answer::yes;
  point.evidence.push_back(facts.words.say("parameters: {}", printable((run.folder.job()).string())));
  if (facts.steps) {
    point.evidence.push_back(facts.words.say("metrics: {} steps in {}", grouped(facts.steps->rows()),
                                             file_in(run, "metrics-0000.csv")));
  } else {
    point.answer = Answer::no;
    point.evidence.push_back(facts.words.say("metrics: none in {}", file_in(run, "metrics-0000.csv")));
    point.cure = facts.words.say("train: {{model: ...}} with record: {{metrics: true}}");
  }
  if (facts.checkpoints > 0 || !facts.job.stage.back.empty()) {
    point.evidence.push_back(facts.checkpoints > 0
                                 ? facts.words.say("artifacts: {} of checkpoints", facts.checkpoints)
                                 : facts.words.say("artifacts: what stage.back brings"));
  } else {
    point.answer = Answer::no;
    point.evidence.push_back(facts.words.say("artifacts: none"));
    if (point.cure.empty())
      point.cure = facts.words.say("save to $STOKER_CHECKPOINT_DIR, or stage: {{back: [results]}}");
  }
  return point;
}

ProductionPoint environment_frozen(const ProductionFacts& facts) {
  ProductionPoint point{
      .name = "environment-frozen", .question = "is the environment frozen", .evidence = {}, .cure = {}};
  const job::Environment& environment = facts.job.environment;
  if (environment.container) {
    point.answer = Answer::yes;
    point.evidence.push_back(facts.words.say("image {}", printable(environment.container->string())));
    return point;
  }
  for (const std::string& module : environment.modules) {
    if (module.find('/') != std::string::npos) continue;
    point.answer = Answer::no;
    point.evidence.push_back(facts.words.say("module {} has no version ({})", printable(module),
                                             facts.job.origins.where("environment.modules")));
    point.cure = format("environment: {{modules: [{}/VERSION]}}", module);
  }
  if (point.answer == Answer::no) return point;
  if (environment.venv && path_exists(*environment.venv) && !folder_exists(*environment.venv)) {
    const std::vector<std::string> loose = loose_requirements(*environment.venv);
    point.answer = loose.empty() ? Answer::yes : Answer::no;
    point.evidence.push_back(
        loose.empty()
            ? facts.words.say("every package of {} has its version", printable(environment.venv->string()))
            : facts.words.say("{} of {} has no version, {} in all", loose.front(),
                              printable(environment.venv->string()), loose.size()));
    if (!loose.empty())
      point.cure = format("pip freeze > {}", shell_quote(environment.venv->filename().string()));
    return point;
  }
  if (facts.job.train) {
    point.answer = Answer::yes;
    point.evidence.push_back(facts.words.say("stoker-train runs, whose version is in run.json"));
    return point;
  }
  if (has_not_run(facts, point)) return point;
  const PastRun& run = *facts.newest();
  const std::size_t packages = run.capsule.environment ? count_lines(run.capsule.environment->packages) : 0;
  const bool is_own = environment.venv || environment.conda;
  point.answer = packages > 0 && is_own ? Answer::yes : Answer::no;
  point.evidence.push_back(packages > 0
                               ? facts.words.say("{} packages in {}", packages,
                                                 printable((run.folder.capsule() / "packages.txt").string()))
                               : facts.words.say("no packages were recorded"));
  if (!is_own)
    point.evidence.push_back(facts.words.say("the Python is the machine's own, which others change"));
  if (point.answer == Answer::no)
    point.cure = facts.words.say("environment: {{venv: requirements.txt}}, every package with ==");
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
  point.answer = sizes.size() >= 2 && !report.empty() ? Answer::yes : Answer::no;
  point.evidence.push_back(sizes.empty() ? facts.words.say("no run of this name is done")
                                         : facts.words.say("done with {} ranks", list));
  point.evidence.push_back(report.empty() ? facts.words.say("no report was made")
                                          : facts.words.say("graphs in {}", report));
  if (point.answer == Answer::no)
    point.cure =
        sizes.size() < 2
            ? std::string(facts.words.say("stoker run --set resources.ranks_per_node=N, with another N"))
            : "stoker report RUN RUN";
  return point;
}

ProductionPoint baseline_versioned(const ProductionFacts& facts) {
  ProductionPoint point{.name = "baseline-versioned",
                        .question = "are a baseline and the runs it is compared with versioned",
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
    baseline = &run;  // the oldest of them in the end
  }
  point.answer = versioned >= 2 && versioned == done ? Answer::yes : Answer::no;
  point.evidence.push_back(facts.words.say(
      "{} of {} done runs have a commit without changes beside it (capsule/code.json)", versioned, done));
  if (baseline != nullptr)
    point.evidence.push_back(
        facts.words.say("the first: {} at {}", baseline->folder.id(), baseline->commit().substr(0, 12)));
  if (point.answer == Answer::no)
    point.cure = versioned < done ? facts.words.say("git commit before a run, or code: {{snapshot: true}}")
                                  : facts.words.say("stoker run, twice at least");
  return point;
}

}  // namespace stoker::explain
