// The folder of a dataset in progress: locking, finished shards of earlier calls, and publishing. The
// protocol is in workspace.cc. Thread-compatible; different threads may write different shards.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "pack/pack.h"
#include "pack/shard/shard_writer.h"
#include "stoker/status.h"

namespace stoker::pack {

/// A file locked by flock(2). The destructor releases it.
struct FileLock {
  File file;

  FileLock() = default;
  FileLock(FileLock&&) = default;
  FileLock& operator=(FileLock&&) = default;
  ~FileLock() { release(); }
  void release();
};

class Workspace {
 public:
  enum class State {
    fresh,      ///< the folder was empty
    resumed,    ///< an interrupted pack of the same plan
    restarted,  ///< an interrupted pack of a different plan was discarded
    published,  ///< the same plan, already published: only the working folder remains
  };

  /// Ok for a new or empty folder, or one with an interrupted pack.
  static Status check_output(const Path& out);
  /// Claims the output folder for this process, or with `part` its share. `dataset_plan` must outlive the
  /// workspace. Errors: like check_output(), in use by another process, not enough free space; with
  /// `part` also that the other parts have a different plan.
  static Result<Workspace> open(const Path& out, const DatasetPlan& dataset_plan,
                                std::optional<PackPart> part);
  /// Opens the output of the parts. NotFound if nothing was packed there.
  static Result<Workspace> open_for_merge(const Path& out);
  /// See is_ready_to_merge() in pack.h.
  static bool is_ready_to_merge(const Path& out);

  State state() const { return state_; }
  /// Whether this call or an earlier one has finished the shard, or any, by the names of fragments.
  bool has_finished(std::string_view shard) const;
  bool has_finished_any() const;
  /// The result of an earlier call for this shard; nullopt if it must be written.
  std::optional<ShardFacts> finished(std::string_view shard) const;
  const DatasetPlan& dataset_plan() const { return *dataset_plan_; }
  /// Starts writing a shard of these samples. finish_shard() completes it.
  Result<std::unique_ptr<ShardWriter>> begin_shard(const PackPlan& plan, const ShardSpec& spec,
                                                   std::shared_ptr<ReadAhead> samples, Hashing hashing) const;
  /// Finishes the file and writes its fragment.
  Result<ShardFacts> finish_shard(const ShardSpec& spec, ShardWriter& writer) const;
  /// Removes the incomplete file of a shard.
  void remove_unfinished(const ShardSpec& spec) const;
  /// Publishes the dataset. On success all other files of the pack are removed.
  Status publish(const dataset::Manifest& manifest, const std::string& index,
                 const std::string& left_out_csv);
  /// Removes all files of the pack, and the folder if it is then empty. Does nothing with `part`: other parts
  /// may be running.
  void discard();
  /// Removes the working folder of a published dataset and releases its locks.
  Status clean();

 private:
  Workspace(Path out, const DatasetPlan* dataset_plan) : out_(std::move(out)), dataset_plan_(dataset_plan) {}
  Status claim();
  Status claim_part(const PackPart& part);
  Status check_replaceable(const DatasetPlan& found);
  void remove_stale(const PackPart& part) const;
  Path unfinished(const ShardSpec& spec) const;
  Status adopt_plan();
  Status write_plan() const;
  Result<std::optional<DatasetPlan>> stored_plan() const;
  Status lock(FileLock& lock, std::string_view name, int how, std::string_view holder) const;
  Status discard_other_plan() const;
  Status check_free_space(std::uint64_t parts) const;
  Path pending(std::string_view name) const;
  Path final_path(std::string_view name) const;

  Path out_;
  const DatasetPlan* dataset_plan_;      // the caller's, or stored_ after open_for_merge()
  std::unique_ptr<DatasetPlan> stored_;  // the plan of the parts
  State state_ = State::fresh;
  bool is_part_ = false;
  bool created_folder_ = false;
  std::string suffix_ = random_name();  // in the names of temporary files
  FileLock lock_;
  FileLock part_lock_;
};

}  // namespace stoker::pack
