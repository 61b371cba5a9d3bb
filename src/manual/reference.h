// The sections of stoker(1) that no command declares: files and environment variables. Constants.
#pragma once

#include <span>
#include <string_view>

namespace stoker::manual {

struct ReferenceRow {
  std::string_view name;
  std::string_view what;  ///< sentences
};

/// Files and folders that commands read and write.
std::span<const ReferenceRow> reference_files();
/// Variables that commands read.
std::span<const ReferenceRow> command_variables();
/// Variables that each rank of a run has: docs/environment.md.
std::span<const ReferenceRow> rank_variables();

}  // namespace stoker::manual
