// What Saver remembers of a step between the call and its commit: the copy of this rank's share, and the
// small rest. Used by Saver alone. A value belongs to one thread at a time, but for what says otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/stopwatch.h"
#include "base/time.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "checkpoint/save/arriving.h"
#include "checkpoint/save/page_buffer.h"
#include "checkpoint/save/plan.h"
#include "checkpoint/save/shard_writer.h"

namespace stoker::checkpoint {

/// All of a save that follows from names, types and shapes: made once for the same tensors.
struct SaveLayout {
  SavePlan plan;
  std::array<ShardPlan, 2> shards;             ///< by Part; their headers name no save
  std::array<std::vector<Piece>, 2> pieces{};  ///< of those files
};

/// Shared by Saver, which uses it again for the next step, and by the steps in flight.
using SaveLayoutPointer = std::shared_ptr<const SaveLayout>;

/// Errors as plan_save()'s.
Result<SaveLayoutPointer> lay_out(const Contents& contents, Rank rank, WorldSize world_size);

/// Memory for this rank's share of a step, used again for the next one.
struct Slot {
  std::array<PageBuffer, 2> data;  ///< by Part, in the order of the file
  SaveLayoutPointer layout;
  std::array<Arriving, 2> arriving;  ///< how much of `data` is there: any thread
  double stall_s = 0;                ///< how long the caller stood still; set before all has arrived
  Stopwatch since_copy;              ///< likewise, started when it went on
  bool is_busy = false;
};

/// Memory for such shares; nothing to do when the slot has enough.
Status prepare_slot(Slot& slot, SaveLayoutPointer layout);

/// Copies what the slot's plan names, telling how far it is; all has arrived only after finish_copy().
/// REQUIRES: the plan is that of these contents.
void copy_share(const Contents& contents, Slot& slot);
/// The caller goes on, after it stood still for `stall_s`.
void finish_copy(Slot& slot, double stall_s);

/// The file of a part as `save` writes it: where its header ends follows from the save's name.
struct ShardHeader {
  std::string bytes;
  ShardFile file;  ///< without checksums
};
Result<ShardHeader> header_of(const SaveLayout& layout, Part part, Rank rank, std::string_view save);

/// A step on its way, whether its share lies in memory or already on the node's own disk.
struct StepInFlight {
  Slot* slot = nullptr;      ///< holds the share; null once it is on a disk
  SaveLayoutPointer layout;  ///< outlives the slot
  Path kept;                 ///< where it lies on the node's own disk (local/share.h); empty: in memory
  std::uint64_t turn = 0;    ///< this rank's own count: what its caller asks by
  std::uint64_t repeat = 0;  ///< as in pending_folder_name()
  ReadyMarker marker;        ///< its files and times are filled in when they are written
  Manifest head;             ///< without files and states of ranks
  Stopwatch since_copy;
  Deadline deadline = Deadline::never();
};

/// Until the caller's thread has left the step's slot; what it noted there is the step's from now on.
void wait_for_copy(StepInFlight& step);

/// The manifest of a step whose shares are all there.
Manifest complete_manifest(Manifest head, std::vector<ReadyMarker> markers);

/// Bytes of these files together.
std::uint64_t total_bytes(const std::vector<ShardFile>& files);

}  // namespace stoker::checkpoint
