// `stoker data bench DATASET`: docs/commands/data-bench.md
#include "data/trials/bench.h"

#include <algorithm>

#include "base/json/json.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace stoker::cli {
namespace {

struct BenchOptions {
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

constexpr std::size_t kMostRows = 30;

std::string truth(bool value) { return value ? "True" : "False"; }

std::vector<std::string> row(const data::Trial& t) {
  return {t.job,
          t.loader,
          std::to_string(t.workers),
          truth(t.pins_memory),
          truth(t.is_non_blocking),
          std::to_string(t.prefetch),
          truth(t.is_persistent),
          truth(t.drops_last),
          format("{:.4f}", t.batch_s),
          format("{:.3f}", t.first_batch_s),
          rounded(t.memory),
          format("{:.0f}", t.samples_per_s)};
}

nlohmann::ordered_json to_json(const data::Trial& t) {
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

// What to write where, so that the next job is as fast.
std::string setting_of(const data::Trial& best) {
  if (best.loader == "stoker-train") {
    return format("train: {{loader_threads: {}, prefetch: {}}}", best.workers, best.prefetch);
  }
  const std::string name = best.loader == "torch" ? "torch.utils.data.DataLoader" : best.loader;
  return format("{}(..., num_workers={}, pin_memory={}, prefetch_factor={}, persistent_workers={})", name,
                best.workers, truth(best.pins_memory), best.prefetch, truth(best.is_persistent));
}

Result<data::BenchOptions> to_bench_options(const BenchOptions& o) {
  if (o.batch < 1 || o.batch > 1'000'000)
    return invalid("data bench: --batch: {} is not between 1 and 1000000", o.batch);
  if (o.threads && (*o.threads < 1 || *o.threads > 1024))
    return invalid("data bench: -j,--jobs: {} is not between 1 and 1024", *o.threads);
  data::BenchOptions options{.dataset = o.dataset, .split = o.split, .recipe = o.recipe};
  options.batch = static_cast<std::uint32_t>(o.batch);
  options.most_threads = static_cast<std::uint32_t>(o.threads.value_or(0));
  options.per_trial = o.per_trial.value_or(options.per_trial);
  return options;
}

// Trials of before with the same dataset and batch, from the file and from real jobs.
Result<std::vector<data::Trial>> earlier(const BenchOptions& o, const data::Trial& like) {
  std::vector<data::Trial> all = data::trials_of_runs(o.runs);
  if (path_exists(o.trials)) {
    OK_OR_RETURN(kept, data::read_trials(o.trials));
    all.insert(all.end(), kept.begin(), kept.end());
  }
  std::erase_if(all,
                [&](const data::Trial& t) { return t.dataset != like.dataset || t.batch != like.batch; });
  return all;
}

int print(const BenchOptions& o, std::vector<data::Trial> trials, Output& out) {
  const Result<std::vector<data::Trial>> before = earlier(o, trials[0]);
  if (!before.ok()) return out.fail(before.error());
  if (const Status kept = data::append_trials(o.trials, trials); !kept.ok()) return out.fail(kept);
  const data::Trial best_now = trials[0];
  trials.insert(trials.end(), before->begin(), before->end());
  data::sort_best_first(trials);
  std::vector<std::vector<std::string>> rows;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const data::Trial& trial : trials) {
    if (rows.size() < kMostRows) rows.push_back(row(trial));
    json.push_back(to_json(trial));
  }
  out.table(
      {"JOBID", "LOADER", "NUM_WORKERS", "PIN_MEMORY", "NON_BLOCKING", "PREFETCH_FACTOR",
       "PERSISTENT_WORKERS", "DROP_LAST", "LOADING_TIME", "1ST_STEP_LOADING_TIME", "CPU_MEMORY", "SAMPLES/S"},
      rows);
  if (trials.size() > rows.size()) out.line("... and {} more in {}", trials.size() - rows.size(), o.trials);
  if (!best_now.limit.empty()) out.line("limit   {}", best_now.limit);
  out.line("best    {}", setting_of(trials[0]));
  const nlohmann::ordered_json all = {
      {"limit", best_now.limit}, {"setting", setting_of(trials[0])}, {"trials", json}};
  out.json(json_text(all));
  return exit_code::kOk;
}

void declare(Arguments& arguments, BenchOptions& o) {
  arguments.positional("DATASET", &o.dataset,
                       "a folder that stoker data pack made, or what the function is called with");
  arguments.option("--split", &o.split, "NAME", "which split (default: the only one, or train)");
  arguments.option("--batch", &o.batch, "N", "samples per batch");
  arguments.option("--transform", &o.recipe, "NAME",
                   "imagenet-train, imagenet-eval, cifar-train or cifar-eval");
  arguments.option("-j,--jobs", &o.threads, "N", "most threads to try (default: the cores)");
  arguments.option("--per-trial", &o.per_trial, "TIME", "how long each setting is measured (default: 2s)");
  arguments.option(
      "--python", &o.python_function, "MODULE:FUNCTION",
      "tries torch's DataLoader and stoker.DataLoader over the Dataset that this function returns");
  arguments.option("--interpreter", &o.python, "PROGRAM", "the Python that has the module stoker");
  arguments.option("--trials", &o.trials, "FILE", "where trials gather");
  arguments.option("--runs", &o.runs, "DIR", "the runs whose jobs wrote trials too");
}

}  // namespace

int data_bench(std::span<const std::string> words, Output& out) {
  BenchOptions o;
  Arguments arguments("data bench",
                      "Tries loader settings on a dataset, and says which are best and what limits them.");
  declare(arguments, o);
  arguments.example("stoker data bench photos-s --per-trial 500ms");
  if (const auto code = arguments.parse(words, out)) return *code;

  const Result<data::BenchOptions> options = to_bench_options(o);
  if (!options.ok()) return out.fail(options.error());
  const auto ended = [&](const data::Trial& t) {
    if (out.is_terminal())
      out.note("{} num_workers={} prefetch_factor={}: {:.0f} samples/s", t.loader, t.workers, t.prefetch,
               t.samples_per_s);
  };
  const Result<std::vector<data::Trial>> trials =
      o.python_function.empty() ? data::bench_loader(*options, ended)
                                : data::bench_python(*options, {o.python_function, o.python}, ended);
  if (!trials.ok()) return out.fail(trials.error());
  return print(o, *trials, out);
}

}  // namespace stoker::cli
