// The folder of one run: its layout, the immutable run.json and its attempts. Written by `stoker run` and the
// rank side, read by every command that takes a RUN. Format: docs/formats/run.md. It takes values and fetches
// nothing. Values: thread-compatible; any number of readers beside one writer per file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace stoker::record {

/// What a run is: written once as run.json when the folder is made, never changed after.
struct RunDescription {
  std::string name;                  ///< job.name; part of the id
  std::string git;                   ///< short commit of the code, "" outside a repository
  std::vector<std::string> command;  ///< what each rank executes, argument by argument
  std::string job_file;              ///< the job file as the user typed it; "" without one
  std::string working_directory;     ///< where the ranks start
  std::vector<std::string> typed;    ///< the stoker command line that made the run
  int world_size = 1;                ///< ranks planned; an attempt may use another number
  std::vector<std::string> hosts;    ///< planned hosts, in node order
  std::string user;
  std::string stoker_version;
  std::string scheduler_job;  ///< Slurm job id of the first attempt, "" without one
  std::vector<std::pair<std::string, std::string>> params;  ///< params of the job file, as text
  double created = 0;                                       ///< Unix seconds; set by `create` when 0
};

/// Names of the files of one attempt, `attempts/<number>/`. A value: two views of one attempt are equal.
class Attempt {
 public:
  Attempt(Path folder, int number) : folder_(std::move(folder)), number_(number) {}

  int number() const { return number_; }
  const Path& folder() const { return folder_; }

  Path job() const { return folder_ / "job.yaml"; }  ///< effective job file of this attempt
  Path log(int rank) const { return file("rank", rank, "log"); }
  Path torchrun_log(int node) const { return file("torchrun", node, "log"); }  ///< its own words on that node
  Path hosts() const { return folder_ / "hosts"; }  ///< for srun: the node of each rank, where unequally many
  Path beacon(int rank) const { return file("rank", rank, "beacon"); }
  Path metrics(int rank) const { return file("metrics", rank, "csv"); }
  Path flight(int rank) const { return file("flight", rank, "bin"); }
  Path trace(int rank) const { return file("trace", rank, "json"); }
  Path receipts(int rank) const { return file("receipts", rank, "bin"); }
  Path system(int node) const { return file("system", node, "csv"); }
  Path epochs() const { return folder_ / "epochs.csv"; }
  Path batch_script() const { return folder_ / "job.sbatch"; }  ///< of a submitted attempt
  Path batch_log() const { return folder_ / "slurm.log"; }      ///< what that script printed
  /// Events of one writer: "node-0000" for the supervisor of node 0, "rank-0003" for what runs as rank 3.
  Path events(std::string_view writer) const;
  Path node_events(int node) const;
  Path rank_events(int rank) const;
  Path submit_events() const;  ///< of who submitted it
  Path cancel_events() const;  ///< of who asked for its end
  Path next_events() const;    ///< of who decides whether the run goes on by itself

 private:
  Path file(std::string_view stem, int index, std::string_view extension) const;

  Path folder_;
  int number_ = 0;
};

/// One run's folder. Cheap to copy: a path and what run.json said.
class RunFolder {
 public:
  /// Makes `<runs>/<UTC time>_<git>_<name>_<random>/` with job.yaml (`job_yaml`, the effective job file) and
  /// run.json; makes `runs` when it is missing. When it returns, run.json is on disk: the run exists.
  static Result<RunFolder> create(const Path& runs, const RunDescription& what, std::string_view job_yaml);

  /// Opens an existing run. NotFound without folder or run.json, Corrupt when run.json is not ours.
  static Result<RunFolder> open(const Path& folder);

  /// Opens the run that a person named: a folder, "last" (the newest of `runs`), an id, a scheduler's job id
  /// of one of its attempts, or a prefix of exactly one id or name. An error lists the candidates when there
  /// are several, or the newest ones when none fits.
  static Result<RunFolder> find(const Path& runs, std::string_view run);

  const std::string& id() const { return id_; }  ///< the folder's name
  const Path& folder() const { return folder_; }
  const RunDescription& description() const { return what_; }
  Path job() const { return folder_ / "job.yaml"; }
  Path capsule() const { return folder_ / "capsule"; }
  Path report() const { return folder_ / "report.html"; }

  /// Takes the next attempt number by mkdir, so that two supervisors can never share one, and writes its
  /// effective job file.
  Result<Attempt> start_attempt(std::string_view job_yaml) const;
  /// Attempts in order of their numbers; folders whose name is no number are passed over.
  Result<std::vector<Attempt>> attempts() const;
  /// The highest attempt, or NotFound.
  Result<Attempt> last_attempt() const;

 private:
  RunFolder(Path folder, RunDescription what);

  std::string id_;
  Path folder_;
  RunDescription what_;
};

/// A run that a listing found; `problem` says why it could not be opened.
struct ListedRun {
  std::string id;
  Path folder;
  std::optional<RunFolder> run;
  Status problem;
};

/// Runs under `runs`, oldest first. Folders whose names are no run ids are passed over, damaged runs are
/// listed with their problem. An absent `runs` folder is an empty list.
Result<std::vector<ListedRun>> list_runs(const Path& runs);

/// The id of a run made at `unix_seconds`: the name keeps letters, digits, '.', '-' and is at most 48 long.
std::string make_run_id(double unix_seconds, std::string_view git, std::string_view name,
                        std::string_view random);

}  // namespace stoker::record
