// Recognizes archives by their content. Used by pack and by unpack. Thread-safe: no state.
#pragma once

#include <string>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker::archive {

/// `compressed_tar` is any file compressed as a whole by gzip or zstd.
enum class ArchiveFormat { none, tar, zip, compressed_tar };

/// Reads the first bytes. If they are unknown, a file named "*.tar" is a tar from before ustar, and any other
/// file is a zip archive if its last 64 KiB have an end record: other bytes may precede the archive. Invalid,
/// starting with `subject`, with a cure, for a compression other than gzip and zstd.
Result<ArchiveFormat> detect_archive(const File& file, const std::string& subject);

}  // namespace stoker::archive
