// Which ranks are on which host. Used by two_level.h and by room torch. Plain values.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/strong.h"
#include "net/shm/region.h"

namespace stoker::net::shm {

/// Ranks of a run by the host they share memory on. Hosts are numbered in the order of their first ranks.
class Hosts {
 public:
  /// Ranks with equal texts are on one host; one without a text is on a host of its own.
  static Hosts of_places(std::span<const std::string> places);
  /// Reads to_text(). Corrupt when it is none.
  static Result<Hosts> parse(std::string_view text);
  /// "0 0 1": each rank's host.
  std::string to_text() const;

  std::size_t count() const { return ranks_.size(); }
  WorldSize ranks() const { return WorldSize(static_cast<int>(host_of_.size())); }
  /// The largest host's ranks.
  std::size_t most() const;
  /// Ranks of a host, ascending.
  const std::vector<int>& ranks_of(std::size_t host) const { return ranks_[host]; }
  std::size_t host_of(Rank rank) const { return host_of_[static_cast<std::size_t>(rank.value)]; }
  /// The rank's place among those of its host.
  Seat seat_of(Rank rank) const;
  /// Whether it is the first of its host, which speaks with other hosts.
  bool is_first(Rank rank) const { return seat_of(rank).rank.value == 0; }
  /// The first rank of each host.
  std::vector<int> first_ranks() const;

 private:
  explicit Hosts(std::vector<std::size_t> host_of);
  std::vector<std::size_t> host_of_;
  std::vector<std::vector<int>> ranks_;
};

}  // namespace stoker::net::shm
