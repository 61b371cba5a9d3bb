// Plans a lab: names, unused addresses and ports.
#pragma once

#include <vector>

#include "lab/lab.h"
#include "net/port.h"

namespace stoker::lab {

/// Invalid when an option is out of range: "lab: --nodes 0: must be 1 to 64", ...
Status check_options(const Options& options);

/// A planned lab. `ports` reserves its ports until the daemons listen.
struct LabPlan {
  Lab lab;
  std::vector<net::PortReservation> ports;
};
/// REQUIRES: check_options() is ok. In namespaces mode: call with the NetworkLock held.
Result<LabPlan> make_plan(const Options& options, const Path& folder);

}  // namespace stoker::lab
