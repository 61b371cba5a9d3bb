#include "preflight/gpus.h"

#include <algorithm>

#include "stoker/text.h"

namespace stoker::preflight {
namespace {

// "2 x NVIDIA H100 80GB HBM3, 1 x NVIDIA L40S (7 MIG devices)", in the order of their numbers.
std::string list_of(const std::vector<observe::GpuDevice>& gpus) {
  const auto is_alike = [](const observe::GpuDevice& a, const observe::GpuDevice& b) {
    return a.name == b.name && a.mig_uuids.size() == b.mig_uuids.size();
  };
  std::string text;
  for (std::size_t i = 0, next = 0; i < gpus.size(); i = next) {
    while (next < gpus.size() && is_alike(gpus[i], gpus[next])) ++next;
    text += format("{}{} x {}", text.empty() ? "" : ", ", next - i, printable(gpus[i].name));
    if (const std::size_t parts = gpus[i].mig_uuids.size(); parts > 0)
      text += format(" ({} MIG {})", parts, parts == 1 ? "device" : "devices");
  }
  return text;
}

// Jobs for a cluster run on its nodes, even if the cluster's commands are missing here.
bool runs_here(const job::Job& job, const HostContext& host) {
  const bool is_for_queue = host.has_queue || host.site || job.slurm.partition || job.slurm.account;
  return !host.allocation && !is_for_queue && job.resources.nodes == 1;
}

}  // namespace

void check_gpus(const job::Job& job, const HostContext& host, Notes& notes) {
  rank::Plan plan;
  plan.ranks_of_node = {static_cast<int>(job.resources.ranks_per_node)};
  plan.gpus_per_rank = static_cast<int>(job.resources.gpus_per_rank);
  plan.ranks_per_gpu = static_cast<int>(std::max(1u, job.resources.ranks_per_gpu));
  const int needed = rank::needed_gpus(plan);
  const bool is_local = runs_here(job, host);
  if (needed == 0 && host.gpus.empty()) return;
  if (host.gpus.empty() && !is_local) return;  // the login node of a cluster, or a laptop
  const std::vector<std::string> usable = rank::usable_gpus(host.visible_gpus, host.gpus);
  const Message here = host.gpus.empty() ? message("none on this machine") : Message(list_of(host.gpus));
  // Numbers of this machine, and of a node in the job.
  notes.fact("GPUs", message("{}; {} visible, {} requested", here, usable.size(), needed));
  if (!is_local) return;
  const Status fits = rank::check_gpus(plan, host.visible_gpus, usable);
  if (fits.ok()) return;
  // Its message begins with the key, like that of a finding.
  const std::string text(fits.message());
  const std::size_t end = text.find(": ");
  notes.found("few-gpus", Level::job, text.substr(0, end), text.substr(end + 2), std::string(fits.cure()));
}

}  // namespace stoker::preflight
