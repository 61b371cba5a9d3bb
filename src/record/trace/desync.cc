#include "record/trace/desync.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <set>

#include "stoker/time.h"

namespace stoker::record {

namespace {

constexpr std::size_t kMaxInProgress = 64;

// "rank 1 (pid 42 on node3)", with its known parts.
std::string name_of(const FlightDump& flight) {
  std::string place = flight.pid > 0 ? format("pid {}", flight.pid) : "";
  if (!flight.host.empty()) place += format("{}on {}", place.empty() ? "" : " ", flight.host);
  return place.empty() ? format("rank {}", flight.rank) : format("rank {} ({})", flight.rank, place);
}

std::string describe(const FlightEntry& entry, const FlightDump& flight) {
  return flight.group.empty() ? entry.describe() : format("{} in group {}", entry.describe(), flight.group);
}

std::string describe_last(const FlightEntry& entry) {
  constexpr std::string_view kOutcomes[] = {"under way", "done", "failed", "within the host",
                                            "between hosts"};
  return format("{}, {}{}", entry.describe(), kOutcomes[static_cast<std::size_t>(entry.outcome)],
                entry.place.empty() ? "" : format(" (at {})", entry.place));
}

const FlightEntry* find(const FlightDump& flight, std::uint64_t number) {
  const auto found =
      std::lower_bound(flight.entries.begin(), flight.entries.end(), number,
                       [](const FlightEntry& entry, std::uint64_t n) { return entry.number < n; });
  return found != flight.entries.end() && found->number == number ? &*found : nullptr;
}

// The collective with that number, as its first rank started it.
const FlightEntry* find(std::span<const FlightDump> flights, std::uint64_t number) {
  for (const FlightDump& flight : flights) {
    if (const FlightEntry* entry = find(flight, number)) return entry;
  }
  return nullptr;
}

// The first collective after `number` that a rank has started and not completed; null without one.
const FlightEntry* first_wait_after(std::span<const FlightDump> flights, std::uint64_t number) {
  const FlightEntry* first = nullptr;
  for (const FlightDump& flight : flights) {
    const auto found =
        std::find_if(flight.entries.begin(), flight.entries.end(), [&](const FlightEntry& entry) {
          return entry.number > number && entry.outcome != CollectiveOutcome::done;
        });
    if (found != flight.entries.end() && (first == nullptr || found->number < first->number)) first = &*found;
  }
  return first;
}

// Whether a peer that is ahead has completed the rank's last collective. Otherwise the peer has only started
// more of them, as over NCCL, and both wait in that one.
bool is_passed(std::span<const FlightDump> flights, const FlightEntry& last) {
  return last.outcome == CollectiveOutcome::done ||
         std::any_of(flights.begin(), flights.end(), [&](const FlightDump& peer) {
           if (peer.entries.empty() || peer.entries.back().number <= last.number) return false;
           const FlightEntry* same = find(peer, last.number);
           return same == nullptr || same->outcome == CollectiveOutcome::done;
         });
}

// Ranks that lack a collective of their peers.
std::vector<std::string> ranks_behind(std::span<const FlightDump> flights, const FlightEntry& latest) {
  std::vector<std::string> lines;
  for (const FlightDump& flight : flights) {
    const std::string who = name_of(flight);
    if (flight.entries.empty()) {
      lines.push_back(
          format("{} has started no collective; its peers have reached {}", who, describe(latest, flight)));
      continue;
    }
    const FlightEntry& last = flight.entries.back();
    if (last.number >= latest.number || !is_passed(flights, last)) continue;
    const FlightEntry* wait = first_wait_after(flights, last.number);
    lines.push_back(format("{} has not reached {}: its last collective was {}", who,
                           describe(wait != nullptr ? *wait : latest, flight), describe_last(last)));
  }
  return lines;
}

// Numbers of collectives in progress on some rank, ascending; no more than it takes to find a difference.
std::set<std::uint64_t> numbers_in_progress(std::span<const FlightDump> flights) {
  std::set<std::uint64_t> numbers;
  for (const FlightDump& flight : flights) {
    for (const FlightEntry& entry : flight.entries) {
      if (entry.outcome == CollectiveOutcome::done) continue;
      if (numbers.size() == kMaxInProgress && entry.number > *numbers.rbegin()) break;
      numbers.insert(entry.number);
      if (numbers.size() > kMaxInProgress) numbers.erase(std::prev(numbers.end()));
    }
  }
  return numbers;
}

// Ranks whose collective with that number differs from the one of most peers; of equally many, the first
// counts.
std::vector<std::string> ranks_elsewhere(std::span<const FlightDump> flights, std::uint64_t number) {
  std::map<std::string, std::size_t> counts;
  std::string usual;
  for (const FlightDump& flight : flights) {
    if (const FlightEntry* entry = find(flight, number)) ++counts[entry->describe()];
  }
  for (const FlightDump& flight : flights) {
    const FlightEntry* entry = find(flight, number);
    if (entry != nullptr && (usual.empty() || counts[entry->describe()] > counts[usual]))
      usual = entry->describe();
  }
  std::vector<std::string> lines;
  for (const FlightDump& flight : flights) {
    const FlightEntry* entry = find(flight, number);
    if (entry == nullptr || entry->describe() == usual) continue;
    lines.push_back(format("{} is in {}{}, others in {}", name_of(flight), describe(*entry, flight),
                           entry->place.empty() ? "" : format(" (at {})", entry->place), usual));
  }
  return lines;
}

}  // namespace

std::vector<std::string> describe_desync(std::span<const FlightDump> flights) {
  const FlightEntry* latest = nullptr;
  for (const FlightDump& flight : flights) {
    if (!flight.entries.empty() && (latest == nullptr || flight.entries.back().number > latest->number))
      latest = &flight.entries.back();
  }
  if (latest == nullptr) return {};
  // A difference is the cause of what follows it.
  const std::set<std::uint64_t> in_progress = numbers_in_progress(flights);
  std::vector<std::string> lines;
  for (const std::uint64_t number : in_progress) {
    lines = ranks_elsewhere(flights, number);
    if (!lines.empty()) return lines;
  }
  lines = ranks_behind(flights, *latest);
  if (!lines.empty() || in_progress.empty()) return lines;
  // All ranks reached the same one: if the first ranks of the hosts wait for each other, the network is the
  // cause.
  for (const FlightDump& flight : flights) {
    if (flight.entries.back().outcome != CollectiveOutcome::inter_node) continue;
    lines.push_back(format("{} waits for other hosts in {}, which all ranks have reached", name_of(flight),
                           flight.entries.back().describe()));
  }
  const FlightEntry* first = find(flights, *in_progress.begin());
  if (lines.empty() && flights.size() > 1)
    lines.push_back(format("all {} ranks have reached {}, but it has not completed", flights.size(),
                           describe(*first, flights.front())));
  return lines;
}

std::string longest_wait(std::span<const FlightDump> flights, double least) {
  struct CollectiveWait {
    const FlightDump* first = nullptr;
    const FlightDump* last = nullptr;
    const FlightEntry* of_first = nullptr;
    const FlightEntry* of_last = nullptr;
    std::size_t ranks = 0;
    double shortest = 0;  // minimum of the ranks' times in it
    double wait() const { return of_last->begun_unix_s - of_first->begun_unix_s; }
  };
  std::map<std::uint64_t, CollectiveWait> collective_waits;
  for (const FlightDump& flight : flights) {
    for (const FlightEntry& entry : flight.entries) {
      CollectiveWait& collective_wait = collective_waits[entry.number];
      collective_wait.shortest =
          collective_wait.ranks == 0 ? entry.seconds : std::min(collective_wait.shortest, entry.seconds);
      ++collective_wait.ranks;
      if (collective_wait.first == nullptr || entry.begun_unix_s < collective_wait.of_first->begun_unix_s) {
        collective_wait.first = &flight;
        collective_wait.of_first = &entry;
      }
      if (collective_wait.last == nullptr || entry.begun_unix_s > collective_wait.of_last->begun_unix_s) {
        collective_wait.last = &flight;
        collective_wait.of_last = &entry;
      }
    }
  }
  const auto text = [](double seconds) {
    return rounded_duration(std::chrono::duration_cast<Duration>(Seconds(seconds)));
  };
  const CollectiveWait* latest = nullptr;
  const CollectiveWait* longest = nullptr;
  for (const auto& [number, collective_wait] : collective_waits) {
    if (collective_wait.wait() >= least && (latest == nullptr || collective_wait.wait() > latest->wait()))
      latest = &collective_wait;
    const bool is_long = collective_wait.ranks == flights.size() && collective_wait.shortest >= least;
    if (is_long && (longest == nullptr || collective_wait.shortest > longest->shortest))
      longest = &collective_wait;
  }
  // A rank that was stopped in the middle of a collective delayed its peers there without arriving late
  // anywhere.
  if (longest != nullptr && (latest == nullptr || latest->wait() < longest->shortest)) {
    return format("all {} ranks were in {} for {}", longest->ranks, longest->of_last->describe(),
                  text(longest->shortest));
  }
  if (latest == nullptr) return "";
  return format("{} reached {} {} after rank {}", name_of(*latest->last), latest->of_last->describe(),
                text(latest->wait()), latest->first->rank);
}

}  // namespace stoker::record
