// Reads a log in blocks of whole lines: plain or compressed, of any size, in common encodings, also while it
// grows. Used by the log rules. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/language/message.h"
#include "stoker/status.h"

namespace stoker::diagnose {

/// The result of reading a log.
struct LogReading {
  std::uint64_t bytes = 0;     ///< of decoded text
  std::vector<Message> notes;  ///< "ends inside gzip data: cut off", "is UTF-16", ...
};

/// Receives blocks of whole lines; a line without an end arrives in parts of about 1 MiB.
using BlockSink = std::function<void(std::string_view block)>;

/// Reads the file up to its current size. Skips holes of sparse files. Truncated or damaged compressed data
/// and a shrinking file end the reading and add a note. NotFound for a missing file, Invalid for anything but
/// a regular file.
Result<LogReading> read_log(const Path& file, const BlockSink& sink);

/// Reads an open descriptor, for example a pipe, up to its end; notes use `name`.
Result<LogReading> read_log(int fd, const std::string& name, const BlockSink& sink);

}  // namespace stoker::diagnose
