#include "netcheck/probe/peer.h"

#include <algorithm>
#include <cerrno>
#include <linux/sockios.h>
#include <list>
#include <map>
#include <optional>
#include <poll.h>
#include <set>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/stopwatch.h"
#include "base/thread.h"
#include "net/message_auth.h"

namespace stoker::netcheck {
namespace {

using namespace std::chrono_literals;

constexpr Duration kCallLimit = 10s;  // a connection without a message is closed after this time
constexpr std::size_t kMaxUnauthenticated = 256;
constexpr int kTickMs = 100;
constexpr std::size_t kBuffer = 256 * 1024;
constexpr std::int64_t kMaxBytes = 64 << 20;
constexpr std::int64_t kFirstBytes = 64 << 10;
constexpr std::int64_t kLastBytes = 32 << 20;
constexpr double kLongEnough = 0.02;  // seconds: long enough to measure a link
constexpr int kRoundTrips = 8;

double since(MonoTime start) { return Seconds(mono_now() - start).count(); }

net::ControlMessage make_call(const Caller& caller, Rank to, std::string_view purpose) {
  net::ControlMessage message{"call", {}};
  message.with("from", std::int64_t{caller.rank.value}).with("to", std::int64_t{to.value});
  message.with("purpose", std::string(purpose));
  return signed_message(std::move(message), caller.secret);
}

Status stopped() { return cancelled("stopped"); }

// The next message of the peer.
Result<net::ControlMessage> await_message(net::Channel& channel, Deadline deadline,
                                          const KeepGoing& keep_going) {
  for (;;) {
    STOKER_ASSIGN_OR_RETURN(messages, channel.receive());
    if (!messages.empty()) return std::move(messages.front());
    if (channel.is_closed()) return unavailable("the other end closed the connection");
    if (deadline.passed()) return timeout("no answer");
    if (!keep_going()) return stopped();
    pollfd waiting{channel.fd(), POLLIN, 0};
    ::poll(&waiting, 1, deadline.poll_ms(kTickMs));
  }
}

}  // namespace

class PeerServer::Impl {
 public:
  Impl(Rank own, std::string secret, net::Listener listener)
      : own_(own), secret_(std::move(secret)), listener_(std::move(listener)) {
    thread_ = Thread([this](const StopToken& stop) {
      while (!stop.stop_requested()) poll_once();
    });
  }

  const std::vector<std::string>& addresses() const { return listener_.addresses(); }

  Result<Fd> accept_ring_connection(Rank from, Deadline deadline, const KeepGoing& keep_going) {
    MutexLock lock(mutex_);
    for (;;) {
      if (const auto found = rings_.find(from); found != rings_.end()) {
        Fd fd = std::move(found->second);
        rings_.erase(found);
        return fd;
      }
      if (deadline.passed()) return timeout("rank {}: did not connect", from.value);
      if (!keep_going()) return stopped();
      ring_arrived_.wait(mutex_, Deadline::at(std::min(deadline.time(), mono_now() + Duration(100ms))));
    }
  }

 private:
  struct Connection {
    net::Channel channel;
    Deadline limit;                   // to prove its identity
    std::optional<Rank> from;         // set after proof
    std::int64_t bytes_expected = 0;  // bytes of a stream still expected
    std::int64_t bytes_received = 0;
    bool is_done = false;
  };

  void poll_once() {
    std::vector<pollfd> waiting = {{listener_.fd(), POLLIN, 0}};
    for (const Connection& connection : connections_) {
      waiting.push_back({connection.channel.fd(),
                         static_cast<short>(connection.channel.has_unsent() ? POLLIN | POLLOUT : POLLIN), 0});
    }
    ::poll(waiting.data(), waiting.size(), kTickMs);
    while (Fd fd = listener_.accept()) {
      connections_.push_back({.channel = net::Channel(std::move(fd)), .limit = Deadline::after(kCallLimit)});
    }
    for (Connection& connection : connections_) read_messages(connection);
    auto unauthenticated = static_cast<std::size_t>(
        std::count_if(connections_.begin(), connections_.end(),
                      [](const Connection& connection) { return !connection.from; }));
    std::erase_if(connections_, [&](const Connection& connection) {
      if (connection.from) return connection.is_done;
      // Drops the oldest first: a new connection may identify itself with its next packet.
      const bool is_stale =
          connection.is_done || connection.limit.passed() || unauthenticated > kMaxUnauthenticated;
      if (is_stale) --unauthenticated;
      return is_stale;
    });
  }

  void read_messages(Connection& connection) {
    if (connection.channel.has_unsent()) (void)connection.channel.flush();
    if (connection.bytes_expected > 0) return receive_stream(connection);
    const auto messages = connection.channel.receive();
    connection.is_done = !messages.ok() || connection.channel.is_closed();
    if (!messages.ok()) return;
    for (const net::ControlMessage& message : *messages) {
      if (!connection.from) {
        handle_call(connection, message);
      } else if (message.kind == "ping") {
        (void)connection.channel.send({"pong", {}});
      } else if (message.kind == "take") {
        begin_stream(connection, message);
      }
      if (connection.is_done) return;
    }
  }

  void handle_call(Connection& connection, const net::ControlMessage& message) {
    const auto from = message.integer("from");
    connection.is_done = true;
    if (message.kind != "call" || !is_authentic(message, secret_) || message.integer("to") != own_.value ||
        !from || *from < 0 || *from > 1'000'000 || !nonces_.emplace(message.text("nonce")).second)
      return;
    connection.is_done = false;
    connection.from = Rank(static_cast<int>(*from));
    (void)connection.channel.send({"ready", {}});
    if (message.text("purpose") != "ring") return;
    MutexLock lock(mutex_);
    rings_.insert_or_assign(*connection.from, std::move(connection.channel).release());
    ring_arrived_.notify_all();
    connection.is_done = true;
  }

  void begin_stream(Connection& connection, const net::ControlMessage& message) {
    const auto bytes = message.integer("bytes");
    connection.is_done = !bytes || *bytes < 1 || *bytes > kMaxBytes;
    if (connection.is_done) return;
    connection.bytes_expected = *bytes;
    connection.bytes_received = 0;
    (void)connection.channel.send({"ready", {}});
  }

  void receive_stream(Connection& connection) {
    while (connection.bytes_expected > 0) {
      const auto wanted = std::min(buffer_.size(), static_cast<std::size_t>(connection.bytes_expected));
      const ssize_t n = ::recv(connection.channel.fd(), buffer_.data(), wanted, MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) {
        connection.is_done = true;
        return;
      }
      connection.bytes_expected -= n;
      connection.bytes_received += n;
    }
    net::ControlMessage got{"got", {}};
    (void)connection.channel.send(got.with("bytes", connection.bytes_received));
  }

  // Constant after construction.
  const Rank own_;
  const std::string secret_;
  // Used by the thread only.
  net::Listener listener_;
  std::list<Connection> connections_;
  std::set<std::string> nonces_;
  std::vector<char> buffer_ = std::vector<char>(kBuffer);

  Mutex mutex_;
  Condition ring_arrived_;
  std::map<Rank, Fd> rings_ STOKER_GUARDED_BY(mutex_);
  Thread thread_;  // last member: it ends before the members it uses
};

Result<PeerServer> PeerServer::start(Rank own, std::string secret, net::ListenScope reach) {
  STOKER_ASSIGN_OR_RETURN(listener, net::Listener::open(reach));
  return PeerServer(std::make_unique<Impl>(own, std::move(secret), std::move(listener)));
}
PeerServer::PeerServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PeerServer::PeerServer(PeerServer&&) noexcept = default;
PeerServer& PeerServer::operator=(PeerServer&&) noexcept = default;
PeerServer::~PeerServer() = default;

const std::vector<std::string>& PeerServer::addresses() const { return impl_->addresses(); }
Result<Fd> PeerServer::accept_ring_connection(Rank from, Deadline deadline, const KeepGoing& keep_going) {
  return impl_->accept_ring_connection(from, deadline, keep_going);
}

namespace {

// One connection test: first the kernel answers, then the process.
struct RouteProbe {
  Route* way = nullptr;
  MonoTime start;
  Deadline limit = Deadline::never();
  std::optional<net::PendingConnection> dial;
  std::optional<net::Channel> channel;
  bool is_welcome = false;
  int pongs = 0;
  MonoTime asked;

  bool is_over() const { return !dial && !channel; }
  int fd() const { return dial ? dial->fd() : channel->fd(); }
  void end(std::string error) {
    way->error = std::move(error);
    dial.reset();
    channel.reset();
  }
};

// "10.0.0.2:4000: connection refused" without the address, which is reported separately.
std::string reason(const Status& status, const std::string& address) {
  std::string_view text = status.message();
  if (text.starts_with(address + ": ")) text.remove_prefix(address.size() + 2);
  return std::string(text);
}

void begin(RouteProbe& probe, const RouteTimeouts& limits) {
  probe.start = mono_now();
  probe.limit = Deadline::after(limits.connect);
  auto dial = net::PendingConnection::start(probe.way->address);
  if (dial.ok()) probe.dial = std::move(*dial);
  if (!dial.ok()) probe.end(reason(dial.status(), probe.way->address));
}

void connected(RouteProbe& probe, const Caller& caller, const RouteTimeouts& limits) {
  auto channel = std::move(*probe.dial).finish();
  probe.dial.reset();
  if (!channel.ok()) return probe.end(reason(channel.status(), probe.way->address));
  probe.way->connect_s = since(probe.start);
  probe.channel = std::move(*channel);
  probe.limit = Deadline::after(limits.answer);
  (void)probe.channel->send(make_call(caller, probe.way->to, "echo"));
}

void read_messages(RouteProbe& probe) {
  const auto messages = probe.channel->receive();
  if (!messages.ok()) return probe.end("accepts the connection, but is not stoker");
  for (std::size_t i = 0; i < messages->size(); ++i) {
    if (probe.is_welcome) {
      const double trip = since(probe.asked);
      double& best = probe.way->round_trip_s;
      best = probe.pongs == 0 ? trip : std::min(best, trip);
      ++probe.pongs;
    }
    probe.is_welcome = true;
    if (probe.pongs == kRoundTrips) return probe.end("");
    probe.asked = mono_now();
    (void)probe.channel->send({"ping", {}});
  }
  if (probe.channel->is_closed()) probe.end("accepts the connection and closes it");
}

void check_deadline(RouteProbe& probe, const RouteTimeouts& limits) {
  if (probe.is_over() || !probe.limit.passed()) return;
  probe.end(probe.dial ? format("no answer within {}", rounded_duration(limits.connect))
                       : format("accepts the connection, but sends nothing for {}",
                                rounded_duration(limits.answer)));
}

}  // namespace

Result<std::vector<Route>> probe_routes(std::vector<Route> ways, const Caller& caller,
                                        const RouteTimeouts& limits) {
  std::vector<RouteProbe> probes;
  for (Route& way : ways) probes.push_back({.way = &way});
  for (RouteProbe& probe : probes) begin(probe, limits);
  for (;;) {
    std::vector<pollfd> waiting;
    std::vector<RouteProbe*> whose;
    for (RouteProbe& probe : probes) {
      if (probe.is_over()) continue;
      waiting.push_back({probe.fd(), static_cast<short>(probe.dial ? POLLOUT : POLLIN), 0});
      whose.push_back(&probe);
    }
    if (waiting.empty()) return ways;
    if (!caller.keep_going()) return stopped();
    ::poll(waiting.data(), waiting.size(), kTickMs);
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents == 0) {
        check_deadline(*whose[i], limits);
      } else if (whose[i]->dial) {
        connected(*whose[i], caller, limits);
      } else {
        read_messages(*whose[i]);
      }
    }
  }
}

namespace {

// Sends `bytes` bytes and waits until the peer has counted them. Returns the number that arrived before an
// early end.
Status transfer(net::Channel& channel, std::int64_t bytes, const Caller& caller, Deadline deadline) {
  const std::vector<char> block(kBuffer, 'x');
  std::int64_t left = bytes;
  while (left > 0) {
    const auto size = std::min(block.size(), static_cast<std::size_t>(left));
    const ssize_t n = ::send(channel.fd(), block.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) left -= n;
    if (n >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return posix_error("connection", errno);
    if (deadline.passed()) break;
    if (!caller.keep_going()) return stopped();
    pollfd waiting{channel.fd(), POLLOUT, 0};
    ::poll(&waiting, 1, deadline.poll_ms(kTickMs));
  }
  const auto answer = left > 0 ? Result<net::ControlMessage>(timeout(""))
                               : await_message(channel, deadline, caller.keep_going);
  if (answer.ok()) return {};
  if (answer.status().code() != Code::timeout) return answer.status();
  int queued = 0;
  ::ioctl(channel.fd(), SIOCOUTQ, &queued);
  return timeout("stalled: {} of {} bytes arrived", bytes - left - queued, bytes);
}

Result<net::Channel> call(Rank to, std::string_view purpose, const std::string& address, const Caller& caller,
                          Deadline deadline) {
  STOKER_ASSIGN_OR_RETURN(channel, net::Channel::connect(address, deadline));
  STOKER_RETURN_IF_ERROR(channel.send(make_call(caller, to, purpose)));
  STOKER_ASSIGN_OR_RETURN(answer, await_message(channel, deadline, caller.keep_going));
  if (answer.kind != "ready") return corrupt("answers '{}'", printable(answer.kind));
  return std::move(channel);
}

}  // namespace

Result<FlowResult> measure_bandwidth(Rank to, const std::string& address, const Caller& caller,
                                     Duration limit) {
  FlowResult flow{.to = to};
  const auto failed = [&](const Status& status) -> Result<FlowResult> {
    if (status.code() == Code::cancelled) return status;
    flow.error = status.code() == Code::timeout
                     ? format("{} within {}", status.message(), rounded_duration(limit))
                     : std::string(status.message());
    return flow;
  };
  auto channel = call(to, "flow", address, caller, Deadline::after(limit));
  if (!channel.ok()) return failed(channel.status());
  for (std::int64_t bytes = kFirstBytes; bytes <= kLastBytes; bytes *= 8) {
    const Deadline deadline = Deadline::after(limit);
    net::ControlMessage take{"take", {}};
    Status status = channel->send(take.with("bytes", bytes));
    if (status.ok()) status = await_message(*channel, deadline, caller.keep_going).status();
    const MonoTime start = mono_now();
    if (status.ok()) status = transfer(*channel, bytes, caller, deadline);
    if (!status.ok()) return failed(status);
    const FlowResult last{.to = to, .bytes = static_cast<std::uint64_t>(bytes), .seconds = since(start)};
    if (last.bytes_per_s() > flow.bytes_per_s()) flow = last;
    if (last.seconds >= kLongEnough) break;
  }
  return flow;
}

Result<Fd> connect_ring(Rank to, const std::string& address, const Caller& caller, Deadline deadline) {
  STOKER_ASSIGN_OR_RETURN(channel, call(to, "ring", address, caller, deadline));
  return std::move(channel).release();
}

}  // namespace stoker::netcheck
