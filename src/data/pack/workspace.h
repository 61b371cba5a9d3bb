// The folder in which a dataset grows until it is whole: who may work there, what an earlier call has
// finished, and how it becomes a dataset. The protocol is in workspace.cc. Thread-compatible; claims may be
// made for different shards from different threads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "data/pack/pack.h"
#include "data/pack/shard_writer.h"

namespace stoker::data {

class Workspace {
 public:
  enum class State {
    fresh,      ///< nothing was there
    resumed,    ///< an interrupted packing of the same plan
    restarted,  ///< one of another plan, thrown away
    published,  ///< the same plan, already whole: only the working folder is left to remove
  };

  /// Whether a dataset may go there: a new or empty folder, or one in which packing was interrupted.
  static Status check_output(const Path& out);
  /// Takes the output folder for this process. Errors: those of check_output, in use by another process, not
  /// enough free space.
  static Result<Workspace> open(const PackPlan& plan);

  State state() const { return state_; }
  /// What an earlier call left of this shard; nothing if it must be written.
  std::optional<ShardFacts> finished(const ShardSpec& spec) const;
  /// Writes a shard and its fragment. On failure removes the incomplete file.
  Result<ShardFacts> write(const ShardSpec& spec, const FileDone& done) const;
  /// Makes the dataset appear. After it has succeeded, nothing of the packing is left but the dataset.
  Status publish(const formats::Manifest& manifest, const std::string& index,
                 const std::string& left_out_csv) const;
  /// Removes all that packing has made, and the folder if it is empty then.
  void discard() const;
  /// Removes the working folder of a dataset that is whole.
  Status clean() const;

 private:
  Workspace(const PackPlan& plan) : plan_(&plan) {}
  Status claim();
  Status discard_other_plan() const;
  Status check_free_space() const;
  Path pending(std::string_view name) const;
  Path final_place(std::string_view name) const;
  Path fragment(const ShardSpec& spec) const;

  const PackPlan* plan_;  // outlives the workspace
  State state_ = State::fresh;
  bool made_folder_ = false;
  File lock_;
};

}  // namespace stoker::data
