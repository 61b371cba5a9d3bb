#include "net/shm/hosts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "stoker/text.h"

namespace stoker::net::shm {

Hosts::Hosts(std::vector<std::size_t> host_of) : host_of_(std::move(host_of)) {
  for (std::size_t rank = 0; rank < host_of_.size(); ++rank) {
    if (host_of_[rank] == ranks_.size()) ranks_.emplace_back();
    ranks_[host_of_[rank]].push_back(static_cast<int>(rank));
  }
}

Hosts Hosts::group_by_domain(std::span<const std::string> places) {
  std::map<std::string_view, std::size_t> known;
  std::vector<std::size_t> host_of;
  std::size_t count = 0;
  for (const std::string& place : places) {
    const auto found = place.empty() ? known.end() : known.find(place);
    const std::size_t host = found == known.end() ? count++ : found->second;
    if (!place.empty()) known.emplace(place, host);
    host_of.push_back(host);
  }
  return Hosts(std::move(host_of));
}

Result<Hosts> Hosts::parse(std::string_view text) {
  std::vector<std::size_t> host_of;
  std::size_t count = 0;
  for (const std::string_view word : split(text, ' ')) {
    std::uint64_t host = 0;
    if (!parse_number(word, &host) || host > count)
      return corrupt("hosts of the ranks: '{}'", printable(text));
    count = std::max<std::size_t>(count, host + 1);
    host_of.push_back(host);
  }
  return Hosts(std::move(host_of));
}

std::string Hosts::to_text() const {
  std::string text;
  for (const std::size_t host : host_of_) text += format("{}{}", text.empty() ? "" : " ", host);
  return text;
}

std::size_t Hosts::max_ranks_per_host() const {
  std::size_t most = 0;
  for (const std::vector<int>& ranks : ranks_) most = std::max(most, ranks.size());
  return most;
}

GroupPosition Hosts::position_of(Rank rank) const {
  const std::vector<int>& ranks = ranks_[host_of(rank)];
  const auto found = std::ranges::lower_bound(ranks, rank.value);
  return {Rank(static_cast<int>(found - ranks.begin())), WorldSize(static_cast<int>(ranks.size()))};
}

std::vector<int> Hosts::leaders() const {
  std::vector<int> first;
  for (const std::vector<int>& ranks : ranks_) first.push_back(ranks.front());
  return first;
}

}  // namespace stoker::net::shm
