// The members of a ProcessGroup, for the few sources that include c10d's headers (7 to 11 s each to compile).
#pragma once

#include <atomic>
#include <memory>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "net/shm/collectives.h"
#include "stoker/process_group.h"
#include "train/comm/collective_recorder.h"
#include "train/comm/key_value_store.h"
#include "train/comm/rendezvous.h"
#include "train/comm/wait_limits.h"

namespace stoker::train {

/// Members are destroyed from last to first: the group before the store. With a world size of one only
/// `rendezvous`, `limits` and `collective_recorder` are set, unless NCCL is asked for.
struct ProcessGroup::Objects {
  explicit Objects(const RendezvousOptions& where) : rendezvous(where), limits(where.call_timeout) {}

  const RendezvousOptions rendezvous;
  WaitLimits limits;
  Transport transport = Transport::automatic;
  Transport device_transport = Transport::automatic;
  c10::intrusive_ptr<c10d::TCPStore> store;
  std::unique_ptr<KeyValueStore> key_values;  ///< uses `store`
  Peers peers;
  std::shared_ptr<CollectiveRecorder> collective_recorder =
      std::make_shared<CollectiveRecorder>();      ///< shared with running collectives
  c10::intrusive_ptr<c10d::Backend> host_backend;  ///< of the group, for tensors on the host
  c10::intrusive_ptr<c10d::ProcessGroup> group;    ///< null for a world size of one
  net::shm::Collectives* ranks = nullptr;          ///< owned by the group's backend; null with gloo alone
  std::atomic<bool> has_peer_failure = false;      ///< a peer has published why it failed
};

}  // namespace stoker::train
