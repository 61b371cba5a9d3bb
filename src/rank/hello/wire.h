// How what a rank has learnt goes to the session: as messages of net, one per fact. What comes from another
// process is read with care: unknown kinds are left aside, numbers outside their range are refused. Pure.
#pragma once

#include <vector>

#include "net/message.h"
#include "rank/hello/report.h"

namespace stoker::rank::hello {

/// The facts as several messages; own first, then interfaces and fabric.
std::vector<net::Message> to_messages(const RankFacts& facts);
/// Takes one of them in. Invalid when it is none, or makes no sense.
Status take_in(const net::Message& message, RankFacts* facts);

net::Message to_message(const net::Resolved& answer);
Result<net::Resolved> parse_resolved(const net::Message& message);
net::Message to_message(const net::Way& way);
Result<net::Way> parse_way(const net::Message& message);
net::Message to_message(const net::Flow& flow);
Result<net::Flow> parse_flow(const net::Message& message);

/// One path a line. Those with a line end or a tab in them are left out, and so is what does not fit.
std::string to_lines(const std::vector<AskedPath>& paths);
/// Invalid for a line that is none; at most 256.
Result<std::vector<AskedPath>> parse_paths(std::string_view lines);
/// `wall_ns`: this process's clock. The clock's two fields are the asker's to work out.
net::Message to_message(const NodeView& view, std::int64_t wall_ns);
Result<NodeView> parse_view(const net::Message& message, std::int64_t* wall_ns);

/// "1 10.0.0.2:4000" per line: whom to call where.
std::string to_lines(const std::vector<net::Way>& ways);
/// Invalid for a line that is not that; at most 100 000.
Result<std::vector<net::Way>> parse_lines(std::string_view lines);

}  // namespace stoker::rank::hello
