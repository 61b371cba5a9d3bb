// Files compressed as a whole by gzip or zstd. They have no random access, so they are decompressed once into
// an unnamed file. Used by unpack and by pack. Thread-safe: no state.
#pragma once

#include <optional>

#include "archive/decompress.h"
#include "base/file.h"
#include "stoker/bytes.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::archive {

/// Detects the format from the first bytes, not from the name. Looks behind up to 1024 skippable frames,
/// which zstd and LZ4 share.
Result<CompressionFormat> detect_compression(const File& file);

/// Invalid, with a command that converts the file to zstd, if its first bytes show bzip2, xz, lzma, lzip,
/// lzop, LZ4 or compress.
Status reject_other_compression(const File& file, const std::string& subject);

/// An unlinked file in `folder`: it vanishes with the process.
Result<File> create_unnamed_file(const Path& folder);

/// Where decompressed bytes are written.
struct Scratch {
  Path folder;
  std::optional<ByteCount> limit;  ///< default: nearly all free space there
};

/// The file itself if it is not compressed, otherwise an unnamed file in the scratch folder with its
/// decompressed content. Corrupt as DecompressingReader::next(); NoSpace before the disk is full, even for a
/// decompression bomb. Blocks; Cancelled when `progress` requests a stop.
Result<File> decompress_file(File file, const Scratch& scratch, Progress& progress);

}  // namespace stoker::archive
