// Batch scripts written for people to read: every #SBATCH line that is not plain has a comment saying why it
// is there. What users wrote stays data: a value is quoted for sbatch or for bash, and what neither can take
// (a line end) is refused. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/time.h"

namespace stoker::slurm {

/// What a batch script asks for and starts.
struct BatchScript {
  std::string title;  ///< one line of comment at the top
  std::string job_name;
  std::string comment;  ///< by which the job is found again; may be empty, like all texts below
  std::string account;
  std::string partition;
  std::string qos;
  std::string reservation;
  int nodes = 1;
  int tasks_per_node = 1;  ///< 0: `tasks`, unequally many on the nodes
  int tasks = 0;
  int cpus_per_task = 0;  ///< 0: not asked for
  int gpus_per_node = 0;
  int ranks_per_gpu = 1;
  std::optional<ByteCount> memory_per_node;
  std::optional<Duration> time;
  Duration signal_before{0};         ///< SIGUSR1 to the script's process so long before the end; 0: never
  std::string array;                 ///< "1-300%20": the script is started once for each
  std::string dependency;            ///< "afterok:812,afterany:813"
  Path directory;                    ///< where the script starts
  Path log;                          ///< its output
  std::vector<std::string> extra;    ///< options for sbatch, one an entry, as people type them
  std::vector<std::string> command;  ///< what the script becomes (exec)
};

/// The script. Invalid when a value cannot stand in one, or an entry of `extra` is none (check_extra).
Result<std::string> write_batch_script(const BatchScript& script);

/// Invalid when `option` ("--constraint=v100", "-C v100", "--exclusive") is no option for sbatch, or is one
/// that Stoker sets itself; the text says which key to use.
Status check_extra(std::string_view option);

/// How long before its end a job with this limit is asked to stop: `wanted`, but at most a quarter of `time`.
Duration signal_before(Duration wanted, std::optional<Duration> time);

/// "20:00:00", "2-12:00:00": rounded up to whole seconds.
std::string slurm_duration(Duration time);
/// "128G", "122071M": rounded up to whole MiB.
std::string slurm_memory(ByteCount memory);

/// `value` as sbatch reads it back from a #SBATCH line: bare where no quoting is needed.
std::string sbatch_quote(std::string_view value);

}  // namespace stoker::slurm
