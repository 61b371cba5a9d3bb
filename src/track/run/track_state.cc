#include "track/run/track_state.h"

#include "base/json/json.h"
#include "stoker/text.h"

namespace stoker::track {
namespace {

using Json = nlohmann::json;
constexpr std::string_view kFormat = "stoker-track";
constexpr int kVersion = 1;

Json to_json(const Positions& positions) {
  Json object = Json::object();
  for (const auto& [key, at] : positions) object[key] = {at.offset, at.sampled};
  return object;
}

bool read_positions(const Json& object, Positions* positions) {
  if (!object.is_object()) return false;
  for (const auto& [key, pair] : object.items()) {
    const bool is_pair =
        pair.is_array() && pair.size() == 2 && pair[0].is_number_unsigned() && pair[1].is_number();
    if (!is_pair) return false;
    positions->emplace(key, FilePosition{pair[0].get<std::uint64_t>(), pair[1].get<double>()});
  }
  return true;
}

bool read_count(const Json& state, const char* key, std::uint64_t* count) {
  const auto found = state.find(key);
  if (found == state.end() || !found->is_number_unsigned()) return false;
  *count = found->get<std::uint64_t>();
  return true;
}

bool parse_state(const Json& json, TrackState* state) {
  if (!json.is_object() || json.value("format", Json()) != kFormat) return false;
  const auto pending = json.find("pending");
  if (pending != json.end() && !read_positions(*pending, &state->pending.emplace())) return false;
  const auto values = json.find("values");
  if (values == json.end() || !values->is_object()) return false;
  for (const auto& [key, value] : values->items()) {
    if (!value.is_string()) return false;
    state->values.emplace(key, value.get<std::string>());
  }
  return read_count(json, "delivered", &state->delivered) && read_count(json, "refused", &state->refused) &&
         read_count(json, "batch", &state->batch) && json.contains("files") &&
         read_positions(json["files"], &state->done);
}

}  // namespace

std::string TrackState::value(std::string_view key) const {
  const auto found = values.find(key);
  return found == values.end() ? "" : found->second;
}

Result<TrackState> load_state(const Path& file) {
  if (!path_exists(file)) return TrackState();
  STOKER_ASSIGN_OR_RETURN(text, read_file(file));
  const Json json = parse_json<Json>(text);
  if (json.is_object() && json.contains("version") && json["version"] != kVersion) {
    return corrupt("{}: version {} is not supported by this Stoker (supported: {})", printable(file.string()),
                   json_text(json["version"]), kVersion);
  }
  TrackState state;
  if (!parse_state(json, &state)) {
    return corrupt("{}: damaged, so it is unknown which points were delivered", printable(file.string()))
        .cure("rm {}      (all points are delivered again)", shell_quote(file.string()));
  }
  return state;
}

Status save_state(const Path& file, const TrackState& state) {
  Json json = {{"format", kFormat},        {"version", kVersion},  {"delivered", state.delivered},
               {"refused", state.refused}, {"batch", state.batch}, {"files", to_json(state.done)},
               {"values", state.values}};
  if (state.pending) json["pending"] = to_json(*state.pending);
  return write_file(file, json_text(json) + "\n");
}

}  // namespace stoker::track
