// `stoker site show [SITE]`: docs/commands/site-show.md
#include "base/enum_names.h"
#include "base/json/json.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/site/sites.h"

namespace stoker::cli {
namespace {

using nlohmann::ordered_json;

template <typename T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}
ordered_json seconds(const std::optional<Duration>& value) {
  return value ? ordered_json(Seconds(*value).count()) : ordered_json(nullptr);
}
ordered_json bytes(const std::optional<ByteCount>& value) {
  return value ? ordered_json(value->value) : ordered_json(nullptr);
}

ordered_json enum_name(const std::optional<job::DefaultFor>& value) {
  return value ? ordered_json(std::string(to_text(*value))) : ordered_json(nullptr);
}

ordered_json to_json(const job::Site& site) {
  ordered_json partitions = ordered_json::object();
  for (const auto& [name, each] : site.partitions)
    partitions[name] = {{"time_s", seconds(each.time)},
                        {"default_time_s", seconds(each.default_time)},
                        {"nodes", or_null(each.nodes)},
                        {"default_qos", or_null(each.default_qos)},
                        {"default_for", enum_name(each.default_for)},
                        {"what", or_null(each.what)},
                        {"from", each.from}};
  ordered_json qos = ordered_json::object();
  for (const auto& [name, each] : site.qos)
    qos[name] = {{"partitions", each.partitions},
                 {"time_s", seconds(each.time)},
                 {"nodes", or_null(each.nodes)},
                 {"gpus", or_null(each.gpus)},
                 {"jobs", or_null(each.jobs)},
                 {"what", or_null(each.what)},
                 {"from", each.from}};
  ordered_json nodes = ordered_json::object();
  for (const auto& [name, each] : site.nodes)
    nodes[name] = {{"partition", or_null(each.partition)},
                   {"options", each.options},
                   {"gpu", or_null(each.gpu)},
                   {"gpus", or_null(each.gpus)},
                   {"cores", or_null(each.cores)},
                   {"cores_per_gpu", or_null(each.cores_per_gpu)},
                   {"memory_bytes", bytes(each.memory)},
                   {"memory_per_gpu_bytes", bytes(each.memory_per_gpu)},
                   {"local_disk_bytes", bytes(each.local_disk)},
                   {"from", each.from}};
  ordered_json storage = ordered_json::object();
  for (const auto& [name, each] : site.storage)
    storage[name] = {{"path", or_null(each.path)},
                     {"quota_bytes", bytes(each.quota)},
                     {"files", or_null(each.files)},
                     {"purge_days", or_null(each.purge_days)},
                     {"shared", or_null(each.shared)},
                     {"what", or_null(each.what)},
                     {"from", each.from}};
  ordered_json sources = ordered_json::object();
  for (const auto& [name, each] : site.sources) sources[name] = {{"url", each.url}, {"date", each.date}};
  return {{"name", site.name},
          {"what", site.what},
          {"file", site.file.string()},
          {"enforced", site.is_enforced},
          {"limits",
           {{"time_s", seconds(site.limits.time)},
            {"shortest_s", seconds(site.limits.shortest)},
            {"jobs", or_null(site.limits.jobs)},
            {"nodes", or_null(site.limits.nodes)},
            {"array", or_null(site.limits.array)}}},
          {"needs_account", site.needs_account},
          {"partitions", partitions},
          {"qos", qos},
          {"nodes", nodes},
          {"storage", storage},
          {"first_port", or_null(site.first_port)},
          {"last_port", or_null(site.last_port)},
          {"interfaces", site.interfaces},
          {"internet", or_null(site.has_internet)},
          {"transfer_host", or_null(site.transfer_host)},
          {"sources", sources}};
}

}  // namespace

int site_show(std::span<const std::string> words, Output& out) {
  std::string name = "auto";
  Arguments arguments("site show", "Show the profile of a cluster: limits, nodes and storage, with sources.");
  arguments.optional_positional("SITE", &name,
                                "Name of the cluster; former names are resolved [the current one]");
  arguments.example("stoker site show narval");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto found = find_site_by_name(name);
  if (!found.ok()) return out.fail(found.error());
  if (!found->requested_name.empty()) out.note("site {} is now {}", found->requested_name, found->site.name);
  if (found->site.is_enforced) out.note("includes the limits of /etc/stoker/site.yaml");
  out.raw(job::site_text(found->site));
  out.json(json_text(to_json(found->site)));
  return exit_code::kOk;
}

}  // namespace stoker::cli
