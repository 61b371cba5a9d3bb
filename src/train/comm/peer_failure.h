// Publishes a rank's failure to its peers, and converts gloo exceptions to errors that name the failed peer.
// Used by ProcessGroup. No libtorch. Not collective. Functions here do not throw, even after rank 0, which
// hosts the store, has left.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/rendezvous_options.h"
#include "stoker/status.h"
#include "stoker/strong.h"
#include "stoker/time.h"
#include "train/comm/key_value_store.h"
#include "train/comm/rendezvous.h"

namespace stoker::train {

/// Publishes why this rank fails, so that peers can report it.
void publish_failure(KeyValueStore& store, Rank rank, std::string_view why);

/// The error behind a gloo exception: "rank 2 left (...)", "rank 2: out of images". Never ok. `store` is null
/// for a world size of one.
Status to_peer_error(KeyValueStore* store, const RendezvousOptions& rendezvous, const Peers& peers,
                     const std::exception& error);

/// Publishes `own` and returns the lines of all ranks, by rank. A rank that publishes nothing within `within`
/// has an empty line. Call it once per store.
std::vector<std::string> exchange_failures(KeyValueStore& store, const RendezvousOptions& rendezvous,
                                           std::string_view own, Duration within);

}  // namespace stoker::train
