// The folder in which a dataset grows until it is whole: who may work there, what an earlier call has
// finished, and how it becomes a dataset. The protocol is in workspace.cc. Thread-compatible; claims may be
// made for different shards from different threads.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "data/pack/pack.h"
#include "data/pack/shard/shard_writer.h"

namespace stoker::data {

/// A file that is locked by flock(2). The lock ends with it.
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
    fresh,      ///< nothing was there
    resumed,    ///< an interrupted packing of the same plan
    restarted,  ///< one of another plan, thrown away
    published,  ///< the same plan, already whole: only the working folder is left to remove
  };

  /// Whether a dataset may go there: a new or empty folder, or one in which packing was interrupted.
  static Status check_output(const Path& out);
  /// Takes the output folder for this process, or only its share of it with `part`. `outline` must outlive
  /// the workspace. Errors: those of check_output, in use by another process, not enough free space, with
  /// `part` also that other parts pack something else.
  static Result<Workspace> open(const Path& out, const Outline& outline, std::optional<PackPart> part);
  /// Takes what parts have written. NotFound when nothing was packed there.
  static Result<Workspace> open_for_merge(const Path& out);
  /// As is_ready_to_merge() of pack.h.
  static bool is_ready_to_merge(const Path& out);

  State state() const { return state_; }
  /// Whether an earlier call or this one has finished the shard, or any, as far as names of fragments tell.
  bool has_finished(std::string_view shard) const;
  bool has_finished_any() const;
  /// What an earlier call left of this shard; nothing if it must be written.
  std::optional<ShardFacts> finished(std::string_view shard) const;
  const Outline& outline() const { return *outline_; }
  /// Begins a shard of these samples, which is not finished before finish_shard().
  Result<std::unique_ptr<ShardWriting>> begin_shard(const PackPlan& plan, const ShardSpec& spec,
                                                    std::shared_ptr<ReadAhead> samples,
                                                    Hashing hashing) const;
  /// Ends the file and writes its fragment.
  Result<ShardFacts> finish_shard(const ShardSpec& spec, ShardWriting& writing) const;
  /// Removes the incomplete file of a shard that was begun.
  void drop_shard(const ShardSpec& spec) const;
  /// Makes the dataset appear. After it has succeeded, nothing of the packing is left but the dataset.
  Status publish(const formats::Manifest& manifest, const std::string& index,
                 const std::string& left_out_csv);
  /// Removes all that packing has made, and the folder if it is empty then. With `part` does nothing: others
  /// work there.
  void discard();
  /// Removes the working folder of a dataset that is whole, and gives up the locks in it.
  Status clean();

 private:
  Workspace(Path out, const Outline* outline) : out_(std::move(out)), outline_(outline) {}
  Status claim();
  Status claim_part(const PackPart& part);
  Status replace_parts(const Outline& found);
  void drop_stale(const PackPart& part) const;
  Path unfinished(const ShardSpec& spec) const;
  Status take_plan();
  Status write_plan() const;
  Result<std::optional<Outline>> stored_plan() const;
  Status lock(FileLock& lock, std::string_view name, int how, std::string_view holder) const;
  Status discard_other_plan() const;
  Status check_free_space(std::uint64_t parts) const;
  Path pending(std::string_view name) const;
  Path final_place(std::string_view name) const;

  Path out_;
  const Outline* outline_;           // the caller's, or stored_ after open_for_merge
  std::unique_ptr<Outline> stored_;  // what the parts left
  State state_ = State::fresh;
  bool is_part_ = false;
  bool made_folder_ = false;
  std::string own_ = random_name();  // in the names of files that are not whole
  FileLock lock_;
  FileLock part_lock_;
};

}  // namespace stoker::data
