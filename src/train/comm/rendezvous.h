// Rendezvous over the key-value store: waits for all ranks, selects the transport, exchanges ports. Used by
// ProcessGroup. No libtorch. All ranks concerned call each function in the same order. Exceptions of the
// store propagate.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/rendezvous_options.h"
#include "stoker/status.h"
#include "stoker/strong.h"
#include "stoker/time.h"
#include "train/comm/key_value_store.h"

namespace stoker::train {

/// Rank 0 waits for all ranks until `deadline`. A Timeout names the first missing rank. Other ranks only wait
/// for rank 0.
Status wait_for_all_ranks(KeyValueStore& store, const RendezvousOptions& rendezvous, Deadline deadline);

/// Sets `key` for this rank. Rank 0 waits for the keys of all ranks, because it hosts the store and must not
/// leave before its peers have read it. Other ranks return at once.
void wait_for_acknowledgements(KeyValueStore& store, const RendezvousOptions& rendezvous,
                               std::string_view key, Deadline deadline);

/// Rank 0 chooses the transport from the locations of all ranks and publishes it: "shm <address>", "hosts
/// <host of each rank>", "gloo", or "error <reason>". `address` is the shared memory region of rank 0.
/// REQUIRES: this is rank 0.
std::string publish_transport(KeyValueStore& store, const RendezvousOptions& rendezvous,
                              const std::string& address);
/// Publishes this rank's location and waits for rank 0's choice.
std::string receive_transport(KeyValueStore& store, const RendezvousOptions& rendezvous);

/// The ranks connected over gloo.
struct Peers {
  std::vector<int> ranks;
  std::map<std::string, int> rank_of_port;  ///< "44750" → rank, for gloo's error texts
};

/// Exchanges ports with `others`, so that gloo's errors can be mapped to ranks. REQUIRES: all of them call
/// it.
Peers exchange_ports(KeyValueStore& store, Rank own, std::vector<int> others);

}  // namespace stoker::train
