#include "loader/trials/bench.h"

#include <algorithm>
#include <set>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "base/stopwatch.h"
#include "dataset/shard_source.h"
#include "loader/advice.h"

namespace stoker::loader {
namespace {

constexpr auto kBatchTimeout =
    std::chrono::minutes(10);  // storage may be slow, but a trial is not worth more

std::string job_name() {
  for (const char* name : {"SLURM_JOB_ID", "STOKER_RUN_ID"}) {
    if (const auto value = environment_value(name); value && !value->empty()) return *value;
  }
  return "here";
}

Result<std::unique_ptr<dataset::LocalShardSource>> open_split(const BenchOptions& options) {
  if (!options.split.empty()) return dataset::LocalShardSource::open(options.dataset, options.split);
  STOKER_ASSIGN_OR_RETURN(manifest, dataset::read_manifest(options.dataset));
  return dataset::LocalShardSource::open(options.dataset, manifest.splits.size() == 1 ? "" : "train");
}

Result<LoaderOptions> loader_options(const BenchOptions& options, const Trial& trial) {
  LoaderOptions o;
  o.batch = options.batch;
  o.threads = trial.workers;
  o.prefetch = trial.prefetch;
  STOKER_ASSIGN_OR_RETURN(operations, image::recipe(options.recipe));
  o.transform.operations = operations;
  return o;
}

// Runs the trial and fills in its results.
Status run(const BenchOptions& options, Trial& trial) {
  const Stopwatch whole;
  STOKER_ASSIGN_OR_RETURN(source, open_split(options));
  trial.dataset = source->manifest().short_version();
  STOKER_ASSIGN_OR_RETURN(o, loader_options(options, trial));
  STOKER_ASSIGN_OR_RETURN(loader, Loader::open(*source, o));
  STOKER_RETURN_IF_ERROR(loader->next(Deadline::after(kBatchTimeout)).status());
  trial.first_batch_s = whole.seconds();
  const Deadline end = Deadline::after(options.per_trial);
  const Stopwatch rest;
  std::uint64_t samples = 0;
  std::uint64_t batches = 0;
  while (batches == 0 || !end.passed()) {
    STOKER_ASSIGN_OR_RETURN(batch, loader->next(Deadline::after(kBatchTimeout)));
    if (!batch) continue;  // the end of an epoch
    samples += batch->count();
    ++batches;
  }
  trial.batch_s = rest.seconds() / static_cast<double>(batches);
  trial.samples_per_s = static_cast<double>(samples) / rest.seconds();
  trial.limit = limiting_stage(loader->stats());
  return Status();
}

// The child process: writes one line, the trial or '!' and the error.
[[noreturn]] void run_in_child(const BenchOptions& options, Trial trial, int pipe) {
  const Status status = run(options, trial);
  const std::string line = status.ok() ? to_csv(trial) : format("!{}\n", status.message());
  const ssize_t written = ::write(pipe, line.data(), line.size());
  ::_exit(written == static_cast<ssize_t>(line.size()) ? 0 : 1);
}

Result<std::string> read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count == 0) return text;
    if (count < 0 && errno != EINTR) return posix_error("data bench: the trial's pipe", errno);
    if (count > 0) text.append(buffer, static_cast<std::size_t>(count));
  }
}

Result<Trial> run_trial(const BenchOptions& options, Trial trial) {
  STOKER_ASSIGN_OR_RETURN(pipe, Pipe::create());
  const pid_t child = ::fork();
  if (child < 0) return posix_error("data bench: fork", errno);
  if (child == 0) run_in_child(options, trial, pipe.write.get());
  pipe.write.reset();
  Result<std::string> output = read_all(pipe.read.get());
  int wait_status = 0;
  rusage used{};
  while (::wait4(child, &wait_status, 0, &used) < 0 && errno == EINTR) {
  }
  STOKER_RETURN_IF_ERROR(output.status());
  if (output->starts_with('!')) return invalid("{}", trim(std::string_view(*output).substr(1)));
  TempDirectory folder;
  STOKER_RETURN_IF_ERROR(append_trials(folder / "trial.csv", {}));
  STOKER_ASSIGN_OR_RETURN(file, File::open_append(folder / "trial.csv"));
  STOKER_RETURN_IF_ERROR(file.write(*output));
  STOKER_ASSIGN_OR_RETURN(trials, read_trials(folder / "trial.csv"));
  if (trials.size() != 1) return unavailable("data bench: a trial ended without a result ({})", wait_status);
  trials[0].memory.value = static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
  return trials[0];
}

}  // namespace

Result<std::vector<Trial>> bench_loader(const BenchOptions& options, const TrialCallback& on_trial) {
  const std::uint32_t cores = detect_machine("/", current_environment()).cores;
  const std::uint32_t most = options.most_threads > 0 ? options.most_threads : cores;
  Trial trial{.job = job_name(), .loader = "stoker-train", .batch = options.batch, .prefetch = 4};
  std::vector<Trial> trials;
  const auto try_one = [&](std::uint32_t threads, std::uint32_t prefetch) -> Status {
    trial.workers = threads;
    trial.prefetch = prefetch;
    STOKER_ASSIGN_OR_RETURN(done, run_trial(options, trial));
    on_trial(done);
    trials.push_back(done);
    return Status();
  };
  std::set<std::uint32_t> threads{most};
  for (std::uint32_t count = 1; count < most; count *= 2) threads.insert(count);
  for (const std::uint32_t count : threads) STOKER_RETURN_IF_ERROR(try_one(count, 4));
  sort_best_first(trials);
  const std::uint32_t best = trials[0].workers;
  for (const std::uint32_t prefetch : {2u, 8u}) STOKER_RETURN_IF_ERROR(try_one(best, prefetch));
  sort_best_first(trials);
  return trials;
}

Result<std::vector<Trial>> bench_python(const BenchOptions& options, const PythonBench& python,
                                        const TrialCallback& on_trial) {
  TempDirectory folder;
  const Path file = folder / "trials.csv";
  STOKER_RETURN_IF_ERROR(append_trials(file, {}));
  const Command command{.argv = {python.python, "-m", "stoker.bench", python.function,
                                 options.dataset.string(), "--batch", std::to_string(options.batch),
                                 "--seconds", format("{}", Seconds(options.per_trial).count()), "--trials",
                                 file.string(), "--job", job_name()}};
  STOKER_ASSIGN_OR_RETURN(done, run_program(command, Deadline::after(std::chrono::hours(1))));
  if (!done.exit.ok()) {
    const std::string_view last = trim(done.err);
    return invalid("data bench: {}: {}", python.function, printable(last.substr(last.rfind('\n') + 1)))
        .cure("{} -m stoker.bench {} {}", python.python, python.function,
              shell_quote(options.dataset.string()));
  }
  STOKER_ASSIGN_OR_RETURN(trials, read_trials(file));
  for (const Trial& trial : trials) on_trial(trial);
  sort_best_first(trials);
  return trials;
}

}  // namespace stoker::loader
