// Exceptions that were raised while another one was handled. Pure functions. Internal to this folder.
#pragma once

#include <optional>
#include <vector>

#include "diagnose/suspect.h"

namespace stoker::diagnose {

/// The exception of a chain that states the reason, from the chosen one outwards: the last one with a
/// separate message. An outer one that only names what failed does not count, nor does any outer one of an
/// error of the system, such as a missing file. `end`: the hits at the end of the logs.
Suspect stated_in_chain(const Suspect& cause, const std::vector<Suspect>& end);

/// An error in the code that handled the cause, or cleaned up after it.
std::optional<Suspect> error_of_handler(const Suspect& cause, const std::vector<Suspect>& end);

}  // namespace stoker::diagnose
