#include "checkpoint/save/slot.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "checkpoint/layout.h"

namespace stoker::checkpoint {

namespace {

// Interval of notifications in bytes: often enough to keep the disk busy, seldom enough to cost nothing.
constexpr std::uint64_t kNotifyBytes = 16 << 20;

}  // namespace

Result<SaveLayoutPointer> make_layout(const StepContents& contents, Rank rank, WorldSize world_size) {
  auto layout = std::make_shared<SaveLayout>();
  STOKER_ASSIGN_OR_RETURN(plan, plan_save(contents, rank, world_size));
  layout->plan = std::move(plan);
  for (std::size_t p = 0; p < kParts.size(); ++p) {
    STOKER_ASSIGN_OR_RETURN(shard, plan_shard(layout->plan.parts[p]));
    layout->pieces[p] = pieces_of(shard, layout->plan.parts[p]);
    layout->shards[p] = std::move(shard);
  }
  return SaveLayoutPointer(std::move(layout));
}

Status prepare_slot(SaveSlot& slot, SaveLayoutPointer layout) {
  if (slot.layout == layout) return {};
  slot.layout.reset();  // until everything below is done, the slot fits no plan
  for (std::size_t p = 0; p < kParts.size(); ++p) {
    const std::uint64_t bytes = layout->plan.parts[p].bytes;
    if (slot.data[p].bytes().size() >= whole_pages(bytes)) continue;
    slot.data[p] = PageBuffer();  // first free what is too small
    STOKER_ASSIGN_OR_RETURN(buffer, PageBuffer::create(bytes));
    slot.data[p] = std::move(buffer);
  }
  slot.layout = std::move(layout);
  return {};
}

void copy_share(const StepContents& contents, SaveSlot& slot) {
  for (const StepPart part : kParts) {
    const std::size_t p = static_cast<std::size_t>(part);
    const std::vector<TensorSource> sources = sources_of(contents, part);
    const PartPlan& plan = slot.layout->plan.parts[p];
    const ShardPlan& shard = slot.layout->shards[p];
    std::uint64_t notified = 0;
    for (std::size_t i = 0; i < shard.order.size(); ++i) {
      const Slice& slice = plan.own_slices[shard.order[i]];
      std::span<const std::byte> from = bytes_of(sources[slice.tensor], slice);
      for (std::uint64_t at = shard.file.header.entries[i].begin; !from.empty();) {
        const std::size_t n = std::min<std::size_t>(from.size(), kNotifyBytes);
        std::memcpy(slot.data[p].bytes().data() + at, from.data(), n);
        from = from.subspan(n);
        at += n;
        if (at - notified < kNotifyBytes) continue;
        notified = at;
        slot.copy_progress[p].advance(at);
      }
    }
    slot.copy_progress[p].advance(plan.bytes);
  }
}

void finish_copy(SaveSlot& slot, double stall_s) {
  slot.stall_s = stall_s;
  slot.since_copy = Stopwatch();
  for (CopyProgress& part : slot.copy_progress) part.finish();
}

Result<ShardHeader> make_shard_header(const SaveLayout& layout, StepPart part, Rank rank,
                                      std::string_view save) {
  const std::size_t p = static_cast<std::size_t>(part);
  const archive::SafetensorsPlan& plan = layout.shards[p].file;
  STOKER_ASSIGN_OR_RETURN(header, archive::header_with_metadata(plan, std::string(kSaveKey), save));
  const std::uint64_t size = header.size();
  return ShardHeader{
      std::move(header),
      TensorFile{
          shard_path(part, rank), rank, size + layout.plan.parts[p].bytes, size, layout.pieces[p], {}}};
}

void wait_for_copy(StepInFlight& step) {
  for (const CopyProgress& part : step.slot->copy_progress) {
    // Always short: a copy in memory, which cannot be stopped.
    (void)part.wait(std::numeric_limits<std::uint64_t>::max(), Deadline::never());
  }
  step.marker.stall_s = step.slot->stall_s;
  step.since_copy = step.slot->since_copy;
}

StepManifest complete_manifest(StepManifest head, std::vector<ReadyMarker> markers) {
  head.written = unix_seconds(RealClock().wall());
  for (ReadyMarker& marker : markers) {
    head.stall_s = std::max(head.stall_s, marker.stall_s);
    head.write_s = std::max(head.write_s, marker.write_s);
    head.rank_states.push_back(std::move(marker.rank_state));
    std::move(marker.files.begin(), marker.files.end(), std::back_inserter(head.files));
  }
  return head;
}

std::uint64_t total_bytes(const std::vector<TensorFile>& files) {
  std::uint64_t sum = 0;
  for (const TensorFile& file : files) sum += file.bytes;
  return sum;
}

}  // namespace stoker::checkpoint
