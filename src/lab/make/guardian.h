// A process that removes a lab when its owner exits, even by SIGKILL. Used by up.
#pragma once

#include "lab/lab.h"

namespace stoker::lab {

/// Starts the guardian of the lab in `lab.folder` (which must exist) and sets `lab.guardian`. When the
/// process `lab.owner` exits, the guardian kills this process if it is still creating the lab, and removes
/// the lab. The guardian exits when the lab is removed. Invalid "lab1: owner 123: no such process (--owner)".
Status start_guardian(Lab& lab);

}  // namespace stoker::lab
