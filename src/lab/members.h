// Finding the processes of a lab by its folder alone, as `down` must when lab.json is gone.
#pragma once

#include <vector>

#include "lab/daemons.h"

namespace stoker::lab {

/// As members(), of the lab in that folder.
std::vector<Member> find_members(const Path& folder);

}  // namespace stoker::lab
