#include "checkpoint/save/slot.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "checkpoint/layout.h"

namespace stoker::checkpoint {

namespace {

// Who waits is told after so many bytes: often enough that a disk has work soon, seldom enough to cost
// nothing.
constexpr std::uint64_t kTellEach = 16 << 20;

}  // namespace

Result<SaveLayoutPointer> lay_out(const Contents& contents, Rank rank, WorldSize world_size) {
  auto layout = std::make_shared<SaveLayout>();
  OK_OR_RETURN(plan, plan_save(contents, rank, world_size));
  layout->plan = std::move(plan);
  for (std::size_t p = 0; p < kParts.size(); ++p) {
    OK_OR_RETURN(shard, plan_shard(layout->plan.parts[p]));
    layout->pieces[p] = pieces_of(shard, layout->plan.parts[p]);
    layout->shards[p] = std::move(shard);
  }
  return SaveLayoutPointer(std::move(layout));
}

Status prepare_slot(Slot& slot, SaveLayoutPointer layout) {
  if (slot.layout == layout) return {};
  slot.layout.reset();  // until all below is done the slot fits nothing
  for (std::size_t p = 0; p < kParts.size(); ++p) {
    const std::uint64_t bytes = layout->plan.parts[p].bytes;
    if (slot.data[p].bytes().size() >= whole_pages(bytes)) continue;
    slot.data[p] = PageBuffer();  // first give back what is too small
    OK_OR_RETURN(buffer, PageBuffer::create(bytes));
    slot.data[p] = std::move(buffer);
  }
  slot.layout = std::move(layout);
  return {};
}

void copy_share(const Contents& contents, Slot& slot) {
  for (const Part part : kParts) {
    const std::size_t p = static_cast<std::size_t>(part);
    const std::vector<Source> sources = sources_of(contents, part);
    const PartPlan& plan = slot.layout->plan.parts[p];
    const ShardPlan& shard = slot.layout->shards[p];
    std::uint64_t told = 0;
    for (std::size_t i = 0; i < shard.order.size(); ++i) {
      const Slice& slice = plan.mine[shard.order[i]];
      std::span<const std::byte> from = bytes_of(sources[slice.tensor], slice);
      for (std::uint64_t at = shard.file.header.entries[i].begin; !from.empty();) {
        const std::size_t n = std::min<std::size_t>(from.size(), kTellEach);
        std::memcpy(slot.data[p].bytes().data() + at, from.data(), n);
        from = from.subspan(n);
        at += n;
        if (at - told < kTellEach) continue;
        told = at;
        slot.arriving[p].reached(at);
      }
    }
    slot.arriving[p].reached(plan.bytes);
  }
}

void finish_copy(Slot& slot, double stall_s) {
  slot.stall_s = stall_s;
  slot.since_copy = Stopwatch();
  for (Arriving& part : slot.arriving) part.finish();
}

Result<ShardHeader> header_of(const SaveLayout& layout, Part part, Rank rank, std::string_view save) {
  const std::size_t p = static_cast<std::size_t>(part);
  const formats::SafetensorsPlan& plan = layout.shards[p].file;
  OK_OR_RETURN(header, formats::header_with(plan, std::string(kSaveKey), save));
  const std::uint64_t size = header.size();
  return ShardHeader{
      std::move(header),
      ShardFile{shard_path(part, rank), rank, size + layout.plan.parts[p].bytes, size, layout.pieces[p], {}}};
}

void wait_for_copy(StepInFlight& step) {
  for (const Arriving& part : step.slot->arriving) {
    // Never long: a copy in memory, which nothing can stop.
    (void)part.wait(std::numeric_limits<std::uint64_t>::max(), Deadline::never());
  }
  step.marker.stall_s = step.slot->stall_s;
  step.since_copy = step.slot->since_copy;
}

Manifest complete_manifest(Manifest head, std::vector<ReadyMarker> markers) {
  head.written = unix_seconds(RealClock().wall());
  for (ReadyMarker& marker : markers) {
    head.stall_s = std::max(head.stall_s, marker.stall_s);
    head.write_s = std::max(head.write_s, marker.write_s);
    head.rank_states.push_back(std::move(marker.rank_state));
    std::move(marker.files.begin(), marker.files.end(), std::back_inserter(head.files));
  }
  return head;
}

std::uint64_t total_bytes(const std::vector<ShardFile>& files) {
  std::uint64_t sum = 0;
  for (const ShardFile& file : files) sum += file.bytes;
  return sum;
}

}  // namespace stoker::checkpoint
