// Why ranks wait for each other, from the flight recorders of all ranks: ours (flight.h), torch's
// (torch_flight.h), or what NCCL's watchdog printed. Used by `stoker explain`. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "record/trace/flight.h"

namespace stoker::record {

/// Explains why ranks of one process group wait for each other. For each rank that lacks a collective of its
/// peers, a line such as "rank 1 (pid 42 on node3) has not reached all-reduce 118 of float32 [272474]: its
/// last collective was broadcast 117 of uint8 [6016], done". Otherwise the ranks whose operation or shape
/// differs from the one of most peers, in the first collective in progress where they do. If all have reached
/// the same one: the ranks that wait for other hosts in it, or that it has not completed. Empty if it has
/// completed.
std::vector<std::string> describe_desync(std::span<const FlightDump> flights);

/// The longest wait of ranks for another one in a collective, such as "rank 2 (pid 42 on n2) reached
/// all-reduce 15 of float32 [272474] 7.1 s after rank 0" or "all 3 ranks were in all-reduce 15 of float32
/// [272474] for 7.1 s". "" if none waited for `least` seconds.
std::string longest_wait(std::span<const FlightDump> flights, double least);

}  // namespace stoker::record
