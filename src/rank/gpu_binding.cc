#include "rank/gpu_binding.h"

#include <algorithm>

#include "base/language/counted.h"

namespace stoker::rank {
namespace {

// "CUDA_VISIBLE_DEVICES is empty", "CUDA_VISIBLE_DEVICES=0,1", "CUDA_VISIBLE_DEVICES is not set".
std::string variable_text(const VisibleGpus& visible) {
  if (!visible) return "CUDA_VISIBLE_DEVICES is not set";
  if (visible->empty()) return "CUDA_VISIBLE_DEVICES is empty";
  return format("CUDA_VISIBLE_DEVICES={}", printable(*visible));
}

std::string_view key_of(int gpus_per_rank) {
  return gpus_per_rank > 0 ? "resources.gpus_per_rank" : "resources.ranks_per_gpu";
}

std::size_t needed_by(const GpuShare& share, int ranks) {
  const int needed = share.gpus_per_rank > 0   ? ranks * share.gpus_per_rank
                     : share.ranks_per_gpu > 1 ? (ranks + share.ranks_per_gpu - 1) / share.ranks_per_gpu
                                               : 0;
  return static_cast<std::size_t>(std::max(0, needed));
}

std::string joined(const std::vector<std::string>& entries, std::size_t first, std::size_t count) {
  return join(std::span(entries).subspan(first, count), ",");
}

std::vector<std::string> numbers_until(std::size_t count) {
  std::vector<std::string> numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(std::to_string(i));
  return numbers;
}

}  // namespace

std::vector<std::string> visible_entries(std::string_view visible) {
  std::vector<std::string> entries;
  for (std::string_view entry : split(visible, ',')) {
    entry = trim(entry);
    if (entry.empty() || entry.front() == '-' || entry == "NoDevFiles") break;
    entries.emplace_back(entry);
  }
  return entries;
}

Result<VisibleGpus> gpus_of_rank(const GpuShare& share, const VisibleGpus& visible,
                                 const RankPlacement& place) {
  const std::size_t needed = needed_by(share, place.local_world_size);
  if (needed == 0) return VisibleGpus();
  const auto own = static_cast<std::size_t>(std::max(1, share.gpus_per_rank));
  // Without the variable the number is unknown; `stoker run` has checked it on its machine.
  const std::vector<std::string> entries = visible ? visible_entries(*visible) : numbers_until(needed);
  const bool is_bound = share.is_in_step && share.gpus_per_rank > 0 && entries.size() == own;
  if (is_bound) return VisibleGpus();
  if (entries.size() < needed) {
    return invalid(
        "{} of this node need {}, but {} visible ({}, {})",
        counted(static_cast<std::uint64_t>(place.local_world_size), "rank"), counted(needed, "GPU"),
        entries.empty() ? "none is" : format("{} {}", entries.size(), entries.size() == 1 ? "is" : "are"),
        key_of(share.gpus_per_rank), variable_text(visible));
  }
  const auto rank = static_cast<std::size_t>(place.local_rank);
  if (share.gpus_per_rank == 0) return VisibleGpus(joined(entries, rank % needed, 1));
  // CUDA sees only the first MIG device of a list.
  const auto node_end = entries.begin() + static_cast<std::ptrdiff_t>(needed);
  const bool has_mig = std::any_of(entries.begin(), node_end,
                                   [](const std::string& entry) { return entry.starts_with("MIG-"); });
  return VisibleGpus(has_mig ? joined(entries, rank * own, own) : joined(entries, 0, needed));
}

std::vector<std::string> usable_gpus(const VisibleGpus& visible,
                                     const std::vector<observe::GpuDevice>& gpus) {
  if (visible) {
    std::vector<std::string> entries = visible_entries(*visible);
    const auto missing = std::find_if(entries.begin(), entries.end(), [&](const std::string& entry) {
      std::int64_t number = 0;
      return !gpus.empty() && parse_number(entry, &number) &&
             number >= static_cast<std::int64_t>(gpus.size());
    });
    entries.erase(missing, entries.end());
    return entries;
  }
  const bool has_mig =
      std::any_of(gpus.begin(), gpus.end(), [](const auto& gpu) { return !gpu.mig_uuids.empty(); });
  if (!has_mig) return numbers_until(gpus.size());
  std::vector<std::string> entries;  // CUDA does not accept a mixture of numbers and ids
  for (const observe::GpuDevice& gpu : gpus) {
    if (gpu.has_mig.value_or(false)) {
      entries.insert(entries.end(), gpu.mig_uuids.begin(), gpu.mig_uuids.end());
    } else {
      entries.push_back(gpu.uuid);
    }
  }
  return entries;
}

int needed_gpus(const Plan& plan) {
  return static_cast<int>(needed_by({plan.gpus_per_rank, plan.ranks_per_gpu}, plan.ranks_per_node()));
}

Status check_gpus(const Plan& plan, const VisibleGpus& visible, const std::vector<std::string>& usable) {
  const auto needed = static_cast<std::size_t>(needed_gpus(plan));
  if (usable.size() >= needed) return {};
  const std::string ranks = counted(static_cast<std::uint64_t>(plan.ranks_per_node()), "rank");
  const Status problem = invalid(
      "{}: {} need {}, this machine has {} ({})", key_of(plan.gpus_per_rank), ranks, counted(needed, "GPU"),
      usable.empty() ? "none" : std::to_string(usable.size()), variable_text(visible));
  if (usable.empty()) {
    const int off = plan.gpus_per_rank > 0 ? 0 : 1;
    return Status(problem).cure("stoker run --set {}={}      (without GPUs), or stoker submit",
                                key_of(plan.gpus_per_rank), off);
  }
  if (plan.gpus_per_rank == 0) {
    const std::size_t most =
        (static_cast<std::size_t>(plan.ranks_per_node()) + usable.size() - 1) / usable.size();
    return Status(problem).cure("stoker run --set resources.ranks_per_gpu={}", most);
  }
  const std::size_t fitting = usable.size() / static_cast<std::size_t>(plan.gpus_per_rank);
  return fitting > 0 ? Status(problem).cure("stoker run --set resources.ranks_per_node={}", fitting)
                     : Status(problem).cure("stoker run --set resources.gpus_per_rank={}", usable.size());
}

}  // namespace stoker::rank
