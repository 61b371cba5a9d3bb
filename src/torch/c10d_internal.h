// What a ProcessGroup is made of, for the few sources that include c10d's headers (7 to 11 s each to
// compile).
#pragma once

#include <map>
#include <string>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "torch/process_group.h"
#include "torch/traffic_meter.h"

namespace stoker::torch {

/// Destroyed from the last member to the first: the group before the store.
struct ProcessGroup::Objects {
  Rendezvous meeting;
  c10::intrusive_ptr<c10d::TCPStore> store;
  std::shared_ptr<TrafficMeter> meter =
      std::make_shared<TrafficMeter>();          ///< shared with running collectives
  c10::intrusive_ptr<c10d::ProcessGroup> group;  ///< null in a world of one
  std::map<std::string, int> rank_of_port;       ///< "44750" → rank, as error texts of gloo name peers
};

}  // namespace stoker::torch
