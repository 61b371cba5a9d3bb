#include "preflight/production/network_points.h"

#include <algorithm>

#include "preflight/production/history.h"
#include "stoker/text.h"
#include "stoker/time.h"

namespace stoker::preflight {
namespace {

constexpr double kOldHello = 30 * 86400.0;

bool is_loud(const std::string& value) {
  const std::string lower = to_lower(value);
  return lower == "info" || lower == "trace";
}

}  // namespace

ProductionPoint all_reduced(const ProductionFacts& facts) {
  ProductionPoint point{.name = "all-reduced",
                        .question = "have the ranks of all nodes completed an all-reduce",
                        .evidence = {},
                        .cure = {}};
  const std::uint32_t nodes = facts.job.resources.nodes;
  if (facts.job.resources.world_size() == 1) {
    point.answer = PointAnswer::yes;
    point.evidence.push_back(message("one rank needs no communication (resources)"));
    return point;
  }
  const std::string file = printable(record::hello_path(facts.job.record.directory).string());
  if (!facts.hello) {
    point.evidence.push_back(message("no {} of this job", file));
    point.cure = "stoker hello JOB";
    return point;
  }
  const record::HelloRecord& hello = *facts.hello;
  const double days = (facts.now - hello.time) / 86400;
  const bool is_wide = hello.hosts.size() >= nodes;
  const bool is_recent = facts.now - hello.time < kOldHello;
  point.answer =
      hello.is_ready && hello.all_reduced && is_wide && is_recent ? PointAnswer::yes : PointAnswer::no;
  const Message met = hello.all_reduced ? message("all results correct") : message("no all-reduce");
  point.evidence.push_back(
      hello.is_ready
          ? message("ranks: {}, nodes: {}, {:.0f} days ago: {} ({})", hello.ranks, hello.hosts.size(),
                    std::max(0.0, days), met, file)
          : message("ranks: {}, nodes: {}, {:.0f} days ago: {}, and a finding would lose a job ({})",
                    hello.ranks, hello.hosts.size(), std::max(0.0, days), met, file));
  // several, more than the check had
  if (!is_wide) point.evidence.push_back(message("the job has {} nodes (resources.nodes)", nodes));
  if (point.answer == PointAnswer::no) point.cure = "stoker hello JOB";
  return point;
}

ProductionPoint nccl_quiet(const ProductionFacts& facts) {
  ProductionPoint point{.name = "nccl-quiet",
                        .question = "is NCCL_DEBUG=INFO on in tests, and off in production",
                        .evidence = {},
                        .cure = {}};
  const auto value = rank_variable(facts.job, "NCCL_DEBUG");
  if (value && is_loud(*value)) {
    point.answer = PointAnswer::no;
    point.evidence.push_back(message("NCCL_DEBUG={} fills the logs of every rank ({})", printable(*value),
                                     facts.job.environment.variables.contains("NCCL_DEBUG")
                                         ? facts.job.origins.where("environment.variables.NCCL_DEBUG")
                                         : message("your shell")));
    point.cure = "environment: {variables: {NCCL_DEBUG: WARN}}";
    return point;
  }
  if (!facts.has_gpus() || facts.job.resources.world_size() == 1) {
    point.answer = PointAnswer::yes;
    point.evidence.push_back(message("it is off, and nothing uses NCCL without several ranks with GPUs"));
    return point;
  }
  point.evidence.push_back(value ? format("NCCL_DEBUG={}", printable(*value))
                                 : message("NCCL_DEBUG is not set"));
  for (const PastRun& run : facts.runs) {
    if (!run.capsule.environment) continue;
    for (const auto& [name, was] : run.capsule.environment->variables) {
      if (name != "NCCL_DEBUG" || !is_loud(was)) continue;
      point.answer = PointAnswer::yes;
      point.evidence.push_back(message("run {} had {}", run.folder.id(), printable(was)));
      return point;
    }
  }
  point.answer = PointAnswer::no;
  point.evidence.push_back(message("no run with this name used INFO, which shows the transports"));
  point.cure = message("stoker run JOB --set environment.variables.NCCL_DEBUG=INFO, once");
  return point;
}

ProductionPoint interface_chosen(const ProductionFacts& facts) {
  ProductionPoint point{
      .name = "interface-chosen", .question = "is the network interface chosen", .evidence = {}, .cure = {}};
  if (facts.job.resources.nodes == 1) {
    point.answer = PointAnswer::yes;
    point.evidence.push_back(message("one node: ranks communicate inside of it (resources.nodes)"));
    return point;
  }
  const char* name = facts.has_gpus() ? "NCCL_SOCKET_IFNAME" : "GLOO_SOCKET_IFNAME";
  if (const auto value = rank_variable(facts.job, name); value && !value->empty()) {
    point.answer = PointAnswer::yes;
    point.evidence.push_back(format("{}={}", name, printable(*value)));
    return point;
  }
  point.answer = PointAnswer::no;
  point.evidence.push_back(message("{} is not set: the ranks use the address of the host name", name));
  std::string interface = facts.hello ? facts.hello->interface : "";
  if (facts.site && !facts.site->interfaces.empty()) interface = facts.site->interfaces.front();
  point.cure = format("environment: {{variables: {{{}: {}}}}}", name, interface.empty() ? "NAME" : interface);
  return point;
}

}  // namespace stoker::preflight
