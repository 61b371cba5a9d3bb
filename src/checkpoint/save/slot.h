// State of a step in Saver between the call and its commit: the copy of this rank's share, and small values.
// Used by Saver only. A value belongs to one thread at a time, except where noted.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/stopwatch.h"
#include "checkpoint/manifest.h"
#include "checkpoint/save/copy_progress.h"
#include "checkpoint/save/page_buffer.h"
#include "checkpoint/save/plan.h"
#include "checkpoint/save/shard_writer.h"
#include "stoker/checkpoint.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::checkpoint {

/// Everything that depends only on names, types and shapes: computed once for the same tensors.
struct SaveLayout {
  SavePlan plan;
  std::array<ShardPlan, 2> shards;             ///< by Part; their headers have no save name
  std::array<std::vector<Piece>, 2> pieces{};  ///< of those files
};

/// Shared by Saver, which reuses it for the next step, and by the steps in flight.
using SaveLayoutPointer = std::shared_ptr<const SaveLayout>;

/// Errors as plan_save().
Result<SaveLayoutPointer> make_layout(const StepContents& contents, Rank rank, WorldSize world_size);

/// Memory for this rank's share of a step, reused for later steps.
struct SaveSlot {
  std::array<PageBuffer, 2> data;  ///< by Part, in the order of the file
  SaveLayoutPointer layout;
  std::array<CopyProgress, 2> copy_progress;  ///< filled part of `data`: any thread
  double stall_s = 0;    ///< time that the caller was blocked; set before the copy is complete
  Stopwatch since_copy;  ///< likewise, started when the caller continued
  bool is_busy = false;
};

/// Allocates memory for such shares; does nothing if the slot has enough.
Status prepare_slot(SaveSlot& slot, SaveLayoutPointer layout);

/// Copies the tensors of the slot's plan and reports progress; complete only after finish_copy(). REQUIRES:
/// the plan belongs to these contents.
void copy_share(const StepContents& contents, SaveSlot& slot);
/// The caller continues after being blocked for `stall_s`.
void finish_copy(SaveSlot& slot, double stall_s);

/// The file of a part in save `save`: the header length depends on the save's name.
struct ShardHeader {
  std::string bytes;
  TensorFile file;  ///< without checksums
};
Result<ShardHeader> make_shard_header(const SaveLayout& layout, StepPart part, Rank rank,
                                      std::string_view save);

/// A step in flight, with its share in memory or already on the node-local disk.
struct StepInFlight {
  SaveSlot* slot = nullptr;   ///< contains the share; null once it is on a disk
  SaveLayoutPointer layout;   ///< outlives the slot
  Path local_share;           ///< folder on the node-local disk (save/share.h); empty: in memory
  std::uint64_t save_id = 0;  ///< count of this rank: the caller's handle
  std::uint64_t repeat = 0;   ///< as in pending_folder_name()
  ReadyMarker marker;         ///< files and times are set after the write
  StepManifest head;          ///< without files and rank states
  Stopwatch since_copy;
  Deadline deadline = Deadline::never();
};

/// Blocks until the caller's thread has left the step's slot. Its notes there then belong to the step.
void wait_for_copy(StepInFlight& step);

/// The manifest of a step with all its shares.
StepManifest complete_manifest(StepManifest head, std::vector<ReadyMarker> markers);

/// Total bytes of these files.
std::uint64_t total_bytes(const std::vector<TensorFile>& files);

}  // namespace stoker::checkpoint
