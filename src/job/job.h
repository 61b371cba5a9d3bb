// The job: what to run, with which resources and data, as a plain value. Read by everything that runs,
// records or reports; created only by job::load. Values are final, with defaults, environment and flags
// applied. An empty std::optional means "not set"; the comment states the effect. Thread-compatible values.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/train_options.h"
#include "stoker/bytes.h"
#include "stoker/status.h"
#include "stoker/text.h"
#include "stoker/time.h"

namespace stoker::job {

/// `run: ...`: the command of every rank.
struct RunCommand {
  /// The program and its arguments, never empty. For `run: {shell: TEXT}` these are {"/bin/sh", "-c", TEXT}.
  std::vector<std::string> arguments;
  bool is_shell = false;

  friend bool operator==(const RunCommand&, const RunCommand&) = default;
};

enum class Launcher { srun, torchrun, single };
enum class Until { done };

constexpr std::array<std::string_view, 3> names_of(Launcher) { return {"srun", "torchrun", "single"}; }
constexpr std::array<std::string_view, 1> names_of(Until) { return {"done"}; }

/// Number of steps, of epochs, or time between checkpoints; exactly one is set, or none for `never`.
struct SaveInterval {
  std::uint64_t steps = 0;
  std::uint64_t epochs = 0;
  Duration time{0};
  bool is_automatic = false;  ///< `auto`: derived from the cost of a checkpoint

  bool is_never() const { return steps == 0 && epochs == 0 && time == Duration::zero() && !is_automatic; }
  friend bool operator==(const SaveInterval&, const SaveInterval&) = default;
};

/// `resources`. The world size is nodes x ranks_per_node, or `ranks` if the numbers per node differ.
struct Resources {
  std::uint32_t nodes = 0;
  std::uint32_t ranks_per_node = 0;            ///< with `ranks`, the maximum of any node
  std::optional<std::uint32_t> ranks;          ///< on all nodes together; empty: equal on each
  std::optional<std::uint32_t> cpus_per_rank;  ///< empty: the available cores, divided evenly
  std::uint32_t gpus_per_rank = 0;             ///< of each rank; 0: any number is visible
  std::uint32_t ranks_per_gpu = 0;             ///< above 1, every rank sees exactly one GPU, which it shares
  std::optional<ByteCount> memory_per_node;    ///< for a submitted job; empty: the partition's default
  std::optional<Duration> time;                ///< empty: no limit; in the queue, the partition's default

  std::uint32_t world_size() const { return ranks.value_or(nodes * ranks_per_node); }
  /// Number of GPUs to request on each node.
  std::uint32_t gpus_per_node() const {
    return ranks_per_gpu > 1 ? (ranks_per_node + ranks_per_gpu - 1) / ranks_per_gpu
                             : gpus_per_rank * ranks_per_node;
  }
  friend bool operator==(const Resources&, const Resources&) = default;
};

/// `slurm`: options of a submitted job besides its resources. Empty texts: the cluster's defaults.
struct SlurmOptions {
  std::optional<std::string> account;
  std::optional<std::string> partition;
  std::optional<std::string> qos;
  std::optional<std::string> reservation;
  std::vector<std::string> extra;  ///< options for sbatch, checked by slurm::check_extra

  friend bool operator==(const SlurmOptions&, const SlurmOptions&) = default;
};

/// `environment`: the environment of the ranks besides the variables in docs/environment.md.
struct Environment {
  std::vector<std::string> modules;  ///< loaded first, in this order, with the site's `module` command
  std::optional<std::string> conda;  ///< name or folder of a conda environment to activate
  /// Absolute. A folder: a virtual environment; its bin folder is prepended to PATH and VIRTUAL_ENV is set. A
  /// file: requirements from which every node builds an environment on its local disk.
  std::optional<Path> venv;
  std::optional<Path> container;   ///< absolute; a Charliecloud image: a folder or a SquashFS file
  std::optional<Path> wheelhouse;  ///< absolute; the only source of packages for a requirements file
  std::map<std::string, std::string> variables;

  friend bool operator==(const Environment&, const Environment&) = default;
};

/// `code`: how the run handles its code.
struct CodeOptions {
  bool snapshot = false;      ///< the run uses a copy in its folder, which contains its working directory
  ByteCount untracked_limit;  ///< larger files that git does not track are not copied

  friend bool operator==(const CodeOptions&, const CodeOptions&) = default;
};

/// Where the ranks read a dataset.
enum class DataPlace {
  automatic,  ///< `local` if that pays, else `shared`
  memory,     ///< copied to a RAM disk of each node; counts as memory of the job
  local,      ///< copied to the cache on each node's disk
  shared,     ///< read where it is
};
constexpr std::array<std::string_view, 4> names_of(DataPlace) {
  return {"auto", "memory", "local", "shared"};
}

/// When the ranks start, while a dataset is copied to their node.
enum class DataStart {
  automatic,     ///< `first_shards` for `train`, else `complete`
  first_shards,  ///< once the first shards are there; others are read at the source until their copy is there
  complete,      ///< once all shards are there
};
constexpr std::array<std::string_view, 3> names_of(DataStart) { return {"auto", "first-shards", "complete"}; }

/// One entry of `data`: a packed dataset.
struct DataSource {
  Path source;                       ///< absolute
  std::optional<std::string> split;  ///< empty: its only split
  DataPlace place = DataPlace::shared;
  DataStart start = DataStart::automatic;

  friend bool operator==(const DataSource&, const DataSource&) = default;
};

/// `stage`: files on every node's local disk before its ranks start (STOKER_STAGE_DIR), and results to copy
/// back.
struct StageOptions {
  std::vector<std::string> unpack;  ///< archives, absolute
  std::vector<std::string> copy;    ///< files and folders, absolute
  std::vector<std::string> back;    ///< paths relative to the folder on the node
  Duration back_every{0};           ///< while the ranks run; 0: only at the end
  bool outside_links = false;       ///< links in archives may point outside the folder
  std::optional<Path> directory;    ///< empty: SLURM_TMPDIR, TMPDIR or /tmp of each node
  Duration timeout{0};              ///< for staging all files
  bool broadcast = true;            ///< nodes read each file and each shard once, and send it to each other
  ByteCount node_rate;              ///< bytes per second that a node sends, and receives; 0: no limit

  bool is_enabled() const { return !unpack.empty() || !copy.empty() || !back.empty(); }
  friend bool operator==(const StageOptions&, const StageOptions&) = default;
};

struct CheckpointOptions {
  /// Absolute; each run creates a folder named after its ID in it. Empty: `checkpoints` in the run folder.
  std::optional<Path> directory;
  std::optional<Path>
      local;  ///< absolute; a folder on each node's local disk for the first write of a step; empty: none
  SaveInterval every;
  Duration before_end{0};       ///< SIGUSR1 is sent this long before the time limit; 0: never
  Duration mtbf{0};             ///< mean time between failures of the job, for `every: auto`
  std::uint32_t keep_last = 0;  ///< number of most recent checkpoints; at least 1
  Duration keep_every{0};       ///< also the first of each interval of this length; 0: none
  std::uint32_t keep_best = 0;  ///< also this number of checkpoints that are best by `metric`
  std::string metric;           ///< a column of epochs.csv, such as "val_top1"

  friend bool operator==(const CheckpointOptions&, const CheckpointOptions&) = default;
};

/// `chain`: a run that exceeds the maximum time of a job, as a sequence of jobs.
struct ChainOptions {
  std::optional<Until> until;             ///< empty: no chain
  std::optional<Duration> time_per_link;  ///< set in a chain; the time limit of each job
  std::optional<std::uint32_t> links;     ///< maximum number of jobs; empty: estimated

  bool is_enabled() const { return until.has_value(); }
  friend bool operator==(const ChainOptions&, const ChainOptions&) = default;
};

/// `restart`: how often a submitted run is restarted automatically after each kind of end.
struct RestartOptions {
  std::uint32_t preempted = 0;
  std::uint32_t node_failed = 0;
  std::uint32_t timeout = 0;  ///< time limit, with or without a checkpoint; in a chain `links` decides
  std::uint32_t failed = 0;   ///< a failure of the command
  std::uint32_t out_of_memory = 0;
  std::uint32_t without_progress =
      0;  ///< number of consecutive attempts without a newer checkpoint before the run is given up

  friend bool operator==(const RestartOptions&, const RestartOptions&) = default;
};

/// `array`: the same job for several sets of values.
struct ArrayOptions {
  std::optional<Path> over;              ///< absolute; a table of values, one task per row; empty: no array
  std::optional<std::uint32_t> at_once;  ///< empty: as many as the cluster allows
  std::optional<std::uint32_t>
      bundle;  ///< number of tasks of one job, run one after another; empty: chosen automatically

  bool is_enabled() const { return over.has_value(); }
  friend bool operator==(const ArrayOptions&, const ArrayOptions&) = default;
};

/// Sources of the metrics of a `run` command beside its own calls.
enum class MetricsFrom { automatic, none };
constexpr std::array<std::string_view, 2> names_of(MetricsFrom) { return {"auto", "none"}; }

struct RecordOptions {
  Path directory;                            ///< absolute; contains one folder per run
  bool metrics = false;                      ///< metrics-<rank>.csv and epochs.csv
  bool receipts = false;                     ///< receipts-<rank>.bin: the sample IDs of every step
  std::uint32_t trace = 0;                   ///< number of steps of an attempt in trace-<rank>.json
  Duration sample_every{0};                  ///< CPU, memory and I/O of the ranks
  std::optional<MetricsFrom> metrics_from;   ///< unset: auto, unless metrics_regex is set
  std::optional<std::string> metrics_regex;  ///< with named groups, for the lines of the logs
  // Trackers that receive the points of a run while it runs.
  std::optional<std::string> mlflow;                ///< address of the server; empty: none
  std::optional<std::string> mlflow_experiment;     ///< empty: MLFLOW_EXPERIMENT_NAME, else the job's name
  std::optional<std::string> mlflow_register;       ///< name in the registry of models; empty: none
  std::optional<std::string> mlflow_register_path;  ///< what is registered; empty: the newest checkpoint
  bool tensorboard = false;                         ///< an event file
  std::optional<std::string> wandb;                 ///< project of an offline run; empty: none
  std::optional<std::string> comet;                 ///< project of Comet's offline archives; empty: none
  bool csv = false;                                 ///< a table

  friend bool operator==(const RecordOptions&, const RecordOptions&) = default;
};

/// Maximum duration of each wait; exceeding it is a failure with a message about the cause.
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

/// Origin of each value. Not part of the job's value: two jobs with the same values are equal.
class Origins {
 public:
  /// "job.yaml:7:3", "--set train.epochs", "STOKER_SET_TRAIN_EPOCHS" or "default" for a key such as
  /// "train.epochs" or "data.train.source"; also "default" for a key that is not set.
  std::string where(std::string_view key) const;
  void add(std::string key, std::string where);

  friend bool operator==(const Origins&, const Origins&) { return true; }

 private:
  std::map<std::string, std::string, std::less<>> where_;
};

/// A fully resolved job file. After load exactly one of `command` and `train` is set.
struct Job {
  std::string name;        ///< 1 to 64 letters, digits, '.', '_', '-'; valid as a folder name
  Path working_directory;  ///< absolute; working directory of the ranks
  std::optional<RunCommand> command;
  std::optional<TrainOptions> train;
  std::map<std::string, std::string> params;
  Resources resources;
  std::string site;  ///< a profile's name, "auto" for the current cluster's, "none" for no checks
  SlurmOptions slurm;
  Environment environment;
  CodeOptions code;
  std::map<std::string, DataSource> data;  ///< names are [a-z][a-z0-9_]*
  StageOptions stage;
  CheckpointOptions checkpoint;
  Launcher launcher = Launcher::srun;
  ChainOptions chain;
  RestartOptions restart;
  ArrayOptions array;
  std::vector<std::string> after;  ///< job files or runs that a submitted job waits for
  RecordOptions record;
  Timeouts timeouts;
  Origins origins;

  /// Whether files or datasets are copied to each node before the ranks start.
  bool is_staged() const;

  friend bool operator==(const Job&, const Job&) = default;
};

/// Values that override the job file; each layer overrides the previous one.
struct LoadOptions {
  std::vector<std::string> environment;  ///< "NAME=value"; uses only STOKER_SET_<KEY_PATH>
  std::vector<std::string> set;          ///< "key.path=value"; later ones override earlier ones
  /// The same for one task of an array, overridden by `set`. For an array without a task, the first one is
  /// used.
  std::vector<std::string> task;
  Path current_directory;  ///< base of relative paths outside the file, and of `file`; empty: the process's
};

/// Reads and checks the job file. Relative paths in the file are relative to the file's folder, paths in
/// `options` and in defaults to the current folder. Invalid lists up to ten errors, each with
/// path:line:column and the line; NotFound if the file does not exist. Reads no other file except
/// `array.over`: it does not check whether data exist.
Result<Job> load(const Path& file, const LoadOptions& options = {});

/// The effective job file: every value that is set, including defaults, with absolute paths. Loads back as an
/// equal Job.
std::string to_yaml(const Job& job);

/// A key whose value differs between two jobs; values as in the job file, "" if not set.
struct Difference {
  std::string key;
  std::string before;
  std::string after;

  friend bool operator==(const Difference&, const Difference&) = default;
};
/// In job file order, followed by keys that only `before` has.
std::vector<Difference> differences(const Job& before, const Job& after);

}  // namespace stoker::job
