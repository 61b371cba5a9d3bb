// Maps keys of a site file to members of Site; shared by reading and writing. Used only by site.cc.
#pragma once

#include <string>

#include "job/site/site.h"
#include "stoker/text.h"

namespace stoker::job {

/// Calls visit(key, member) for every member with its own key. `AnySite` is Site or const Site.
template <typename Visitor, typename AnySite>
void visit_site(Visitor& visit, AnySite& site) {
  visit("name", site.name);
  visit("what", site.what);
  visit("successor", site.successor);
  visit("detect.clusters", site.clusters);
  visit("detect.hosts", site.hosts);
  visit("limits.time", site.limits.time);
  visit("limits.shortest", site.limits.shortest);
  visit("limits.jobs", site.limits.jobs);
  visit("limits.nodes", site.limits.nodes);
  visit("limits.array", site.limits.array);
  visit("account.needed", site.needs_account);
  visit("account.what", site.account);
  visit("account.command", site.account_command);
  visit("quota.command", site.quota_command);
  visit("network.interfaces", site.interfaces);
  visit("network.first_port", site.first_port);
  visit("network.last_port", site.last_port);
  visit("network.internet", site.has_internet);
  visit("modules.system", site.module_system);
  visit("modules.python", site.python_modules);
}

/// Same, for one entry of a map with user-defined names; `at` is its path ("nodes.gpu").
template <typename Visitor, typename Entry>
void visit_entry(Visitor& visit, const std::string& at, Entry& entry) {
  const auto key = [&](std::string_view name) { return format("{}.{}", at, name); };
  if constexpr (requires { entry.default_time; }) {
    visit(key("time"), entry.time);
    visit(key("default_time"), entry.default_time);
    visit(key("nodes"), entry.nodes);
    visit(key("what"), entry.what);
  } else if constexpr (requires { entry.partitions; }) {
    visit(key("partitions"), entry.partitions);
    visit(key("time"), entry.time);
    visit(key("nodes"), entry.nodes);
    visit(key("what"), entry.what);
  } else if constexpr (requires { entry.cores_per_gpu; }) {
    visit(key("partition"), entry.partition);
    visit(key("options"), entry.options);
    visit(key("gpu"), entry.gpu);
    visit(key("gpus"), entry.gpus);
    visit(key("cores"), entry.cores);
    visit(key("cores_per_gpu"), entry.cores_per_gpu);
    visit(key("memory"), entry.memory);
    visit(key("memory_per_gpu"), entry.memory_per_gpu);
    visit(key("local_disk"), entry.local_disk);
  } else if constexpr (requires { entry.purge_days; }) {
    visit(key("path"), entry.path);
    visit(key("quota"), entry.quota);
    visit(key("files"), entry.files);
    visit(key("purge_days"), entry.purge_days);
    visit(key("what"), entry.what);
  } else if constexpr (requires { entry.url; }) {
    visit(key("url"), entry.url);
    visit(key("date"), entry.date);
  } else {
    visit(key("what"), entry.what);
    visit(key("cure"), entry.cure);
  }
  if constexpr (requires { entry.from; }) visit(key("from"), entry.from);
}

}  // namespace stoker::job
