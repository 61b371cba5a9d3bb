#include "rank/member/joining.h"

#include <csignal>
#include <iterator>
#include <poll.h>
#include <unistd.h>

#include "net/world.h"
#include "rank/member/program.h"

namespace stoker::rank {

namespace {

using namespace std::chrono_literals;

// The port where the ranks meet. `problem` says why there is none.
Result<net::PortReservation> meeting_port(const Invitation& invitation, std::string* problem) {
  const bool is_below = invitation.role == Role::torchrun_rank;
  const std::string_view name = is_below ? kPortVariable : "MASTER_PORT";
  const bool is_node = invitation.role == Role::node;
  const std::string wish = is_node ? "" : environment_value(std::string(name)).value_or("");
  std::int64_t port = 0;
  if (!wish.empty() && (!parse_number(wish, &port) || port < 1 || port > 65535)) {
    return invalid("MASTER_PORT: '{}' is not a port", printable(wish));
  }
  const auto range = net::parse_port_range(environment_value(std::string(kPortsVariable)).value_or(""));
  const auto seed = static_cast<std::uint64_t>(::getpid()) * 7919;
  auto reserved = wish.empty() ? net::PortReservation::find(seed, range)
                               : net::PortReservation::take(static_cast<std::uint16_t>(port));
  if (reserved.ok()) return std::move(*reserved);
  *problem = wish.empty() ? reserved.status().to_string()
                          : format("{} (MASTER_PORT; left out, the run takes a free one)",
                                   reserved.status().message());
  return net::PortReservation();
}

// The welcome, and in `joined` what came with it; nothing when there will be none.
std::optional<net::Message> await_answer(Joined& joined, SignalFd& signals, Deadline deadline) {
  joined.exit = {3, 0};  // unavailable: refused, or the run ended before all ranks had come
  while (!deadline.passed() && !joined.run.is_closed()) {
    pollfd waiting[] = {{joined.run.fd(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    ::poll(waiting, 2, deadline.poll_ms());
    if (const auto signal = signals.take();
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
      joined.early.assign(std::next(message), messages->end());
      return std::move(*message);
    }
  }
  return std::nullopt;
}

}  // namespace

Result<Joined> join_run(const Invitation& invitation, SignalFd& signals) {
  Joined joined;
  net::Hello hello;
  hello.rank = invitation.place.rank;
  hello.world_size = invitation.place.world_size;
  hello.host = net::host_name();
  // Several nodes of Slurm may share a host, and its name for one need not be the kernel's.
  if (invitation.is_in_step) hello.node = environment_value("SLURMD_NODENAME").value_or("");
  hello.pid = ::getpid();
  if (const Status fits = check_program(invitation, current_environment()); !fits.ok())
    hello.problem = fits.message();
  if (hello.rank.value == 0) {
    OK_OR_RETURN(port, meeting_port(invitation, &hello.problem));
    joined.port = std::move(port);
    hello.port = joined.port.port();
  }
  const Deadline deadline = Deadline::after(invitation.start_limit + 5s);
  OK_OR_RETURN(channel, net::join(invitation.world, hello, deadline));
  joined.run = std::move(channel);
  const auto answer = await_answer(joined, signals, deadline);
  if (!answer) return joined;
  joined.grace = std::chrono::duration_cast<Duration>(Seconds(answer->number("grace_s").value_or(30)));
  joined.rendezvous =
      Rendezvous{std::string(answer->text("address")), static_cast<int>(answer->integer("port").value_or(0))};
  return joined;
}

}  // namespace stoker::rank
