// Writes a run as offline archives of Comet, for `comet upload`: comet/<key>-001.zip and further ones below
// the folder of the trackers. Comet does not read an archive that grows, and each upload sends all of its
// points. So an archive is closed when its process ends, and later points have the next one.
#pragma once

#include <memory>
#include <string>

#include "track/run/tracker.h"

namespace stoker::track {

std::unique_ptr<Tracker> make_comet_tracker(Path folder, std::string project);

}  // namespace stoker::track
