// Parsers for the option values of `stoker data pack`. Thread-safe: no state.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "pack/pack.h"
#include "stoker/status.h"

namespace stoker::cli {

/// "12.5%", from 0 to 100; nothing for other texts.
std::optional<double> parse_percent(std::string_view text);
/// The percentage of --max-left-out.
Result<double> parse_max_left_out(std::string_view text);
/// The shares of --split: "train=90%,val=10%" or "train=0.9,val=0.1"; they must add up to 1.
Result<std::vector<sources::SplitShare>> parse_split_shares(std::string_view text);
/// The part of --part: "2/8"; nothing for an empty text.
Result<std::optional<pack::PackPart>> parse_part(std::string_view text);

}  // namespace stoker::cli
