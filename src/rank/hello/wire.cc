#include "rank/hello/wire.h"

#include <algorithm>
#include <cstdint>

#include "rank/hello/facts.h"

namespace stoker::rank::hello {
namespace {

using net::Message;

constexpr std::size_t kMostEntries = 1024;  // interfaces, GPUs, ports of a host
constexpr std::size_t kMostWays = 100'000;
constexpr std::size_t kMostPaths = 256;
constexpr std::size_t kLongestPaths = 128 << 10;  // all of them, in one message
constexpr std::size_t kLongestText = 4096;

// Values may be as long as a user's environment; a frame is not.
std::string bounded(std::string_view text) { return std::string(text.substr(0, kLongestText)); }

// Reads the fields of one message; remembers the first that makes no sense.
class Fields {
 public:
  explicit Fields(const Message& message) : message_(message) {}

  std::string text(std::string_view name) const { return bounded(message_.text(name)); }
  std::int64_t number(std::string_view name, std::int64_t most) {
    const auto value = message_.integer(name);
    if (value && *value >= 0 && *value <= most) return *value;
    complain(name);
    return 0;
  }
  int count(std::string_view name, int most) { return static_cast<int>(number(name, most)); }
  bool flag(std::string_view name) { return number(name, 1) == 1; }
  double seconds(std::string_view name) {
    const auto value = message_.number(name);
    if (value && *value >= 0 && *value <= 1e6) return *value;
    complain(name);
    return 0;
  }
  std::vector<std::string> list(std::string_view name, char separator) const {
    std::vector<std::string> all;
    for (std::string_view part : split(message_.text(name), separator)) {
      if (!part.empty() && all.size() < kMostEntries) all.push_back(bounded(part));
    }
    return all;
  }
  Status status() const { return status_; }

 private:
  void complain(std::string_view name) {
    if (status_.ok())
      status_ = invalid("{}: {} is '{}'", printable(message_.kind), name, printable(message_.text(name)));
  }

  const Message& message_;
  Status status_;
};

void put(Message& message, const net::InterfaceChoice& choice, const std::string& name) {
  message.with(name, choice.chosen ? choice.chosen->address : "");
  message.with(name + "_problem", bounded(choice.problem));
}

net::InterfaceChoice choice_of(const Fields& fields, const std::string& name, const RankFacts& facts) {
  return {net::interface_with(fields.text(name), facts.interfaces), fields.text(name + "_problem")};
}

Message to_message(const net::Interface& one) {
  Message message{"interface", {}};
  return message.with("name", one.name)
      .with("address", one.address)
      .with("prefix", std::int64_t{one.prefix})
      .with("loopback", std::int64_t{one.is_loopback})
      .with("mtu", std::int64_t{one.mtu})
      .with("speed", one.speed_mbit);
}

Status take_interface(const Message& message, RankFacts* facts) {
  if (facts->interfaces.size() >= kMostEntries) return invalid("interface: more than {}", kMostEntries);
  Fields fields(message);
  net::Interface one{.name = fields.text("name"), .address = fields.text("address")};
  one.prefix = fields.count("prefix", 128);
  one.is_loopback = fields.flag("loopback");
  one.mtu = fields.count("mtu", 1 << 30);
  one.speed_mbit = fields.number("speed", 1LL << 40);
  if (fields.status().ok()) facts->interfaces.push_back(std::move(one));
  return fields.status();
}

Status take_fabric(const Message& message, RankFacts* facts) {
  if (facts->fabric.size() >= kMostEntries) return invalid("fabric: more than {}", kMostEntries);
  Fields fields(message);
  FabricPort one{.device = fields.text("device"), .port = fields.count("port", 255)};
  one.state = fields.text("state");
  one.is_active = one.state == "ACTIVE";
  if (fields.status().ok()) facts->fabric.push_back(std::move(one));
  return fields.status();
}

Status take_place(const Message& message, RankFacts* facts) {
  Fields fields(message);
  facts->node = fields.count("node", 1'000'000);
  facts->local_rank = fields.count("local_rank", 1'000'000);
  OK_OR_RETURN(cores, parse_cores(fields.text("cores")));
  facts->cores = std::move(cores);
  if (fields.flag("has_visible_gpus")) facts->visible_gpus = fields.text("visible_gpus");
  facts->gpus = fields.list("gpus", '\n');
  facts->gpu_problem = fields.text("gpu_problem");
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

std::vector<Message> to_messages(const RankFacts& facts) {
  std::vector<Message> messages;
  for (const net::Interface& one : facts.interfaces) messages.push_back(to_message(one));
  for (const FabricPort& one : facts.fabric) {
    Message message{"fabric", {}};
    message.with("device", one.device).with("port", std::int64_t{one.port}).with("state", one.state);
    messages.push_back(std::move(message));
  }
  // Last: the choices refer to the interfaces.
  Message place{"place", {}};
  place.with("node", std::int64_t{facts.node}).with("local_rank", std::int64_t{facts.local_rank});
  place.with("cores", core_text(facts.cores));
  place.with("has_visible_gpus", std::int64_t{facts.visible_gpus.has_value()});
  place.with("visible_gpus", bounded(facts.visible_gpus.value_or("")));
  place.with("gpus", ::stoker::join(facts.gpus, "\n")).with("gpu_problem", bounded(facts.gpu_problem));
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

Status take_in(const Message& message, RankFacts* facts) {
  if (message.kind == "interface") return take_interface(message, facts);
  if (message.kind == "fabric") return take_fabric(message, facts);
  if (message.kind == "place") return take_place(message, facts);
  return invalid("no fact '{}'", printable(message.kind));
}

Message to_message(const net::Resolved& answer) {
  Message message{"resolved", {}};
  return message.with("name", bounded(answer.name))
      .with("addresses", ::stoker::join(answer.addresses, ","))
      .with("seconds", answer.seconds)
      .with("reverse", answer.reverse_seconds)
      .with("error", bounded(answer.error));
}

Result<net::Resolved> parse_resolved(const Message& message) {
  Fields fields(message);
  net::Resolved answer{.name = fields.text("name"), .addresses = fields.list("addresses", ',')};
  answer.seconds = fields.seconds("seconds");
  answer.reverse_seconds = fields.seconds("reverse");
  answer.error = fields.text("error");
  if (!fields.status().ok()) return fields.status();
  return answer;
}

Message to_message(const net::Way& way) {
  Message message{"way", {}};
  return message.with("to", std::int64_t{way.to.value})
      .with("address", way.address)
      .with("error", bounded(way.error))
      .with("connect", way.connect_s)
      .with("round_trip", way.round_trip_s);
}

Result<net::Way> parse_way(const Message& message) {
  Fields fields(message);
  net::Way way{.to = Rank(fields.count("to", 1'000'000)), .address = fields.text("address")};
  way.error = fields.text("error");
  way.connect_s = fields.seconds("connect");
  way.round_trip_s = fields.seconds("round_trip");
  if (!fields.status().ok()) return fields.status();
  return way;
}

Message to_message(const net::Flow& flow) {
  Message message{"flow", {}};
  return message.with("to", std::int64_t{flow.to.value})
      .with("bytes", static_cast<std::int64_t>(flow.bytes))
      .with("seconds", flow.seconds)
      .with("error", bounded(flow.error));
}

Result<net::Flow> parse_flow(const Message& message) {
  Fields fields(message);
  net::Flow flow{.to = Rank(fields.count("to", 1'000'000))};
  flow.bytes = static_cast<std::uint64_t>(fields.number("bytes", 1LL << 40));
  flow.seconds = fields.seconds("seconds");
  flow.error = fields.text("error");
  if (!fields.status().ok()) return fields.status();
  return flow;
}

std::string to_lines(const std::vector<AskedPath>& paths) {
  std::string lines;
  std::size_t count = 0;
  for (const AskedPath& one : paths) {
    const std::string line = format("{}\t{}\t{}\t{}\t{}\t{}\n", one.is_written ? "w" : "r", one.inode,
                                    one.changed, one.probe, one.key, one.path);
    const bool is_line = std::ranges::count(line, '\t') == 5 && std::ranges::count(line, '\n') == 1;
    const bool fits = line.size() <= kLongestText && lines.size() + line.size() <= kLongestPaths;
    if (!is_line || !fits || count++ >= kMostPaths) continue;
    lines += line;
  }
  return lines;
}

Result<std::vector<AskedPath>> parse_paths(std::string_view lines) {
  std::vector<AskedPath> paths;
  for (std::string_view line : split(lines, '\n')) {
    if (line.empty()) continue;
    const auto fields = split(line, '\t');
    AskedPath one;
    const bool is_line = fields.size() == 6 && (fields[0] == "r" || fields[0] == "w") &&
                         parse_number(fields[1], &one.inode) && parse_number(fields[2], &one.changed) &&
                         fields[5].starts_with('/') && fields[3].find('/') == std::string_view::npos;
    if (!is_line || paths.size() >= kMostPaths) return invalid("paths: '{}' is none", printable(line));
    one.is_written = fields[0] == "w";
    one.probe = fields[3];
    one.key = fields[4];
    one.path = fields[5];
    paths.push_back(std::move(one));
  }
  return paths;
}

Message to_message(const NodeView& view, std::int64_t wall_ns) {
  Message message{"view", {}};
  // Every problem has its line, an empty one too.
  std::string problems;
  for (const std::string& problem : view.problems) problems += printable(problem.substr(0, 200)) + "\n";
  return message.with("problems", problems)
      .with("local", bounded(view.local))
      .with("local_free", static_cast<std::int64_t>(view.local_free.value))
      .with("memory", std::int64_t{view.is_memory})
      .with("wall_ns", wall_ns);
}

Result<NodeView> parse_view(const Message& message, std::int64_t* wall_ns) {
  Fields fields(message);
  NodeView view;
  for (std::string_view line : split(message.text("problems"), '\n')) {
    if (view.problems.size() < kMostPaths) view.problems.push_back(bounded(line));
  }
  view.problems.pop_back();  // behind the last line's end
  view.local = fields.text("local");
  view.local_free = {static_cast<std::uint64_t>(fields.number("local_free", INT64_MAX))};
  view.is_memory = fields.flag("memory");
  *wall_ns = fields.number("wall_ns", INT64_MAX);
  if (!fields.status().ok()) return fields.status();
  return view;
}

std::string to_lines(const std::vector<net::Way>& ways) {
  std::string lines;
  for (const net::Way& way : ways) lines += format("{} {}\n", way.to.value, way.address);
  return lines;
}

Result<std::vector<net::Way>> parse_lines(std::string_view lines) {
  std::vector<net::Way> ways;
  for (std::string_view line : split(lines, '\n')) {
    if (line.empty()) continue;
    const std::size_t space = line.find(' ');
    std::int64_t rank = 0;
    const bool is_line = space != std::string_view::npos && parse_number(line.substr(0, space), &rank) &&
                         rank >= 0 && rank <= 1'000'000;
    if (!is_line || ways.size() >= kMostWays) return invalid("ways: '{}' is none", printable(line));
    ways.push_back({.to = Rank(static_cast<int>(rank)), .address = std::string(line.substr(space + 1))});
  }
  return ways;
}

}  // namespace stoker::rank::hello
