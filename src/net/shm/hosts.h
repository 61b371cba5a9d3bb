// Ranks by host. Used by two_level.h and by room train. Plain values.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/shm/region.h"
#include "stoker/status.h"
#include "stoker/strong.h"

namespace stoker::net::shm {

/// Groups ranks by the host on which they share memory. Hosts are numbered in order of their first ranks.
class Hosts {
 public:
  /// Ranks with equal texts are on one host. A rank with an empty text has a separate host.
  static Hosts group_by_domain(std::span<const std::string> places);
  /// Parses to_text(). Corrupt if malformed.
  static Result<Hosts> parse(std::string_view text);
  /// "0 0 1": each rank's host.
  std::string to_text() const;

  std::size_t count() const { return ranks_.size(); }
  WorldSize ranks() const { return WorldSize(static_cast<int>(host_of_.size())); }
  /// Number of ranks on the largest host.
  std::size_t max_ranks_per_host() const;
  /// Ranks of a host, ascending.
  const std::vector<int>& ranks_of(std::size_t host) const { return ranks_[host]; }
  std::size_t host_of(Rank rank) const { return host_of_[static_cast<std::size_t>(rank.value)]; }
  /// The position of a rank on its host.
  GroupPosition position_of(Rank rank) const;
  /// Whether it is the first rank of its host, which communicates with other hosts.
  bool is_leader(Rank rank) const { return position_of(rank).rank.value == 0; }
  /// The first rank of each host.
  std::vector<int> leaders() const;

 private:
  explicit Hosts(std::vector<std::size_t> host_of);
  std::vector<std::size_t> host_of_;
  std::vector<std::vector<int>> ranks_;
};

}  // namespace stoker::net::shm
