// Counts calls of fsync(2) by the tests of this room and by libraries.
#pragma once

namespace stoker::record {

/// Calls of fsync(2) by this process so far.
int synced_files();

}  // namespace stoker::record
