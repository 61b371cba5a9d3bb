// The job: what to run, on what, with which data, as one plain value. Read by everything that runs, records
// or reports; written only by job::load. Every value is final: defaults, environment and flags are in it
// already. An std::optional that is empty means "not set": who uses the value decides (the comment says how).
// Thread-compatible values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/text.h"
#include "base/time.h"

namespace stoker::job {

/// `run: ...`: what every rank executes.
struct Command {
  /// The program and its arguments, never empty. For `run: {shell: TEXT}` these are {"/bin/sh", "-c", TEXT}.
  std::vector<std::string> arguments;
  bool is_shell = false;

  friend bool operator==(const Command&, const Command&) = default;
};

enum class Model { resnet18, resnet50, cifar_resnet20 };
enum class ScheduleKind { one_cycle, constant };
enum class Anneal { cosine, linear };
enum class Crop { none, pad, resize };
enum class Backend { gloo };
enum class Launcher { srun, single };

/// The words of the job file: "cifar-resnet20", "one-cycle", ...
std::string_view to_text(Model model);
std::string_view to_text(ScheduleKind kind);
std::string_view to_text(Anneal anneal);
std::string_view to_text(Crop crop);
std::string_view to_text(Backend backend);
std::string_view to_text(Launcher launcher);

/// Every so many steps, epochs, or every so long; exactly one is set, or none for `never`.
struct Every {
  std::uint64_t steps = 0;
  std::uint64_t epochs = 0;
  Duration time{0};

  bool is_never() const { return steps == 0 && epochs == 0 && time == Duration::zero(); }
  friend bool operator==(const Every&, const Every&) = default;
};

/// `train.optimizer`: stochastic gradient descent as torch.optim.SGD means it.
struct OptimizerOptions {
  double lr = 0;  ///< under one-cycle the peak (max_lr)
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;

  friend bool operator==(const OptimizerOptions&, const OptimizerOptions&) = default;
};

/// `train.schedule`: torch.optim.lr_scheduler.OneCycleLR's words in brackets. The total is epochs x steps.
struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::one_cycle;
  double warmup = 0;         ///< part of all steps that climbs to the peak (pct_start)
  double start_divisor = 0;  ///< first rate = lr / this (div_factor)
  double end_divisor = 0;    ///< last rate = first rate / this (final_div_factor)
  Anneal anneal = Anneal::cosine;
  bool cycle_momentum = false;  ///< momentum runs against the rate, between the two below
  double momentum_low = 0;      ///< (base_momentum)
  double momentum_high = 0;     ///< (max_momentum)

  friend bool operator==(const ScheduleOptions&, const ScheduleOptions&) = default;
};

/// `train.image`: what a sample becomes on its way to the model.
struct ImageOptions {
  std::uint32_t size = 0;               ///< the model sees size x size
  std::uint32_t validation_resize = 0;  ///< shorter side before the centre crop in validation; >= size
  Crop crop = Crop::none;               ///< training only
  std::uint32_t padding = 0;            ///< pixels on every side for Crop::pad
  bool flip = false;                    ///< mirrored left to right with probability 1/2, training only
  std::vector<double> mean;             ///< per channel, of values in 0..1; three
  std::vector<double> standard_deviation;

  friend bool operator==(const ImageOptions&, const ImageOptions&) = default;
};

/// `train: {...}`: the built-in trainer's work. Present when the ranks execute stoker-train.
struct TrainOptions {
  Model model = Model::resnet18;
  std::optional<std::uint32_t> classes;  ///< empty: as many as the training data set has
  std::uint32_t epochs = 0;
  std::optional<std::uint64_t> steps;  ///< ends after this many optimizer steps, if epochs do not end before
  std::uint32_t batch = 0;             ///< samples per rank and step
  std::uint64_t seed = 0;
  std::string training_data;                   ///< a name in Job::data
  std::optional<std::string> validation_data;  ///< a name in Job::data; empty: there is no validation
  std::uint32_t validate_every = 0;            ///< epochs; 0 never
  std::uint32_t validation_batch = 0;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  ImageOptions image;
  Backend backend = Backend::gloo;
  std::uint32_t threads = 0;         ///< intra-operation threads of one rank; 0: as many as it has cores
  std::uint32_t loader_threads = 0;  ///< decoding threads of one rank
  std::uint32_t prefetch = 0;        ///< batches ready ahead of the step
  std::uint32_t print_every = 0;     ///< steps between progress lines of rank 0

  friend bool operator==(const TrainOptions&, const TrainOptions&) = default;
};

/// `resources`. The world has nodes x ranks_per_node ranks.
struct Resources {
  std::uint32_t nodes = 0;
  std::uint32_t ranks_per_node = 0;
  std::optional<std::uint32_t> cpus_per_rank;  ///< empty: the cores at hand shared out evenly
  std::uint32_t gpus_per_rank = 0;             ///< of a submitted job
  std::optional<ByteCount> memory_per_node;    ///< of a submitted job; empty: the partition's default
  std::optional<Duration> time;                ///< empty: no limit, in the queue the partition's default

  std::uint32_t world_size() const { return nodes * ranks_per_node; }
  friend bool operator==(const Resources&, const Resources&) = default;
};

/// `slurm`: what a submitted job asks of the queue beside its resources. Empty texts: the cluster's defaults.
struct SlurmOptions {
  std::optional<std::string> account;
  std::optional<std::string> partition;
  std::optional<std::string> qos;
  std::optional<std::string> reservation;
  std::vector<std::string> extra;  ///< options for sbatch, as slurm::check_extra accepts them

  friend bool operator==(const SlurmOptions&, const SlurmOptions&) = default;
};

/// `environment`: what the ranks find beside the contract of docs/environment.md.
struct Environment {
  std::optional<Path> venv;  ///< absolute; its bin folder goes to the front of PATH, VIRTUAL_ENV is set
  std::map<std::string, std::string> variables;

  friend bool operator==(const Environment&, const Environment&) = default;
};

/// One entry of `data`: a packed dataset.
struct DataSource {
  Path source;                       ///< absolute
  std::optional<std::string> split;  ///< empty: the only one it has

  friend bool operator==(const DataSource&, const DataSource&) = default;
};

struct CheckpointOptions {
  /// Absolute; each run makes a folder named for its id inside. Empty: `checkpoints` in the run folder.
  std::optional<Path> directory;
  Every every;
  Duration before_end{0};  ///< SIGUSR1 comes so long before the time is over; 0: never
  std::uint32_t keep = 0;  ///< the newest so many; at least 1

  friend bool operator==(const CheckpointOptions&, const CheckpointOptions&) = default;
};

struct RecordOptions {
  Path directory;            ///< absolute; holds one folder per run
  bool metrics = false;      ///< metrics-<rank>.csv and epochs.csv
  bool receipts = false;     ///< receipts-<rank>.bin: the ids of the samples of every step
  Duration sample_every{0};  ///< CPU, memory and I/O of the ranks

  friend bool operator==(const RecordOptions&, const RecordOptions&) = default;
};

/// How long each wait may last before it is a failure that names what was waited for.
struct Timeouts {
  Duration start{0};          ///< until every rank has started
  Duration stall{0};          ///< a rank without progress (no step, no CPU time)
  Duration data{0};           ///< one batch of the trainer
  Duration stopped{0};        ///< a rank stopped by a signal (SIGSTOP)
  Duration communication{0};  ///< one collective of the trainer
  Duration checkpoint{0};     ///< the other ranks' parts of a checkpoint
  Duration grace{0};          ///< between SIGTERM and SIGKILL

  friend bool operator==(const Timeouts&, const Timeouts&) = default;
};

/// Where each value came from. No part of what a job is: two jobs with the same values are equal.
class Origins {
 public:
  /// "job.yaml:7:3", "--set train.epochs", "STOKER_SET_TRAIN_EPOCHS" or "default" for a key such as
  /// "train.epochs" or "data.train.source"; "default" too for a key that nobody wrote.
  std::string where(std::string_view key) const;
  void add(std::string key, std::string where);

  friend bool operator==(const Origins&, const Origins&) { return true; }

 private:
  std::map<std::string, std::string, std::less<>> where_;
};

/// A job file with everything resolved. After load exactly one of `command` and `train` is set.
struct Job {
  std::string name;        ///< letters, digits, '.', '_', '-'; 1 to 64 of them; fit for a folder's name
  Path working_directory;  ///< absolute; where the ranks run
  std::optional<Command> command;
  std::optional<TrainOptions> train;
  std::map<std::string, std::string> params;
  Resources resources;
  SlurmOptions slurm;
  Environment environment;
  std::map<std::string, DataSource> data;  ///< names are [a-z][a-z0-9_]*
  CheckpointOptions checkpoint;
  Launcher launcher = Launcher::srun;
  RecordOptions record;
  Timeouts timeouts;
  Origins origins;

  friend bool operator==(const Job&, const Job&) = default;
};

/// What is laid over the job file, each layer stronger than the one before it.
struct LoadOptions {
  std::vector<std::string> environment;  ///< "NAME=value"; those named STOKER_SET_<KEY_PATH> count
  std::vector<std::string> set;          ///< "key.path=value", a later one wins
  Path current_directory;  ///< for relative paths outside the file, and for `file`; empty: the process's
};

/// Reads and checks the job file. Relative paths in the file start at the file's folder, those in `options`
/// and in defaults at the current folder. Invalid lists up to ten mistakes, each with path:line:column and
/// the line; NotFound when there is no such file. Looks at no other file: whether data exist is not its
/// question.
Result<Job> load(const Path& file, const LoadOptions& options = {});

/// The effective job file: every value that is set, defaults too, all paths absolute. Loads back as an equal
/// Job.
std::string to_yaml(const Job& job);

/// One key whose value is not the same in two jobs; values as the job file has them, "" where it is not set.
struct Difference {
  std::string key;
  std::string before;
  std::string after;

  friend bool operator==(const Difference&, const Difference&) = default;
};
/// In the order of the job file, then keys that only `before` has.
std::vector<Difference> differences(const Job& before, const Job& after);

}  // namespace stoker::job
