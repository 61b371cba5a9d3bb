// Generates readable batch scripts: a comment explains every #SBATCH line that is not obvious. User values
// are quoted for sbatch or bash. Values that cannot be quoted (a line end) are rejected. Thread-safe: no
// state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stoker/bytes.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::slurm {

/// Content of a batch script.
struct BatchScript {
  std::string title;  ///< a comment line at the top
  std::string job_name;
  std::string comment;  ///< identifies the job in the queue; may be empty, like all strings below
  std::string account;
  std::string partition;
  std::string qos;
  std::string reservation;
  int nodes = 1;
  int tasks_per_node = 1;  ///< 0: use `tasks`, unequal numbers per node
  int tasks = 0;
  int cpus_per_task = 0;  ///< 0: not requested
  int gpus_per_node = 0;
  int ranks_per_gpu = 1;
  std::optional<ByteCount> memory_per_node;
  std::optional<Duration> time;
  Duration signal_before{0};         ///< send SIGUSR1 to the script this long before the time limit; 0: never
  std::string array;                 ///< "1-300%20": one job per index
  std::string dependency;            ///< "afterok:812,afterany:813"
  Path directory;                    ///< working directory of the script
  Path log;                          ///< output file
  std::vector<std::string> extra;    ///< additional sbatch options, one per entry
  std::vector<std::string> command;  ///< the script executes it with exec
};

/// The script. Invalid if a value cannot be quoted, or check_extra rejects an entry of `extra`.
Result<std::string> write_batch_script(const BatchScript& script);

/// Invalid if `option` ("--constraint=v100", "-C v100", "--exclusive") is not an sbatch option, or is set by
/// Stoker. The error names the key to use instead.
Status check_extra(std::string_view option);

/// How long before its time limit a job gets the signal: `wanted`, but at most a quarter of `time`.
Duration signal_before(Duration wanted, std::optional<Duration> time);

/// "20:00:00", "2-12:00:00": rounded up to whole seconds.
std::string slurm_duration(Duration time);
/// "128G", "122071M": rounded up to whole MiB.
std::string slurm_memory(ByteCount memory);

/// `value` quoted for a #SBATCH line, unquoted if possible.
std::string sbatch_quote(std::string_view value);

}  // namespace stoker::slurm
