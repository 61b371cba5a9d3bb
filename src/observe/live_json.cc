#include "observe/live_json.h"

#include "base/json/json.h"
#include "observe/node_rows.h"

namespace stoker::observe {

namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

std::string json_of(const std::vector<LiveRank>& ranks) {
  Json list = Json::array();
  for (const LiveRank& rank : ranks) {
    Json shares = Json::object();
    for (std::size_t i = 0; i < rank.shares.size(); ++i)
      shares[std::string(kStepParts[i])] = or_null(rank.shares[i]);
    list.push_back({{"rank", rank.rank},
                    {"host", rank.host},
                    {"phase", rank.beacon ? Json(std::string(to_text(rank.beacon->phase))) : Json(nullptr)},
                    {"silent_s", or_null(rank.silent_s)},
                    {"epoch", or_null(rank.epoch)},
                    {"step", or_null(rank.step)},
                    {"steps_per_s", or_null(rank.steps_per_s)},
                    {"samples_per_s", or_null(rank.samples_per_s)},
                    {"shares", shares},
                    {"cpu_cores", or_null(rank.cpu_cores)},
                    {"memory_bytes", or_null(rank.memory_bytes)},
                    {"metrics", parse_json<Json>(record::json_of(rank.metrics))},
                    {"ended", or_null(rank.ended)}});
  }
  return json_text(list);
}

std::string json_of(const std::vector<LiveNode>& nodes) {
  Json list = Json::array();
  for (const LiveNode& node : nodes) {
    Json object = {{"node", node.node},
                   {"host", node.host.empty() ? Json(nullptr) : Json(node.host)},
                   {"age_s", node.age_s},
                   {"cpus", or_null(node.cpus)}};
    for (std::size_t i = 0; i < kMeasures; ++i)
      object[std::string(kNodeMeasures[i].key)] = or_null(node.values[i]);
    object["memory_limit_bytes"] = or_null(node.memory_limit_bytes);
    object["oom_kills"] = or_null(node.oom_kills);
    object["power_w"] = or_null(node.power_w);
    object["energy"] = {{"cpu_j", or_null(node.energy.cpu_j)},
                        {"memory_j", or_null(node.energy.memory_j)},
                        {"node_j", or_null(node.energy.node_j)},
                        {"gpu_j", or_null(node.energy.gpu_j)}};
    list.push_back(std::move(object));
  }
  return json_text(list);
}

std::string json_of(const std::vector<LiveGpu>& gpus) {
  Json list = Json::array();
  for (const LiveGpu& gpu : gpus)
    list.push_back({{"node", gpu.node},
                    {"gpu", gpu.number},
                    {"busy_percent", or_null(gpu.busy_percent)},
                    {"memory_bytes", or_null(gpu.memory_bytes)},
                    {"memory_total_bytes", or_null(gpu.memory_total_bytes)},
                    {"power_w", or_null(gpu.power_w)},
                    {"sm_clock_mhz", or_null(gpu.sm_clock_mhz)},
                    {"temperature_c", or_null(gpu.temperature_c)},
                    {"throttled", gpu.throttle_reasons ? Json(throttling_of(gpu)) : Json(nullptr)},
                    {"xids", gpu.xids}});
  return json_text(list);
}

std::string json_of(const std::optional<record::StagedData>& staged) {
  if (!staged) return "null";
  return json_text(Json{{"nodes", staged->nodes},
                        {"read_bytes", staged->read},
                        {"received_bytes", staged->received},
                        {"cached_bytes", staged->cached},
                        {"hit_rate", staged->hit_rate()},
                        {"seconds", staged->seconds}});
}

}  // namespace stoker::observe
