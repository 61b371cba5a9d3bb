// The contents of a file that is not a dataset yet, as text and JSON: `stoker data info FILE`. Thread-safe:
// no state.
#pragma once

#include <string>

#include "base/file.h"
#include "inspect/file_contents.h"

namespace stoker::inspect {

/// A table of arrays, columns or files, the parts that were not read with the reason, and the command that
/// makes a dataset of `file`.
std::string contents_text(const Path& file, const FileContents& contents);
/// The same as one JSON value: `file`, `kind`, `bytes`, the parts and `omitted`.
std::string contents_json(const Path& file, const FileContents& contents);

}  // namespace stoker::inspect
