// What a lab will be, before anything of it is made: names, addresses and ports that nobody else uses.
#pragma once

#include <vector>

#include "lab/lab.h"
#include "net/port.h"

namespace stoker::lab {

/// Invalid when an option is out of range: "lab: --nodes 0: must be 1 to 64", ...
Status check_options(const Options& options);

/// A planned lab. Its ports stay ours while `ports` lives: until the daemons listen.
struct Plan {
  Lab lab;
  std::vector<net::PortReservation> ports;
};
/// REQUIRES: check_options() is ok. In namespaces mode: call with the NetworkLock held.
Result<Plan> make_plan(const Options& options, const Path& folder);

}  // namespace stoker::lab
