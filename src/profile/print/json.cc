#include "profile/print/json.h"

#include <cmath>

#include "base/json/json.h"

namespace stoker::profile {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kVersion = 1;

Json number_or_null(std::optional<double> value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

template <typename SecondsOf>
Json seconds_by_part(const SecondsOf& seconds_of) {
  Json object = Json::object();
  for (const ProfilePart part : kAllParts) object[std::string(key_of(part))] = seconds_of(part);
  return object;
}

Json json_of(const RankProfile& rank) {
  return {{"rank", rank.rank},
          {"host", rank.host},
          {"steps", rank.steps},
          {"step_s", rank.step_s()},
          {"seconds", seconds_by_part([&](ProfilePart part) { return rank.seconds_of(part); })},
          {"nanoseconds", seconds_by_part([&](ProfilePart part) { return rank.times[part]; })},
          {"nanoseconds_total", rank.times.total()}};
}

Json json_of(const CollectiveRow& row) {
  return {{"operation", row.kind.operation},
          {"element", row.kind.element},
          {"group", row.kind.group},
          {"ranks", row.kind.ranks},
          {"bytes", row.kind.bytes},
          {"count", row.count},
          {"timed", row.timed},
          {"mean_s", row.timed > 0 ? Json(row.mean_s()) : Json(nullptr)},
          {"shortest_s", row.timed > 0 ? Json(1e-9 * static_cast<double>(row.shortest)) : Json(nullptr)},
          {"algorithm_bytes_per_s", number_or_null(row.algorithm_bandwidth())},
          {"bus_bytes_per_s", number_or_null(row.bus_bandwidth())}};
}

Json worst_ranks(const Profile& profile) {
  Json object = Json::object();
  for (const ProfilePart part : kAllParts) {
    if (const RankProfile* worst = profile.worst_rank(part)) object[std::string(key_of(part))] = worst->rank;
  }
  return object;
}

}  // namespace

std::string to_json(const Profile& profile) {
  Json object = {{"version", kVersion},
                 {"subject", profile.subject},
                 {"attempt", profile.attempt > 0 ? Json(profile.attempt) : Json(nullptr)},
                 {"source", key_of(profile.source)}};
  object["steps"] = profile.range ? Json{{"first", profile.range->first},
                                         {"last", profile.range->last},
                                         {"warm_up", profile.range->warm_up}}
                                  : Json(nullptr);
  object["step_s"] = profile.step_s();
  object["seconds"] = seconds_by_part([&](ProfilePart part) { return profile.seconds_of(part); });
  object["communication_s"] = profile.communication_s() > 0 ? Json(profile.communication_s()) : Json(nullptr);
  object["measured"] = Json::array();
  for (const ProfilePart part : profile.measured) object["measured"].push_back(key_of(part));
  object["worst_ranks"] = worst_ranks(profile);
  const RankProfile* slowest = profile.slowest_rank();
  object["slowest_rank"] = slowest ? Json(slowest->rank) : Json(nullptr);
  object["gains"] = Json::array();
  for (const Gain& gain : profile.gains)
    object["gains"].push_back(
        {{"without", gain.part ? key_of(*gain.part) : "imbalance"}, {"factor", gain.factor}});
  object["ranks"] = Json::array();
  for (const RankProfile& rank : profile.ranks) object["ranks"].push_back(json_of(rank));
  object["collectives"] = Json::array();
  for (const CollectiveRow& row : profile.collectives) object["collectives"].push_back(json_of(row));
  object["advice"] = profile.advice.english();
  object["command"] = profile.command;
  object["notes"] = Json::array();
  for (const Message& note : profile.notes) object["notes"].push_back(note.english());
  return json_text(object);
}

}  // namespace stoker::profile
