// What a ProcessGroup is made of, for the few sources that include c10d's headers (7 to 11 s each to
// compile).
#pragma once

#include <map>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "net/shm/collectives.h"
#include "torch/communication/ledger.h"
#include "torch/communication/wait_limits.h"
#include "torch/process_group.h"

namespace stoker::torch {

/// Destroyed from the last member to the first: the group before the store and what tells its errors.
struct ProcessGroup::Objects {
  explicit Objects(const Rendezvous& where) : meeting(where), limits(where.answer_within) {}

  const Rendezvous meeting;
  WaitLimits limits;
  Transport transport = Transport::automatic;
  c10::intrusive_ptr<c10d::TCPStore> store;
  std::vector<int> others;                  ///< ranks that this one talks to over gloo
  std::map<std::string, int> rank_of_port;  ///< "44750" → rank, as error texts of gloo name peers
  std::shared_ptr<Ledger> ledger = std::make_shared<Ledger>();  ///< shared with running collectives
  c10::intrusive_ptr<c10d::ProcessGroup> group;                 ///< null in a world of one
  net::shm::Collectives* ranks = nullptr;  ///< owned by the group's backend; null over gloo alone
};

}  // namespace stoker::torch
