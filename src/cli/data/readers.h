// The option --for of dataset commands.
#pragma once

#include <optional>
#include <string_view>

#include "pack/shard_plan.h"
#include "stoker/status.h"

namespace stoker::cli {

/// Parses "ranks=64,workers=8"; empty for an empty text. Errors begin with `command`.
Result<std::optional<pack::TargetReaders>> parse_readers(std::string_view command, std::string_view text);

}  // namespace stoker::cli
