// Encodes a rank's results as messages of net, one per fact, and parses them. Input from another process is
// checked: unknown kinds are skipped, numbers out of range are refused. Pure.
#pragma once

#include <vector>

#include "net/message.h"
#include "netcheck/report.h"

namespace stoker::netcheck {

/// The facts as several messages: interfaces and fabric first, then the rank's own.
std::vector<net::ControlMessage> to_messages(const RankFacts& facts);
/// Parses one of them. Invalid for other or inconsistent messages.
Status parse_fact(const net::ControlMessage& message, RankFacts* facts);

net::ControlMessage to_message(const netcheck::ResolvedName& answer);
Result<netcheck::ResolvedName> parse_resolved(const net::ControlMessage& message);
net::ControlMessage to_message(const netcheck::Route& way);
Result<netcheck::Route> parse_way(const net::ControlMessage& message);
net::ControlMessage to_message(const netcheck::FlowResult& flow);
Result<netcheck::FlowResult> parse_flow(const net::ControlMessage& message);

/// One path per line. Skips paths with a line end or a tab, and paths that do not fit.
std::string to_lines(const std::vector<CheckedPath>& paths);
/// Invalid for a malformed line; at most 256.
Result<std::vector<CheckedPath>> parse_paths(std::string_view lines);
/// `wall_ns`: this process's clock. The receiver computes the two clock fields.
net::ControlMessage to_message(const NodeView& view, std::int64_t wall_ns);
Result<NodeView> parse_view(const net::ControlMessage& message, std::int64_t* wall_ns);

/// "1 10.0.0.2:4000" per line: rank and address.
std::string to_lines(const std::vector<netcheck::Route>& ways);
/// Invalid for a malformed line; at most 100 000.
Result<std::vector<netcheck::Route>> parse_targets(std::string_view lines);

}  // namespace stoker::netcheck
