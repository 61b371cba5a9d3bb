#include "rank/member/join_run.h"

#include <csignal>
#include <iterator>
#include <poll.h>
#include <unistd.h>

#include "net/world.h"
#include "rank/member/program.h"

namespace stoker::rank {

namespace {

using namespace std::chrono_literals;

// Reserves the rendezvous port. `problem` has the reason for a failure.
Result<net::PortReservation> rendezvous_port(const RankConfig& config, std::string* problem) {
  const bool is_below = config.role == Role::torchrun_rank;
  const std::string_view name = is_below ? kPortVariable : "MASTER_PORT";
  const bool is_node = config.role == Role::node;
  const std::string wish = is_node ? "" : environment_value(std::string(name)).value_or("");
  std::int64_t port = 0;
  if (!wish.empty() && (!parse_number(wish, &port) || port < 1 || port > 65535)) {
    return invalid("MASTER_PORT: '{}' is not a port", printable(wish));
  }
  const auto range = net::parse_port_range(environment_value(std::string(kPortsVariable)).value_or(""));
  const auto seed = static_cast<std::uint64_t>(::getpid()) * 7919;
  auto reserved = wish.empty() ? net::PortReservation::find(seed, range)
                               : net::PortReservation::reserve(static_cast<std::uint16_t>(port));
  if (reserved.ok()) return std::move(*reserved);
  *problem = wish.empty()
                 ? reserved.status().to_string()
                 : format("{} (MASTER_PORT; unset it to use a free port)", reserved.status().message());
  return net::PortReservation();
}

// The welcome message; stores the messages after it in `joined`. Nothing when the rank is not accepted.
std::optional<net::ControlMessage> await_welcome(JoinResult& joined, SignalFd& signals, Deadline deadline) {
  joined.exit = {3, 0};  // unavailable: refused, or the run ended before all ranks had joined
  while (!deadline.passed() && !joined.run.is_closed()) {
    pollfd waiting[] = {{joined.run.fd(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    ::poll(waiting, 2, deadline.poll_ms());
    if (const auto signal = signals.next_signal();
        signal && (*signal == SIGTERM || *signal == SIGINT || *signal == SIGHUP)) {
      joined.exit = {0, *signal};
      return std::nullopt;
    }
    auto messages = joined.run.receive();
    if (!messages.ok()) return std::nullopt;
    for (auto message = messages->begin(); message != messages->end(); ++message) {
      if (message->kind == "refused" || message->kind == "stop") return std::nullopt;
      if (message->kind != "welcome") continue;
      joined.exit = {};
      joined.pending_messages.assign(std::next(message), messages->end());
      return std::move(*message);
    }
  }
  return std::nullopt;
}

}  // namespace

Result<JoinResult> join_run(const RankConfig& config, SignalFd& signals) {
  JoinResult joined;
  net::Hello hello;
  hello.rank = config.place.rank;
  hello.world_size = config.place.world_size;
  hello.host = net::host_name();
  // Several Slurm nodes may share a host, and Slurm's node name may differ from the host name.
  if (config.is_in_step) hello.node = environment_value("SLURMD_NODENAME").value_or("");
  hello.pid = ::getpid();
  if (const Status fits = check_program(config, current_environment()); !fits.ok())
    hello.problem = fits.message();
  if (hello.rank.value == 0) {
    STOKER_ASSIGN_OR_RETURN(port, rendezvous_port(config, &hello.problem));
    joined.port = std::move(port);
    hello.port = joined.port.port();
  }
  const Deadline deadline = Deadline::after(config.start_limit + 5s);
  STOKER_ASSIGN_OR_RETURN(channel, net::join(config.world, hello, deadline));
  joined.run = std::move(channel);
  const auto answer = await_welcome(joined, signals, deadline);
  if (!answer) return joined;
  joined.grace = std::chrono::duration_cast<Duration>(Seconds(answer->number("grace_s").value_or(30)));
  joined.rendezvous =
      Rendezvous{std::string(answer->text("address")), static_cast<int>(answer->integer("port").value_or(0))};
  return joined;
}

}  // namespace stoker::rank
