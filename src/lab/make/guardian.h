// Ends a lab with its owner, even when that is killed: a small process that waits for it. Used by up.
#pragma once

#include "lab/lab.h"

namespace stoker::lab {

/// Starts the guardian of the lab in `lab.folder` (which exists) and sets `lab.guardian`. When the process
/// `lab.owner` ends, it ends this process if that is still making the lab, and takes the lab away. It ends by
/// itself once the lab is gone. Invalid "lab1: owner 123: no such process (--owner)".
Status start_guardian(Lab& lab);

}  // namespace stoker::lab
