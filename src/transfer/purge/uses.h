// The users of the datasets below a folder: processes of this machine, jobs in Slurm's queue, runs and
// caches. Used by purge. Thread-compatible.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker::transfer {

/// Whether a text, such as a job file or a command line, names `folder`, something in it, or a folder above
/// it that is below `root`. Relative paths are relative to `working_folder`.
bool mentions(std::string_view text, const Path& working_folder, const Path& folder, const Path& root);

/// A recorded use.
struct RecordedUse {
  double time = 0;  ///< Unix seconds
  std::string by;   ///< "run 2026…", "the cache"
};

class Uses {
 public:
  /// Reads processes, Slurm's queue, and the cache of this node. `root`: the purged folder. Unavailable if
  /// Slurm is there and does not answer.
  static Result<Uses> collect(const Path& root, const Path& cache);

  /// Adds a run's job files. A folder that is not a run is ignored.
  void add_run(const Path& run_folder);

  /// Reads the processes of this machine again.
  void refresh_processes();

  /// Why the dataset is in use; "" if it is not.
  std::string in_use(const Path& folder, std::string_view version) const;
  /// The last recorded use that has ended.
  std::optional<RecordedUse> last_use(const Path& folder) const;

 private:
  struct OpenPath {
    int pid = 0;
    std::string path;
  };
  // A job or a run: its name, and the texts that name its data.
  struct Work {
    std::string name;
    Path working_folder;
    std::string text;
    bool is_active = false;
    double ended = 0;
  };
  struct CacheUse {
    std::string version;
    Path source;
    double time = 0;
    std::string user;  // a living process, for messages; "" without one
  };

  explicit Uses(Path root) : root_(std::move(root)) {}
  Status collect_jobs();
  void collect_cache(const Path& cache);

  Path root_;
  std::vector<OpenPath> open_;
  std::vector<Work> works_;
  std::vector<CacheUse> cached_;
};

}  // namespace stoker::transfer
