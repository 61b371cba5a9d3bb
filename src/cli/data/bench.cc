// `stoker data bench DATASET`: docs/commands/data-bench.md
#include "loader/trials/bench.h"

#include <algorithm>

#include "base/json/json.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace stoker::cli {
namespace {

struct BenchArguments {
  std::string dataset;
  std::string split;
  std::string recipe = "imagenet-train";
  std::string python_function;
  std::string python = "python3";
  std::string trials = "loader-trials.csv";
  std::string runs = "runs";
  std::int64_t batch = 64;
  std::optional<std::int64_t> threads;
  std::optional<Duration> per_trial;
};

constexpr std::size_t kMaxRows = 30;

std::string python_bool(bool value) { return value ? "True" : "False"; }

std::vector<std::string> row(const loader::Trial& t) {
  return {t.job,
          t.loader,
          std::to_string(t.workers),
          python_bool(t.pins_memory),
          python_bool(t.is_non_blocking),
          std::to_string(t.prefetch),
          python_bool(t.is_persistent),
          python_bool(t.drops_last),
          format("{:.4f}", t.batch_s),
          format("{:.3f}", t.first_batch_s),
          rounded(t.memory),
          format("{:.0f}", t.samples_per_s)};
}

nlohmann::ordered_json to_json(const loader::Trial& t) {
  return {{"jobid", t.job},
          {"dataset", t.dataset},
          {"loader", t.loader},
          {"batch", t.batch},
          {"num_workers", t.workers},
          {"pin_memory", t.pins_memory},
          {"non_blocking", t.is_non_blocking},
          {"prefetch_factor", t.prefetch},
          {"persistent_workers", t.is_persistent},
          {"drop_last", t.drops_last},
          {"loading_time", t.batch_s},
          {"1st_step_loading_time", t.first_batch_s},
          {"cpu_memory", t.memory.value},
          {"samples_per_s", t.samples_per_s},
          {"limit", t.limit}};
}

// The setting to put into the job file or script.
std::string setting_text(const loader::Trial& best) {
  if (best.loader == "stoker-train") {
    return format("train: {{num_workers: {}, prefetch: {}}}", best.workers, best.prefetch);
  }
  const std::string name = best.loader == "torch" ? "torch.utils.data.DataLoader" : best.loader;
  return format("{}(..., num_workers={}, pin_memory={}, prefetch_factor={}, persistent_workers={})", name,
                best.workers, python_bool(best.pins_memory), best.prefetch, python_bool(best.is_persistent));
}

Result<loader::BenchOptions> to_bench_options(const BenchArguments& o) {
  if (o.batch < 1 || o.batch > 1'000'000)
    return invalid("data bench: --batch: {} is not between 1 and 1000000", o.batch);
  if (o.threads && (*o.threads < 1 || *o.threads > 1024))
    return invalid("data bench: -j,--jobs: {} is not between 1 and 1024", *o.threads);
  loader::BenchOptions options{.dataset = o.dataset, .split = o.split, .recipe = o.recipe};
  options.batch = static_cast<std::uint32_t>(o.batch);
  options.most_threads = static_cast<std::uint32_t>(o.threads.value_or(0));
  options.per_trial = o.per_trial.value_or(options.per_trial);
  return options;
}

// Earlier trials with the same dataset and batch size, from the file and from recorded runs.
Result<std::vector<loader::Trial>> load_earlier_trials(const BenchArguments& o, const loader::Trial& like) {
  std::vector<loader::Trial> all = loader::collect_run_trials(o.runs);
  if (path_exists(o.trials)) {
    STOKER_ASSIGN_OR_RETURN(kept, loader::read_trials(o.trials));
    all.insert(all.end(), kept.begin(), kept.end());
  }
  std::erase_if(all,
                [&](const loader::Trial& t) { return t.dataset != like.dataset || t.batch != like.batch; });
  return all;
}

int print(const BenchArguments& o, std::vector<loader::Trial> trials, Output& out) {
  const Result<std::vector<loader::Trial>> before = load_earlier_trials(o, trials[0]);
  if (!before.ok()) return out.fail(before.error());
  if (const Status kept = loader::append_trials(o.trials, trials); !kept.ok()) return out.fail(kept);
  const loader::Trial best_now = trials[0];
  trials.insert(trials.end(), before->begin(), before->end());
  loader::sort_best_first(trials);
  std::vector<std::vector<std::string>> rows;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const loader::Trial& trial : trials) {
    if (rows.size() < kMaxRows) rows.push_back(row(trial));
    json.push_back(to_json(trial));
  }
  out.table(
      {"JOBID", "LOADER", "NUM_WORKERS", "PIN_MEMORY", "NON_BLOCKING", "PREFETCH_FACTOR",
       "PERSISTENT_WORKERS", "DROP_LAST", "LOADING_TIME", "1ST_STEP_LOADING_TIME", "CPU_MEMORY", "SAMPLES/S"},
      rows);
  if (trials.size() > rows.size()) out.line("... and {} more in {}", trials.size() - rows.size(), o.trials);
  if (!best_now.limit.empty()) out.line("limit   {}", best_now.limit);
  out.line("best    {}", setting_text(trials[0]));
  const nlohmann::ordered_json all = {
      {"limit", best_now.limit}, {"setting", setting_text(trials[0])}, {"trials", json}};
  out.json(json_text(all));
  return exit_code::kOk;
}

void declare(Arguments& arguments, BenchArguments& o) {
  arguments.positional("DATASET", &o.dataset, "Packed dataset, or the argument of the function");
  arguments.option("--split", &o.split, "NAME", "Use this split (default: the only one, or train)");
  arguments.option("--batch", &o.batch, "N", "Set the batch size in samples");
  arguments.option("--transform", &o.recipe, "NAME",
                   "imagenet-train, imagenet-eval, cifar-train or cifar-eval");
  arguments.option("-j,--jobs", &o.threads, "N", "Try at most N threads (default: all cores)");
  arguments.option("--per-trial", &o.per_trial, "TIME", "Measure each setting for this time (default: 2s)");
  arguments.option(
      "--python", &o.python_function, "MODULE:FUNCTION",
      "Compare torch's DataLoader and stoker.DataLoader on the Dataset that this function returns");
  arguments.option("--interpreter", &o.python, "PROGRAM", "Use this Python, which has the module stoker");
  arguments.option("--trials", &o.trials, "FILE", "Append the trials to this file");
  arguments.option("--runs", &o.runs, "DIR", "Include trials recorded by these runs");
}

}  // namespace

int data_bench(std::span<const std::string> words, Output& out) {
  BenchArguments o;
  Arguments arguments("data bench",
                      "Measure loader settings for a dataset and print the best one and the bottleneck.");
  declare(arguments, o);
  arguments.example("stoker data bench photos-s --per-trial 500ms");
  if (const auto code = arguments.parse(words, out)) return *code;

  const Result<loader::BenchOptions> options = to_bench_options(o);
  if (!options.ok()) return out.fail(options.error());
  const auto on_trial = [&](const loader::Trial& t) {
    if (out.is_terminal())
      out.note("{} num_workers={} prefetch_factor={}: {:.0f} samples/s", t.loader, t.workers, t.prefetch,
               t.samples_per_s);
  };
  const Result<std::vector<loader::Trial>> trials =
      o.python_function.empty() ? loader::bench_loader(*options, on_trial)
                                : loader::bench_python(*options, {o.python_function, o.python}, on_trial);
  if (!trials.ok()) return out.fail(trials.error());
  return print(o, *trials, out);
}

}  // namespace stoker::cli
