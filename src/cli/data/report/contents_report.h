// Output of `data info` for a file that is not a dataset.
#pragma once

#include <string>

#include "base/file.h"
#include "cli/output.h"
#include "inspect/file_contents.h"

namespace stoker::cli {

/// Prints the contents as text or JSON.
void report_contents(const Path& file, const inspect::FileContents& contents, Output& out);

}  // namespace stoker::cli
