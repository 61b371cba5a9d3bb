// Environment variables of a rank (docs/environment.md). No libtorch. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "stoker/status.h"
#include "stoker/strong.h"
#include "stoker/text.h"
#include "stoker/time.h"

namespace stoker::train {

/// Names to values, as in environ(7).
using Variables = std::map<std::string, std::string, std::less<>>;
/// The environment of this process.
Variables process_environment();

struct RankEnvironment {
  Rank rank{0};
  WorldSize world_size{1};
  int local_rank = 0;                 ///< LOCAL_RANK: among the ranks of this host
  int gpus_per_rank = 1;              ///< STOKER_GPUS_PER_RANK
  std::string address = "127.0.0.1";  ///< MASTER_ADDR; 127.0.0.1 if all ranks share a host
  std::uint16_t port = 0;             ///< MASTER_PORT; required with more than one rank
  std::string run_id;                 ///< empty outside a run
  Path attempt;                       ///< STOKER_ATTEMPT_DIR; empty: nothing is recorded
  Path checkpoints;                   ///< STOKER_CHECKPOINT_DIR; empty: the job's directory, if any
  Path resume;                        ///< STOKER_RESUME: a step folder; empty: start from scratch
  Path job;                           ///< STOKER_JOB
  std::optional<WallTime> deadline;   ///< STOKER_DEADLINE: all writes must have ended by then
  Variables data;                     ///< STOKER_DATA_<NAME>, by <NAME>

  /// The attempt's number from its folder name; "0" outside a run.
  std::string attempt_name() const { return attempt.empty() ? "0" : attempt.filename().string(); }
};

/// Without these variables, the process has a world size of one outside any run. Invalid names the variable.
Result<RankEnvironment> read_environment(const Variables& variables);

/// The folder of a dataset: STOKER_DATA_<NAME> if set, otherwise `source`.
Path dataset_folder(const RankEnvironment& environment, std::string_view name, const Path& source);

}  // namespace stoker::train
