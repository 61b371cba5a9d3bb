// Metrics in the files that a rank's processes write for TensorBoard, W&B, MLflow and with Lightning's CSV
// logger, followed while they grow. Most are found among the open files of the processes, so no folder is
// searched while the program runs. Used by the supervisor of a rank. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "base/file.h"
#include "observe/metrics/event_file.h"
#include "observe/metrics/mlflow_store.h"
#include "observe/metrics/wandb_file.h"
#include "record/points/points.h"

namespace stoker::observe {

struct TrackerOptions {
  Path attempt;             ///< receives points-<rank>-tensorboard.csv and similar files
  int rank = 0;             ///< or task. Rank 0 also reads Lightning's files, which only it writes
  Path working_directory;   ///< of the processes
  Path tensorboard_folder;  ///< STOKER_TENSORBOARD_DIR; may be ""
  Path wandb_folder;        ///< of the rank's command, WANDB_DIR; may be ""
  std::string wandb_run;    ///< WANDB_RUN_ID
  Path mlflow_folder;       ///< of MLflow's file store; may be ""
  std::string mlflow_name;  ///< value of kMlflowTag
  std::string mlflow_run;   ///< MLFLOW_RUN_ID
  double since = 0;         ///< Unix seconds: older files belong to other runs
  Path proc = "/proc";
};

class TrackerFiles {
 public:
  explicit TrackerFiles(TrackerOptions options);

  /// Reads the new parts of all files that `processes` have opened. Returns new problems, for people.
  std::vector<std::string> poll(const std::vector<pid_t>& processes);
  /// Reads the rest, also of files that no poll() has seen: call it after the processes have ended.
  std::vector<std::string> finish();

 private:
  using FileId = std::pair<std::uint64_t, std::uint64_t>;  // device and inode
  struct Followed {
    File file;
    std::string name;
    std::string prefix;
    std::uint64_t offset = 0;
    EventFileReader events;
    WandbFileReader wandb;
    bool is_wandb = false;
  };
  struct CsvFile {
    std::uint64_t rows = 0;  ///< already read
    double changed = 0;
  };

  void find_open_files(pid_t process);
  void find_finished_files(const Path& folder, int depth);
  void find_finished_wandb_files();
  void follow(const Path& opened, const Path& shown);
  std::string prefix_of(const Path& folder);
  void read_followed(Followed& file);
  bool read_mlflow();
  void read_lightning();
  void read_csv(const Path& path, CsvFile& csv);
  std::vector<std::string> end_turn();

  const TrackerOptions options_;
  std::map<FileId, Followed> followed_;
  std::map<Path, std::string> prefixes_;  // by folder
  std::map<Path, CsvFile> csvs_;
  std::set<pid_t> processes_;
  record::PointAppender tensorboard_;
  record::PointAppender lightning_;
  record::PointAppender wandb_;
  record::PointAppender mlflow_;
  MlflowStore mlflow_store_;
  std::vector<std::string> problems_;
  int polls_ = 0;
};

}  // namespace stoker::observe
