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
#include "job/train_options.h"

namespace stoker::job {

/// `run: ...`: what every rank executes.
struct Command {
  /// The program and its arguments, never empty. For `run: {shell: TEXT}` these are {"/bin/sh", "-c", TEXT}.
  std::vector<std::string> arguments;
  bool is_shell = false;

  friend bool operator==(const Command&, const Command&) = default;
};

enum class Launcher { srun, torchrun, single };
enum class Until { done };

/// The words of the job file: "srun", "done", ...
std::string_view to_text(Launcher launcher);
std::string_view to_text(Until until);

/// Every so many steps, epochs, or every so long; exactly one is set, or none for `never`.
struct Every {
  std::uint64_t steps = 0;
  std::uint64_t epochs = 0;
  Duration time{0};
  bool is_automatic = false;  ///< `auto`: whoever saves chooses, from what saving costs

  bool is_never() const { return steps == 0 && epochs == 0 && time == Duration::zero() && !is_automatic; }
  friend bool operator==(const Every&, const Every&) = default;
};

/// `resources`. The world has nodes x ranks_per_node ranks, or `ranks` where nodes have unequally many.
struct Resources {
  std::uint32_t nodes = 0;
  std::uint32_t ranks_per_node = 0;            ///< with `ranks` the most of any node
  std::optional<std::uint32_t> ranks;          ///< of all nodes together; empty: as many on each
  std::optional<std::uint32_t> cpus_per_rank;  ///< empty: the cores at hand shared out evenly
  std::uint32_t gpus_per_rank = 0;             ///< of a submitted job
  std::uint32_t ranks_per_gpu = 0;             ///< above 1 every rank sees one GPU, and shares it
  std::optional<ByteCount> memory_per_node;    ///< of a submitted job; empty: the partition's default
  std::optional<Duration> time;                ///< empty: no limit, in the queue the partition's default

  std::uint32_t world_size() const { return ranks.value_or(nodes * ranks_per_node); }
  /// What is asked for on each node.
  std::uint32_t gpus_per_node() const {
    return ranks_per_gpu > 1 ? (ranks_per_node + ranks_per_gpu - 1) / ranks_per_gpu
                             : gpus_per_rank * ranks_per_node;
  }
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
  std::vector<std::string> modules;  ///< loaded in this order by the site's `module` command, before all else
  std::optional<std::string> conda;  ///< name or folder of an environment that conda activates
  /// Absolute. A folder: a virtual environment; its bin folder goes to the front of PATH, VIRTUAL_ENV is set.
  /// A file: requirements of one that every node makes on its own disk.
  std::optional<Path> venv;
  std::optional<Path> container;   ///< absolute; an image of Charliecloud: a folder or a SquashFS file
  std::optional<Path> wheelhouse;  ///< absolute; the only place packages of such a one come from
  std::map<std::string, std::string> variables;

  friend bool operator==(const Environment&, const Environment&) = default;
};

/// `code`: what becomes of the code that a run is made with.
struct CodeOptions {
  bool snapshot = false;      ///< the run uses a copy in its folder; its working directory is in there
  ByteCount untracked_limit;  ///< files that git does not track are left out of it when they are larger

  friend bool operator==(const CodeOptions&, const CodeOptions&) = default;
};

/// One entry of `data`: a packed dataset.
struct DataSource {
  Path source;                       ///< absolute
  std::optional<std::string> split;  ///< empty: the only one it has

  friend bool operator==(const DataSource&, const DataSource&) = default;
};

/// `stage`: what is on every node's own disk before its ranks start (STOKER_STAGE_DIR), and what is wanted
/// back.
struct StageOptions {
  std::vector<std::string> unpack;  ///< archives, absolute
  std::vector<std::string> copy;    ///< files and folders, absolute
  std::vector<std::string> back;    ///< names below the folder on the node
  bool outside_links = false;       ///< links of archives may lead out of the folder
  std::optional<Path> directory;    ///< empty: SLURM_TMPDIR, TMPDIR or /tmp of each node
  Duration timeout{0};              ///< for all that is brought

  bool is_wanted() const { return !unpack.empty() || !copy.empty() || !back.empty(); }
  friend bool operator==(const StageOptions&, const StageOptions&) = default;
};

struct CheckpointOptions {
  /// Absolute; each run makes a folder named for its id inside. Empty: `checkpoints` in the run folder.
  std::optional<Path> directory;
  std::optional<Path>
      local;  ///< absolute; a folder on each node's own disk, where steps go first; empty: none
  Every every;
  Duration before_end{0};       ///< SIGUSR1 comes so long before the time is over; 0: never
  Duration mtbf{0};             ///< mean time between failures of the job, for `every: auto`
  std::uint32_t keep = 0;       ///< the newest so many; at least 1
  Duration keep_every{0};       ///< and the first of each such stretch of time; 0: none
  std::uint32_t keep_best = 0;  ///< and so many that are best by `metric`
  std::string metric;           ///< a column of epochs.csv: "val_top1"

  friend bool operator==(const CheckpointOptions&, const CheckpointOptions&) = default;
};

/// `chain`: a run longer than a job may be, as one job after the other.
struct ChainOptions {
  std::optional<Until> until;             ///< empty: no chain
  std::optional<Duration> time_per_link;  ///< set in a chain; the time limit of each of its jobs
  std::optional<std::uint32_t> links;     ///< at most so many jobs; empty: worked out

  bool is_on() const { return until.has_value(); }
  friend bool operator==(const ChainOptions&, const ChainOptions&) = default;
};

/// `restart`: how often a submitted run goes on by itself after each kind of ending.
struct RestartOptions {
  std::uint32_t preempted = 0;
  std::uint32_t node_failed = 0;
  std::uint32_t timeout = 0;  ///< its time was over, saved or not; in a chain the links decide
  std::uint32_t failed = 0;   ///< a failure of its own
  std::uint32_t out_of_memory = 0;
  std::uint32_t without_progress = 0;  ///< so many in a row with no newer checkpoint are enough

  friend bool operator==(const RestartOptions&, const RestartOptions&) = default;
};

/// `array`: the same job many times, each with values of its own.
struct ArrayOptions {
  std::optional<Path> over;              ///< absolute; a table of values, one task a row; empty: no array
  std::optional<std::uint32_t> at_once;  ///< empty: as many as the cluster gives
  std::optional<std::uint32_t> bundle;   ///< tasks of one job, one after the other; empty: worked out

  bool is_on() const { return over.has_value(); }
  friend bool operator==(const ArrayOptions&, const ArrayOptions&) = default;
};

struct RecordOptions {
  Path directory;            ///< absolute; holds one folder per run
  bool metrics = false;      ///< metrics-<rank>.csv and epochs.csv
  bool receipts = false;     ///< receipts-<rank>.bin: the ids of the samples of every step
  std::uint32_t trace = 0;   ///< so many steps of an attempt go into trace-<rank>.json
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
  std::string site;  ///< a profile's name, "auto" for that of the cluster at hand, "none" for no checks
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

  friend bool operator==(const Job&, const Job&) = default;
};

/// What is laid over the job file, each layer stronger than the one before it.
struct LoadOptions {
  std::vector<std::string> environment;  ///< "NAME=value"; those named STOKER_SET_<KEY_PATH> count
  std::vector<std::string> set;          ///< "key.path=value", a later one wins
  /// The same for one task of an array, weaker than `set`. With an array and no task the first one stands
  /// for all.
  std::vector<std::string> task;
  Path current_directory;  ///< for relative paths outside the file, and for `file`; empty: the process's
};

/// Reads and checks the job file. Relative paths in the file start at the file's folder, those in `options`
/// and in defaults at the current folder. Invalid lists up to ten mistakes, each with path:line:column and
/// the line; NotFound when there is no such file. Looks at no other file but `array.over`: whether data exist
/// is not its question.
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
