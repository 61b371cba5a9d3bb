// The text of a log, in blocks of whole lines: plain or packed, of any size, in most encodings, also one that
// is being written. Used by the rules over logs. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/language/words.h"
#include "base/status.h"

namespace stoker::explain {

/// What is worth knowing about a log beside its text.
struct LogReading {
  std::uint64_t bytes = 0;         ///< of text
  std::vector<std::string> notes;  ///< "ends inside gzip data: cut off", "is UTF-16", ...
};

/// Gets blocks of whole lines, or of a line without an end its parts of about 1 MiB.
using BlockSink = std::function<void(std::string_view block)>;

/// Reads the file as far as it goes now. Holes of a sparse file are passed over; packed data that is cut off
/// or damaged, and a file that shrinks, end the reading and leave a note. NotFound without it, Invalid for
/// what is no regular file.
Result<LogReading> visit_log(const Path& file, const BlockSink& sink, const Words& words = Words());

/// The same of what comes through an open descriptor, up to its end, a pipe too; `name` is how notes call it.
Result<LogReading> visit_log(int fd, const std::string& name, const BlockSink& sink,
                             const Words& words = Words());

}  // namespace stoker::explain
