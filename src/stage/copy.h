// Copies files and folders with all in them, by several threads: to a node's own disk before a run, back
// after it. Used by `stoker stage`. Thread-safe: no state.
#pragma once

#include "base/progress.h"
#include "base/status.h"
#include "stage/moved.h"

namespace stoker::stage {

/// `source` becomes `folder`/<its name>, which must not be there yet and is not seen there before it is
/// whole. Symbolic links stay what they are; devices and pipes are passed over. NotFound without a source,
/// NoSpace before anything is written, Unavailable for a file that is changed meanwhile.
Result<Moved> copy_in(const Path& source, const Path& folder, Progress& progress);

/// The same for results: `source`, which is no link, becomes `target`, whose folder is made. A file that
/// still grows is copied as long as it was when it was looked at; what is copied has reached its disk when
/// this returns.
Result<Moved> copy_back(const Path& source, const Path& target, Progress& progress);

}  // namespace stoker::stage
