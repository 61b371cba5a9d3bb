// Dumps of torch's own flight recorder, one file per rank, which NCCL's watchdog writes after a timeout. They
// have the collectives of Python programs, which our recorder (flight.h) does not see. Used by `stoker
// explain`. Contents: docs/formats/flight.md. Pure but for read_torch_flight.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "record/trace/flight.h"
#include "stoker/status.h"

namespace stoker::record {

/// One process group of one rank.
struct TorchGroup {
  std::string name;        ///< of the group, the same on all of its ranks
  std::vector<int> ranks;  ///< of the group; empty if the dump does not list them
  FlightDump flight;       ///< numbers count within the group; without point-to-point operations
};

/// The dump of one rank.
struct TorchFlight {
  int rank = 0;
  std::vector<TorchGroup> groups;
};

/// Parses a dump: the pickle of a dictionary with `entries` and `pg_config`. Corrupt with `name` for other
/// bytes. Entries without a number are left out.
Result<TorchFlight> parse_torch_flight(std::string_view name, std::span<const std::byte> bytes, int rank);
/// The same, from a file of at most 64 MiB.
Result<TorchFlight> read_torch_flight(const Path& file, int rank);

/// describe_desync() of each process group. Ranks that wait in a collective of a different group are last.
std::vector<std::string> describe_torch_desync(std::span<const TorchFlight> flights);

}  // namespace stoker::record
