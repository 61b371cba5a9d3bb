// Appending lines and reading them back from files that a crash or somebody else may have damaged. For the
// writers and readers of this room, and for those who show logs.
//
// The protocol of every appended file:
//   1. one writer; the file is opened with O_APPEND
//   2. a record goes out in one write(2), its end ('\n') last: after kill -9 the record is there or its start
//   is
//   3. if a write fails half-way (disk full), the next record begins with '\n', which closes the damaged line
//   4. nothing is synced: a power cut may lose the last seconds, never more than the unsynced tail
// A reader takes every complete line; a last line without '\n' is torn: still being written, or never to be.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "base/file.h"

namespace stoker::record {

enum class LineKind {
  whole,
  torn,      ///< the last one, without an end
  too_long,  ///< over the limit: `text` is its beginning
};

/// Gets each line without its end ("\r\n" counts as one); false stops the reading.
using LineVisitor = std::function<bool(std::string_view text, LineKind kind)>;

/// Reads `file` in pieces; memory is bounded by `max_line`. NotFound without it; Invalid when it is no
/// regular file.
Status visit_lines(const Path& file, std::size_t max_line, const LineVisitor& visit);
/// The same from memory.
void visit_text(std::string_view text, std::size_t max_line, const LineVisitor& visit);

/// Writes `record`, which ends with '\n', by the protocol above; `mid_line` is its memory between calls.
Status append_record(File& file, std::string_view record, bool& mid_line);

/// True when the file is not empty and its last byte is no '\n'.
Result<bool> ends_mid_line(const Path& file);

}  // namespace stoker::record
