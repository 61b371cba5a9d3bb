// What a ProcessGroup is made of, for the few sources that include c10d's headers (7 to 11 s each to
// compile).
#pragma once

#include <atomic>
#include <memory>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "net/shm/collectives.h"
#include "torch/communication/board.h"
#include "torch/communication/ledger.h"
#include "torch/communication/meeting.h"
#include "torch/communication/wait_limits.h"
#include "torch/process_group.h"

namespace stoker::torch {

/// Destroyed from the last member to the first: the group before the store and what tells its errors. All but
/// `meeting`, `limits` and `ledger` are empty in a world of one.
struct ProcessGroup::Objects {
  explicit Objects(const Rendezvous& where) : meeting(where), limits(where.answer_within) {}

  const Rendezvous meeting;
  WaitLimits limits;
  Transport transport = Transport::automatic;
  c10::intrusive_ptr<c10d::TCPStore> store;
  std::unique_ptr<Board> board;  ///< over the store
  Peers peers;
  std::shared_ptr<Ledger> ledger = std::make_shared<Ledger>();  ///< shared with running collectives
  c10::intrusive_ptr<c10d::ProcessGroup> group;                 ///< null in a world of one
  net::shm::Collectives* ranks = nullptr;  ///< owned by the group's backend; null over gloo alone
  std::atomic<bool> knows_why = false;     ///< another rank has said why it abandons this one
};

}  // namespace stoker::torch
