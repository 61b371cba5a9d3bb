// What a rank finds in its environment (docs/environment.md). No libtorch. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/strong.h"
#include "base/text.h"
#include "base/time.h"

namespace stoker::torch {

/// Names to values, as in environ(7).
using Variables = std::map<std::string, std::string, std::less<>>;
/// The process's own.
Variables own_variables();

struct RankEnvironment {
  Rank rank{0};
  WorldSize world_size{1};
  bool is_first_of_node = true;       ///< LOCAL_RANK is 0
  std::string address = "127.0.0.1";  ///< MASTER_ADDR
  std::uint16_t port = 0;             ///< MASTER_PORT; needed with more than one rank
  std::string run_id;                 ///< empty outside a run
  Path attempt;                       ///< STOKER_ATTEMPT_DIR; empty: nothing is recorded
  Path checkpoints;                   ///< STOKER_CHECKPOINT_DIR; empty: the job's own, if any
  Path resume;                        ///< STOKER_RESUME: a step folder; empty: from the start
  Path job;                           ///< STOKER_JOB
  std::optional<WallTime> deadline;   ///< STOKER_DEADLINE: by then everything must be written
  Variables data;                     ///< STOKER_DATA_<NAME>, by <NAME>

  /// The attempt's number as its folder names it; "0" outside a run.
  std::string attempt_name() const { return attempt.empty() ? "0" : attempt.filename().string(); }
};

/// Reads it. A process without these variables is a world of one outside any run. Invalid names the variable.
Result<RankEnvironment> read_environment(const Variables& variables);

/// The folder of a dataset: STOKER_DATA_<NAME> if set, else `source`.
Path dataset_folder(const RankEnvironment& environment, std::string_view name, const Path& source);

}  // namespace stoker::torch
