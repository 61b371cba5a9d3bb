// What `data info` says of a file that is no dataset yet.
#pragma once

#include <string>

#include "base/file.h"
#include "cli/output.h"
#include "data/look/inside/file_contents.h"

namespace stoker::cli {

/// Prints it, in text or as JSON.
void report_contents(const Path& file, const data::FileContents& contents, Output& out);

}  // namespace stoker::cli
