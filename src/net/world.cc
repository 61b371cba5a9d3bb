#include "net/world.h"

#include <algorithm>
#include <cerrno>
#include <linux/sockios.h>
#include <list>
#include <optional>
#include <set>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "net/message_auth.h"

namespace stoker::net {
namespace {

// Limits the descriptors of unauthenticated connections: beyond this number the oldest is closed.
constexpr std::size_t kMaxUnauthenticated = 256;
constexpr std::chrono::seconds kHelloLimit{10};

std::string rank_text(const Hello& hello) {
  return format("rank {} ({}, process {})", hello.rank.value, printable(display_host(hello)), hello.pid);
}

}  // namespace

std::string display_host(const Hello& hello) { return hello.node.empty() ? hello.host : hello.node; }

ControlMessage to_message(const Hello& hello) {
  ControlMessage message{"hello", {}};
  message.with("rank", std::int64_t{hello.rank.value});
  message.with("world_size", std::int64_t{hello.world_size.value})
      .with("host", hello.host)
      .with("node", hello.node)
      .with("pid", hello.pid);
  message.with("address", hello.address).with("via", hello.via).with("port", std::int64_t{hello.port});
  message.with("problem", hello.problem);
  return message;
}

Result<Hello> parse_hello(const ControlMessage& message) {
  if (message.kind != "hello") return invalid("hello: got '{}' instead", printable(message.kind));
  Hello hello;
  hello.host = message.text("host");
  hello.node = message.text("node");
  hello.address = message.text("address");
  hello.via = message.text("via");
  hello.problem = message.text("problem");
  const auto number = [&](std::string_view name, std::int64_t most) -> Result<std::int64_t> {
    const auto value = message.integer(name);
    if (!value || *value < 0 || *value > most)
      return invalid("hello: {} is '{}'", name, printable(message.text(name)));
    return *value;
  };
  STOKER_ASSIGN_OR_RETURN(rank, number("rank", 1'000'000));
  STOKER_ASSIGN_OR_RETURN(size, number("world_size", 1'000'000));
  STOKER_ASSIGN_OR_RETURN(pid, number("pid", 1LL << 32));
  STOKER_ASSIGN_OR_RETURN(port, number("port", 65535));
  hello.rank = Rank(static_cast<int>(rank));
  hello.world_size = WorldSize(static_cast<int>(size));
  hello.pid = pid;
  hello.port = static_cast<int>(port);
  return hello;
}

Status RankRegistry::admit(const Hello& hello) {
  if (hello.world_size != size_) {
    return invalid("{}: was started with a world size of {}, this run has {}", rank_text(hello),
                   hello.world_size.value, size_.value)
        .cure("start all ranks with a single `stoker run`");
  }
  if (hello.rank.value >= size_.value) {
    return invalid("{}: there are only ranks 0 to {}", rank_text(hello), size_.value - 1);
  }
  if (const Hello* first = find(hello.rank)) {
    return invalid("{}: rank {} already exists ({}, process {})", rank_text(hello), hello.rank.value,
                   printable(display_host(*first)), first->pid);
  }
  if (!hello.problem.empty()) return unavailable("{}: {}", rank_text(hello), hello.problem);
  members_.emplace(hello.rank, hello);
  return {};
}

std::vector<Rank> RankRegistry::missing() const {
  std::vector<Rank> ranks;
  for (int r = 0; r < size_.value; ++r) {
    if (!members_.contains(Rank(r))) ranks.push_back(Rank(r));
  }
  return ranks;
}

const Hello* RankRegistry::find(Rank rank) const {
  const auto found = members_.find(rank);
  return found == members_.end() ? nullptr : &found->second;
}

class WorldServer::Impl {
 public:
  Impl(Listener listener, Fd epoll, WorldSize size, std::string secret)
      : listener_(std::move(listener)),
        epoll_(std::move(epoll)),
        registry_(size),
        secret_(std::move(secret)) {
    watch(listener_.fd(), EPOLLIN, EPOLL_CTL_ADD);
  }

  int fd() const { return epoll_.get(); }
  const RankRegistry& registry() const { return registry_; }

  std::string invitation() const { return secret_ + "@" + ::stoker::join(listener_.addresses(), ","); }

  std::vector<WorldEvent> poll_events() {
    while (Fd fd = listener_.accept()) {
      watch(fd.get(), EPOLLIN, EPOLL_CTL_ADD);
      connections_.push_back(Connection{Channel(std::move(fd)), Deadline::after(kHelloLimit), std::nullopt});
    }
    std::vector<WorldEvent> events;
    for (Connection& connection : connections_) read_messages(connection, &events);
    auto unauthenticated = static_cast<std::size_t>(
        std::count_if(connections_.begin(), connections_.end(),
                      [](const Connection& connection) { return !connection.rank; }));
    for (auto connection = connections_.begin(); connection != connections_.end();) {
      const bool is_stale =
          !connection->rank && (connection->hello_limit.passed() || unauthenticated > kMaxUnauthenticated);
      const bool goes = connection->channel.is_closed() || is_stale;
      unauthenticated -= goes && !connection->rank ? 1 : 0;
      connection = goes ? remove_connection(connection, &events) : std::next(connection);
    }
    return events;
  }

  void send(Rank rank, const ControlMessage& message) {
    for (Connection& connection : connections_) {
      if (connection.rank == rank) send_to(connection, message);
    }
  }
  void broadcast(const ControlMessage& message) {
    for (Connection& connection : connections_) {
      if (connection.rank) send_to(connection, message);
    }
  }
  std::size_t unacknowledged(Rank rank) const {
    for (const Connection& connection : connections_) {
      int queued = 0;
      if (connection.rank == rank && ::ioctl(connection.channel.fd(), SIOCOUTQ, &queued) == 0 && queued > 0)
        return static_cast<std::size_t>(queued);
    }
    return 0;
  }

 private:
  struct Connection {
    Channel channel;
    Deadline hello_limit;
    std::optional<Rank> rank;  // set once admitted
    bool refused = false;
  };

  void watch(int fd, std::uint32_t what, int how) {
    epoll_event event{};
    event.events = what;
    event.data.fd = fd;
    ::epoll_ctl(epoll_.get(), how, fd, &event);
  }

  void send_to(Connection& connection, const ControlMessage& message) {
    (void)connection.channel.send(
        message);  // a broken connection is reported as `left` by the next poll_events()
    watch(connection.channel.fd(), connection.channel.has_unsent() ? EPOLLIN | EPOLLOUT : EPOLLIN,
          EPOLL_CTL_MOD);
  }

  void read_messages(Connection& connection, std::vector<WorldEvent>* events) {
    if (connection.channel.has_unsent()) {
      (void)connection.channel.flush();
      if (!connection.channel.has_unsent()) watch(connection.channel.fd(), EPOLLIN, EPOLL_CTL_MOD);
    }
    auto messages = connection.channel.receive();
    if (!messages.ok()) {
      connection.refused = true;
      connection.hello_limit = Deadline::after(Duration::zero());
      if (connection.rank) remove_rank(connection, events);
      return;
    }
    for (ControlMessage& message : *messages) {
      if (connection.refused) return;
      if (connection.rank) {
        events->push_back({WorldEvent::Kind::message, *connection.rank, {}, std::move(message), {}});
      } else {
        handle_hello(connection, message, events);
      }
    }
  }

  void handle_hello(Connection& connection, const ControlMessage& message, std::vector<WorldEvent>* events) {
    auto hello = parse_hello(message);
    const Status admitted = hello.ok() ? admit(message, *hello) : cancelled("{}", hello.status().message());
    if (admitted.ok()) {
      connection.rank = hello->rank;
      events->push_back({WorldEvent::Kind::joined, hello->rank, *hello, {}, {}});
      return;
    }
    connection.refused = true;
    connection.hello_limit =
        Deadline::after(std::chrono::milliseconds(200));  // time for the client to read the reason
    ControlMessage answer{"refused", {}};
    send_to(connection, answer.with("why", std::string(admitted.to_string())));
    if (admitted.code() != Code::cancelled) {
      events->push_back({WorldEvent::Kind::refused, hello->rank, *hello, {}, admitted.to_string()});
    }
  }

  // Cancelled for an unauthenticated hello, which causes no event. A nonce is accepted once, so a recorded
  // hello cannot be replayed.
  Status admit(const ControlMessage& message, const Hello& hello) {
    if (!is_authentic(message, secret_)) {
      return cancelled("{}: has the wrong secret for this run", rank_text(hello));
    }
    if (!nonces_.emplace(message.text("nonce")).second)
      return cancelled("{}: repeated message", rank_text(hello));
    return registry_.admit(hello);
  }

  void remove_rank(Connection& connection, std::vector<WorldEvent>* events) {
    events->push_back({WorldEvent::Kind::left, *connection.rank, {}, {}, {}});
    connection.rank.reset();
  }

  std::list<Connection>::iterator remove_connection(std::list<Connection>::iterator connection,
                                                    std::vector<WorldEvent>* events) {
    if (connection->rank) remove_rank(*connection, events);
    return connections_.erase(connection);  // closing the descriptor removes it from epoll
  }

  Listener listener_;
  Fd epoll_;
  RankRegistry registry_;
  const std::string secret_;
  std::set<std::string> nonces_;  // of all authenticated hellos
  std::list<Connection> connections_;
};

Result<WorldServer> WorldServer::listen(WorldSize size, std::string secret, ListenScope reach) {
  STOKER_ASSIGN_OR_RETURN(listener, Listener::open(reach));
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return posix_error("epoll", errno);
  return WorldServer(std::make_unique<Impl>(std::move(listener), std::move(epoll), size, std::move(secret)));
}

WorldServer::WorldServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WorldServer::WorldServer(WorldServer&&) noexcept = default;
WorldServer& WorldServer::operator=(WorldServer&&) noexcept = default;
WorldServer::~WorldServer() = default;

int WorldServer::fd() const { return impl_->fd(); }
std::string WorldServer::invitation() const { return impl_->invitation(); }
std::vector<WorldEvent> WorldServer::poll_events() { return impl_->poll_events(); }
void WorldServer::send(Rank rank, const ControlMessage& message) { impl_->send(rank, message); }
const RankRegistry& WorldServer::registry() const { return impl_->registry(); }
void WorldServer::broadcast(const ControlMessage& message) { impl_->broadcast(message); }
std::size_t WorldServer::unacknowledged(Rank rank) const { return impl_->unacknowledged(rank); }

Result<Channel> join(std::string_view invitation, Hello hello, Deadline deadline) {
  const std::size_t at = invitation.find('@');
  if (at == std::string_view::npos)
    return invalid("invitation '{}': not <secret>@<addresses>", printable(invitation));
  const std::string_view secret = invitation.substr(0, at);
  std::vector<std::string> addresses;
  for (std::string_view address : split(invitation.substr(at + 1), ',')) addresses.emplace_back(address);
  STOKER_ASSIGN_OR_RETURN(channel, Channel::connect_any(addresses, deadline));
  hello.address = channel.local_address();
  hello.via = channel.peer_address();
  STOKER_RETURN_IF_ERROR(channel.send(signed_message(to_message(hello), secret)));
  return std::move(channel);
}

}  // namespace stoker::net
