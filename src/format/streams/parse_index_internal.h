// The two kinds of index.json, parsed. Between the sources of this folder. Thread-safe: no state.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/status.h"
#include "format/streams/stream_index.h"

namespace stoker::formats {

/// Which file of a shard is there is looked up in `folder`.
Result<StreamIndex> parse_mds_index(const nlohmann::json& json, const Path& folder,
                                    const std::string& subject);
Result<StreamIndex> parse_litdata_index(const nlohmann::json& json, const std::string& subject);

/// A file's name that stays in its folder and can be shown.
bool is_plain_name(std::string_view name);

/// The text under `key`; nothing where there is none or null.
std::optional<std::string> text_of(const nlohmann::json& json, const char* key);
/// The whole number under `key`; nothing where there is none, or it is negative.
std::optional<std::uint64_t> number_of(const nlohmann::json& json, const char* key);

}  // namespace stoker::formats
