// The folder of one run: its layout, the immutable run.json and its attempts. Written by `stoker run` and the
// rank side, read by every command that takes a RUN. Format: docs/formats/run.md. Values: thread-compatible;
// one writer and any number of readers per file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker::record {

/// Describes a run: written once as run.json when the folder is created, never changed.
struct RunDescription {
  std::string name;                  ///< job.name; part of the id
  std::string git;                   ///< abbreviated commit of the code, "" outside a repository
  std::vector<std::string> command;  ///< the command of each rank, argument by argument
  std::string job_file;              ///< path of the job file as the user typed it; "" without one
  std::string working_directory;     ///< working directory of the ranks
  std::vector<std::string> typed;    ///< the stoker command line that created the run
  int world_size = 1;                ///< planned number of ranks; an attempt may use another
  std::vector<std::string> hosts;    ///< planned hosts, in node order
  std::string user;
  std::string stoker_version;
  std::string scheduler_job;  ///< Slurm job ID of the first attempt, "" without one
  std::vector<std::pair<std::string, std::string>> params;  ///< params of the job file, as text
  double created = 0;                                       ///< Unix seconds; `create` sets it if it is 0
};

/// File names of one attempt, `attempts/<number>/`. A value: two views of one attempt are equal.
class Attempt {
 public:
  Attempt(Path folder, int number) : folder_(std::move(folder)), number_(number) {}

  int number() const { return number_; }
  const Path& folder() const { return folder_; }

  Path job() const { return folder_ / "job.yaml"; }  ///< effective job file of this attempt
  Path log(int rank) const { return file("rank", rank, "log"); }
  Path torchrun_log(int node) const {
    return file("torchrun", node, "log");
  }  ///< output of torchrun itself on that node
  Path hosts() const {
    return folder_ / "hosts";
  }  ///< for srun: node of each rank, if the numbers of ranks per node differ
  Path beacon(int rank) const { return file("rank", rank, "beacon"); }
  Path metrics(int rank) const { return file("metrics", rank, "csv"); }
  Path flight(int rank) const { return file("flight", rank, "bin"); }
  Path torch_flight_prefix() const {
    return folder_ / "torch-flight-";
  }  ///< torch appends the rank, without zeros
  Path trace(int rank) const { return file("trace", rank, "json"); }
  Path receipts(int rank) const { return file("receipts", rank, "bin"); }
  Path system(int node) const { return file("system", node, "csv"); }
  /// The nodes with a file of samples, ascending.
  std::vector<int> sampled_nodes() const;
  Path epochs() const { return folder_ / "epochs.csv"; }
  Path batch_script() const { return folder_ / "job.sbatch"; }  ///< of a submitted attempt
  Path batch_log() const { return folder_ / "slurm.log"; }      ///< output of that script
  /// Events of one writer: "node-0000" for the supervisor of node 0, "rank-0003" for rank 3.
  Path events(std::string_view writer) const;
  Path node_events(int node) const;
  Path rank_events(int rank) const;
  Path sampler_events(int node) const;  ///< of a `stoker rank` that samples that node
  Path submit_events() const;           ///< of the submitter
  Path cancel_events() const;           ///< of whoever requested its end
  Path next_events() const;             ///< of the process that decides whether the run continues

 private:
  Path file(std::string_view stem, int index, std::string_view extension) const;

  Path folder_;
  int number_ = 0;
};

/// One run's folder. Cheap to copy: a path and the contents of run.json.
class RunFolder {
 public:
  /// Creates `<runs>/<UTC time>_<git>_<name>_<random>/` with job.yaml (`job_yaml`, the effective job file)
  /// and run.json; creates `runs` if it is missing. When it returns, run.json is on disk and the run exists.
  static Result<RunFolder> create(const Path& runs, const RunDescription& what, std::string_view job_yaml);

  /// Opens an existing run. NotFound without the folder or run.json, Corrupt if run.json is not valid.
  static Result<RunFolder> open(const Path& folder);

  /// Opens the run with a user-supplied name: a folder, "last" (the newest in `runs`), an ID, a scheduler's
  /// job ID of one of its attempts, or an unambiguous prefix of an ID or name. The error lists the candidates
  /// if there are several, or the newest runs if nothing matches.
  static Result<RunFolder> find(const Path& runs, std::string_view run);

  const std::string& id() const { return id_; }  ///< the folder's name
  const Path& folder() const { return folder_; }
  const RunDescription& description() const { return description_; }
  Path job() const { return folder_ / "job.yaml"; }
  Path capsule() const { return folder_ / "capsule"; }
  Path report() const { return folder_ / "report.html"; }

  /// Takes the next attempt number with mkdir, so that two supervisors never share one, and writes its
  /// effective job file.
  Result<Attempt> start_attempt(std::string_view job_yaml) const;
  /// Attempts sorted by number; ignores folders whose name is not a number.
  Result<std::vector<Attempt>> attempts() const;
  /// The attempt with the highest number, or NotFound.
  Result<Attempt> last_attempt() const;

 private:
  RunFolder(Path folder, RunDescription what);

  std::string id_;
  Path folder_;
  RunDescription description_;
};

/// A run in a listing; `problem` explains why it could not be opened.
struct ListedRun {
  std::string id;
  Path folder;
  std::optional<RunFolder> run;
  Status problem;
};

/// Runs in `runs`, oldest first. Folders whose names are not run IDs are ignored, damaged runs are listed
/// with their problem. If `runs` does not exist, the list is empty.
Result<std::vector<ListedRun>> list_runs(const Path& runs);

/// Who may read a file with this text: only its owner if it has values of the environment (a job file with
/// environment.variables, a batch script with --export=NAME=VALUE) or a secret.
Access access_of(std::string_view text);

/// The ID of a run created at `unix_seconds`: keeps letters, digits, '.', '-' of the name, at most 48
/// characters.
std::string make_run_id(double unix_seconds, std::string_view git, std::string_view name,
                        std::string_view random);

}  // namespace stoker::record
