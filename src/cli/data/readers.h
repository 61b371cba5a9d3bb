// What commands on datasets share: the option --for.
#pragma once

#include <optional>
#include <string_view>

#include "base/status.h"
#include "data/pack/shard_plan.h"

namespace stoker::cli {

/// "ranks=64,workers=8"; nothing for an empty text. Errors begin with `command`.
Result<std::optional<data::ReadersWanted>> parse_readers(std::string_view command, std::string_view text);

}  // namespace stoker::cli
