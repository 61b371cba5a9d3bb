// Appends lines, and reads them from files that may be damaged by a crash or by others. For the writers and
// readers of this room, and for log viewers.
//
// Protocol of every appended file:
//   1. One writer; the file is opened with O_APPEND.
//   2. A record is written with one write(2), its newline last: after kill -9 the file contains the record or
//      its beginning.
//   3. If a write fails in the middle (disk full), the next record starts with '\n', which ends the damaged
//      line.
//   4. append_record() syncs nothing: a power failure may lose the unsynced tail, never more. Writers of
//      metrics sync at checkpoints.
// A reader uses every complete line. A last line without '\n' is torn: still being written, or abandoned.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "base/file.h"

namespace stoker::record {

enum class LineKind {
  whole,
  torn,      ///< the last one, incomplete
  too_long,  ///< over the limit: `text` contains its beginning
};

/// Receives each line without its end ("\r\n" counts as one); returns false to stop reading.
using LineVisitor = std::function<bool(std::string_view text, LineKind kind)>;

/// Reads `file` in pieces; memory use is bounded by `max_line`. NotFound if it does not exist; Invalid if it
/// is not a regular file.
Status visit_lines(const Path& file, std::size_t max_line, const LineVisitor& visit);
/// Same, from memory.
void visit_text(std::string_view text, std::size_t max_line, const LineVisitor& visit);

/// Writes `record`, which ends with '\n', by the protocol above; `mid_line` is state between calls.
Status append_record(File& file, std::string_view record, bool& mid_line);

/// Whether the file is nonempty and its last byte is not '\n'.
Result<bool> ends_mid_line(const Path& file);

}  // namespace stoker::record
