#include "launch/start/site_ports.h"

#include <algorithm>

#include "job/site/find.h"

namespace stoker::launch {

// `stoker check` reports an unreadable profile.
std::optional<net::PortRange> ports_of_site(const job::Job& job, const Path& stoker) {
  if (job.site == "none") return std::nullopt;
  const slurm::Lookup environment = slurm::process_environment();
  const auto found = job::find_site(job::site_search_path(stoker.parent_path(), environment), job.site,
                                    job::detect_cluster(environment));
  if (!found.ok() || !found->site.first_port || !found->site.last_port) return std::nullopt;
  const std::uint64_t first = std::clamp<std::uint64_t>(*found->site.first_port, 1, 65535);
  const std::uint64_t last = std::clamp<std::uint64_t>(*found->site.last_port, first, 65535);
  return net::PortRange{static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(last)};
}

}  // namespace stoker::launch
