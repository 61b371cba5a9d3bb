#include "netcheck/wire.h"

#include <algorithm>
#include <cstdint>

#include "netcheck/facts.h"

namespace stoker::netcheck {
namespace {

using net::ControlMessage;

constexpr std::size_t kMaxEntries = 1024;  // interfaces, GPUs, ports of a host
constexpr std::size_t kMaxWays = 100'000;
constexpr std::size_t kMaxPaths = 256;
constexpr std::size_t kLongestPaths = 128 << 10;  // total, in one message
constexpr std::size_t kLongestText = 4096;

// Values may be long; a frame is bounded.
std::string bounded(std::string_view text) { return std::string(text.substr(0, kLongestText)); }

// Reads the fields of one message; keeps the first error.
class FieldReader {
 public:
  explicit FieldReader(const ControlMessage& message) : message_(message) {}

  std::string text(std::string_view name) const { return bounded(message_.text(name)); }
  std::int64_t number(std::string_view name, std::int64_t most) {
    const auto value = message_.integer(name);
    if (value && *value >= 0 && *value <= most) return *value;
    reject(name);
    return 0;
  }
  int count(std::string_view name, int most) { return static_cast<int>(number(name, most)); }
  bool flag(std::string_view name) { return number(name, 1) == 1; }
  double seconds(std::string_view name) {
    const auto value = message_.number(name);
    if (value && *value >= 0 && *value <= 1e6) return *value;
    reject(name);
    return 0;
  }
  std::vector<std::string> list(std::string_view name, char separator) const {
    std::vector<std::string> all;
    for (std::string_view part : split(message_.text(name), separator)) {
      if (!part.empty() && all.size() < kMaxEntries) all.push_back(bounded(part));
    }
    return all;
  }
  Status status() const { return status_; }

 private:
  void reject(std::string_view name) {
    if (status_.ok())
      status_ = invalid("{}: {} is '{}'", printable(message_.kind), name, printable(message_.text(name)));
  }

  const ControlMessage& message_;
  Status status_;
};

void put(ControlMessage& message, const net::InterfaceChoice& choice, const std::string& name) {
  message.with(name, choice.chosen ? choice.chosen->address : "");
  message.with(name + "_problem", bounded(choice.problem));
}

net::InterfaceChoice choice_of(const FieldReader& fields, const std::string& name, const RankFacts& facts) {
  return {net::find_interface_by_address(fields.text(name), facts.interfaces),
          fields.text(name + "_problem")};
}

ControlMessage to_message(const net::Interface& one) {
  ControlMessage message{"interface", {}};
  return message.with("name", one.name)
      .with("address", one.address)
      .with("prefix", std::int64_t{one.prefix})
      .with("loopback", std::int64_t{one.is_loopback})
      .with("mtu", std::int64_t{one.mtu})
      .with("speed", one.speed_mbit);
}

Status parse_interface(const ControlMessage& message, RankFacts* facts) {
  if (facts->interfaces.size() >= kMaxEntries) return invalid("interface: more than {}", kMaxEntries);
  FieldReader fields(message);
  net::Interface one{.name = fields.text("name"), .address = fields.text("address")};
  one.prefix = fields.count("prefix", 128);
  one.is_loopback = fields.flag("loopback");
  one.mtu = fields.count("mtu", 1 << 30);
  one.speed_mbit = fields.number("speed", 1LL << 40);
  if (fields.status().ok()) facts->interfaces.push_back(std::move(one));
  return fields.status();
}

Status parse_fabric(const ControlMessage& message, RankFacts* facts) {
  if (facts->fabric.size() >= kMaxEntries) return invalid("fabric: more than {}", kMaxEntries);
  FieldReader fields(message);
  FabricPort one{.device = fields.text("device"), .port = fields.count("port", 255)};
  one.state = fields.text("state");
  one.is_active = one.state == "ACTIVE";
  if (fields.status().ok()) facts->fabric.push_back(std::move(one));
  return fields.status();
}

// "0 1 18 4 1": the GPUs, their NVLinks, path and peer access; -1: unknown.
std::string to_line(const GpuLink& link) {
  const int path = link.path ? static_cast<int>(*link.path) : -1;
  const int access = link.has_peer_access ? int{*link.has_peer_access} : -1;
  return format("{} {} {} {} {}", link.first, link.second, link.nvlinks, path, access);
}

Result<GpuLink> parse_link(std::string_view line) {
  std::int64_t numbers[5] = {};
  const std::vector<std::string_view> words = split(line, ' ');
  bool is_valid = words.size() == std::size(numbers);
  for (std::size_t i = 0; is_valid && i < words.size(); ++i)
    is_valid = parse_number(words[i], &numbers[i]) && numbers[i] >= -1 && numbers[i] <= observe::kMaxGpus;
  const auto [first, second, nvlinks, path, access] = numbers;
  if (!is_valid || first < 0 || second < 0 || nvlinks < 0 || path > 5 || access > 1)
    return invalid("gpu_links: '{}'", printable(line));
  GpuLink link{.first = static_cast<int>(first),
               .second = static_cast<int>(second),
               .nvlinks = static_cast<int>(nvlinks)};
  if (path >= 0) link.path = static_cast<observe::GpuPath>(path);
  if (access >= 0) link.has_peer_access = access == 1;
  return link;
}

Status parse_placement_fact(const ControlMessage& message, RankFacts* facts) {
  FieldReader fields(message);
  facts->node = fields.count("node", 1'000'000);
  facts->local_rank = fields.count("local_rank", 1'000'000);
  STOKER_ASSIGN_OR_RETURN(cores, parse_cores(fields.text("cores")));
  facts->cores = std::move(cores);
  if (fields.flag("has_visible_gpus")) facts->visible_gpus = fields.text("visible_gpus");
  facts->gpus = fields.list("gpus", '\n');
  facts->gpu_problem = fields.text("gpu_problem");
  facts->gpu = fields.count("gpus_before", observe::kMaxGpus) - 1;
  facts->gpu_uuid = fields.text("gpu_uuid");
  facts->unknown_gpu = fields.text("unknown_gpu");
  facts->gpu_bytes_per_s = static_cast<double>(fields.number("gpu_bytes_per_s", 1LL << 50));
  for (const std::string& line : fields.list("gpu_links", '\n')) {
    STOKER_ASSIGN_OR_RETURN(link, parse_link(line));
    facts->gpu_links.push_back(link);
  }
  facts->gloo = choice_of(fields, "gloo", *facts);
  facts->nccl = choice_of(fields, "nccl", *facts);
  facts->addresses = fields.list("addresses", ',');
  facts->master_port = fields.count("master_port", 65535);
  facts->master_problem = fields.text("master_problem");
  facts->free_port = fields.count("free_port", 65535);
  for (std::string_view name : kVariables) {
    const auto found = message.fields.find(format("set.{}", name));
    if (found != message.fields.end()) facts->variables[std::string(name)] = bounded(found->second);
  }
  return fields.status();
}

}  // namespace

std::vector<ControlMessage> to_messages(const RankFacts& facts) {
  std::vector<ControlMessage> messages;
  for (const net::Interface& one : facts.interfaces) messages.push_back(to_message(one));
  for (const FabricPort& one : facts.fabric) {
    ControlMessage message{"fabric", {}};
    message.with("device", one.device).with("port", std::int64_t{one.port}).with("state", one.state);
    messages.push_back(std::move(message));
  }
  // Last: the choices refer to the interfaces.
  ControlMessage place{"place", {}};
  place.with("node", std::int64_t{facts.node}).with("local_rank", std::int64_t{facts.local_rank});
  place.with("cores", core_text(facts.cores));
  place.with("has_visible_gpus", std::int64_t{facts.visible_gpus.has_value()});
  place.with("visible_gpus", bounded(facts.visible_gpus.value_or("")));
  place.with("gpus", ::stoker::join(facts.gpus, "\n")).with("gpu_problem", bounded(facts.gpu_problem));
  place.with("gpus_before", std::int64_t{facts.gpu} + 1).with("gpu_uuid", bounded(facts.gpu_uuid));
  place.with("unknown_gpu", bounded(facts.unknown_gpu));
  place.with("gpu_bytes_per_s", static_cast<std::int64_t>(facts.gpu_bytes_per_s));
  std::vector<std::string> links;
  for (const GpuLink& link : facts.gpu_links) links.push_back(to_line(link));
  place.with("gpu_links", ::stoker::join(links, "\n"));
  put(place, facts.gloo, "gloo");
  put(place, facts.nccl, "nccl");
  place.with("addresses", ::stoker::join(facts.addresses, ","));
  place.with("master_port", std::int64_t{facts.master_port});
  place.with("master_problem", bounded(facts.master_problem));
  place.with("free_port", std::int64_t{facts.free_port});
  for (const auto& [name, value] : facts.variables) place.with("set." + name, bounded(value));
  messages.push_back(std::move(place));
  return messages;
}

Status parse_fact(const ControlMessage& message, RankFacts* facts) {
  if (message.kind == "interface") return parse_interface(message, facts);
  if (message.kind == "fabric") return parse_fabric(message, facts);
  if (message.kind == "place") return parse_placement_fact(message, facts);
  return invalid("unknown fact '{}'", printable(message.kind));
}

ControlMessage to_message(const netcheck::ResolvedName& answer) {
  ControlMessage message{"resolved", {}};
  return message.with("name", bounded(answer.name))
      .with("addresses", ::stoker::join(answer.addresses, ","))
      .with("seconds", answer.seconds)
      .with("reverse", answer.reverse_seconds)
      .with("error", bounded(answer.error));
}

Result<netcheck::ResolvedName> parse_resolved(const ControlMessage& message) {
  FieldReader fields(message);
  netcheck::ResolvedName answer{.name = fields.text("name"), .addresses = fields.list("addresses", ',')};
  answer.seconds = fields.seconds("seconds");
  answer.reverse_seconds = fields.seconds("reverse");
  answer.error = fields.text("error");
  if (!fields.status().ok()) return fields.status();
  return answer;
}

ControlMessage to_message(const netcheck::Route& way) {
  ControlMessage message{"way", {}};
  return message.with("to", std::int64_t{way.to.value})
      .with("address", way.address)
      .with("error", bounded(way.error))
      .with("connect", way.connect_s)
      .with("round_trip", way.round_trip_s);
}

Result<netcheck::Route> parse_way(const ControlMessage& message) {
  FieldReader fields(message);
  netcheck::Route way{.to = Rank(fields.count("to", 1'000'000)), .address = fields.text("address")};
  way.error = fields.text("error");
  way.connect_s = fields.seconds("connect");
  way.round_trip_s = fields.seconds("round_trip");
  if (!fields.status().ok()) return fields.status();
  return way;
}

ControlMessage to_message(const netcheck::FlowResult& flow) {
  ControlMessage message{"flow", {}};
  return message.with("to", std::int64_t{flow.to.value})
      .with("bytes", static_cast<std::int64_t>(flow.bytes))
      .with("seconds", flow.seconds)
      .with("error", bounded(flow.error));
}

Result<netcheck::FlowResult> parse_flow(const ControlMessage& message) {
  FieldReader fields(message);
  netcheck::FlowResult flow{.to = Rank(fields.count("to", 1'000'000))};
  flow.bytes = static_cast<std::uint64_t>(fields.number("bytes", 1LL << 40));
  flow.seconds = fields.seconds("seconds");
  flow.error = fields.text("error");
  if (!fields.status().ok()) return fields.status();
  return flow;
}

std::string to_lines(const std::vector<CheckedPath>& paths) {
  std::string lines;
  std::size_t count = 0;
  for (const CheckedPath& one : paths) {
    const std::string line = format("{}\t{}\t{}\t{}\t{}\t{}\n", one.is_written ? "w" : "r", one.inode,
                                    one.changed, one.probe, one.key, one.path);
    const bool is_line = std::ranges::count(line, '\t') == 5 && std::ranges::count(line, '\n') == 1;
    const bool fits = line.size() <= kLongestText && lines.size() + line.size() <= kLongestPaths;
    if (!is_line || !fits || count++ >= kMaxPaths) continue;
    lines += line;
  }
  return lines;
}

Result<std::vector<CheckedPath>> parse_paths(std::string_view lines) {
  std::vector<CheckedPath> paths;
  for (std::string_view line : split(lines, '\n')) {
    if (line.empty()) continue;
    const auto fields = split(line, '\t');
    CheckedPath one;
    const bool is_line = fields.size() == 6 && (fields[0] == "r" || fields[0] == "w") &&
                         parse_number(fields[1], &one.inode) && parse_number(fields[2], &one.changed) &&
                         fields[5].starts_with('/') && fields[3].find('/') == std::string_view::npos;
    if (!is_line || paths.size() >= kMaxPaths) return invalid("paths: invalid line '{}'", printable(line));
    one.is_written = fields[0] == "w";
    one.probe = fields[3];
    one.key = fields[4];
    one.path = fields[5];
    paths.push_back(std::move(one));
  }
  return paths;
}

ControlMessage to_message(const NodeView& view, std::int64_t wall_ns) {
  ControlMessage message{"view", {}};
  // One line per path, even if empty.
  std::string problems;
  for (const std::string& problem : view.problems) problems += printable(problem.substr(0, 200)) + "\n";
  return message.with("problems", problems)
      .with("local", bounded(view.local))
      .with("local_free", static_cast<std::int64_t>(view.local_free.value))
      .with("memory", std::int64_t{view.is_memory})
      .with("wall_ns", wall_ns);
}

Result<NodeView> parse_view(const ControlMessage& message, std::int64_t* wall_ns) {
  FieldReader fields(message);
  NodeView view;
  for (std::string_view line : split(message.text("problems"), '\n')) {
    if (view.problems.size() < kMaxPaths) view.problems.push_back(bounded(line));
  }
  view.problems.pop_back();  // after the last line end
  view.local = fields.text("local");
  view.local_free = {static_cast<std::uint64_t>(fields.number("local_free", INT64_MAX))};
  view.is_memory = fields.flag("memory");
  *wall_ns = fields.number("wall_ns", INT64_MAX);
  if (!fields.status().ok()) return fields.status();
  return view;
}

std::string to_lines(const std::vector<netcheck::Route>& ways) {
  std::string lines;
  for (const netcheck::Route& way : ways) lines += format("{} {}\n", way.to.value, way.address);
  return lines;
}

Result<std::vector<netcheck::Route>> parse_targets(std::string_view lines) {
  std::vector<netcheck::Route> ways;
  for (std::string_view line : split(lines, '\n')) {
    if (line.empty()) continue;
    const std::size_t space = line.find(' ');
    std::int64_t rank = 0;
    const bool is_line = space != std::string_view::npos && parse_number(line.substr(0, space), &rank) &&
                         rank >= 0 && rank <= 1'000'000;
    if (!is_line || ways.size() >= kMaxWays) return invalid("ways: invalid line '{}'", printable(line));
    ways.push_back({.to = Rank(static_cast<int>(rank)), .address = std::string(line.substr(space + 1))});
  }
  return ways;
}

}  // namespace stoker::netcheck
