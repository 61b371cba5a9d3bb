#include "net/world.h"

#include <algorithm>
#include <cerrno>
#include <linux/sockios.h>
#include <list>
#include <optional>
#include <set>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "net/seal.h"

namespace stoker::net {
namespace {

// Strangers may not take all our descriptors: beyond this many silent connections the oldest one goes.
constexpr std::size_t kMostStrangers = 256;
constexpr std::chrono::seconds kHelloLimit{10};

std::string who(const Hello& hello) {
  return format("rank {} ({}, process {})", hello.rank.value, printable(place_name(hello)), hello.pid);
}

}  // namespace

std::string place_name(const Hello& hello) { return hello.node.empty() ? hello.host : hello.node; }

Message to_message(const Hello& hello) {
  Message message{"hello", {}};
  message.with("rank", std::int64_t{hello.rank.value});
  message.with("world_size", std::int64_t{hello.world_size.value})
      .with("host", hello.host)
      .with("node", hello.node)
      .with("pid", hello.pid);
  message.with("address", hello.address).with("via", hello.via).with("port", std::int64_t{hello.port});
  message.with("problem", hello.problem);
  return message;
}

Result<Hello> parse_hello(const Message& message) {
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
  OK_OR_RETURN(rank, number("rank", 1'000'000));
  OK_OR_RETURN(size, number("world_size", 1'000'000));
  OK_OR_RETURN(pid, number("pid", 1LL << 32));
  OK_OR_RETURN(port, number("port", 65535));
  hello.rank = Rank(static_cast<int>(rank));
  hello.world_size = WorldSize(static_cast<int>(size));
  hello.pid = pid;
  hello.port = static_cast<int>(port);
  return hello;
}

Status Roster::admit(const Hello& hello) {
  if (hello.world_size != size_) {
    return invalid("{}: is in a world of {}, this run has {}", who(hello), hello.world_size.value,
                   size_.value)
        .cure("start all ranks by one `stoker run`, not each by its own");
  }
  if (hello.rank.value >= size_.value) {
    return invalid("{}: there are only ranks 0 to {}", who(hello), size_.value - 1);
  }
  if (const Hello* first = find(hello.rank)) {
    return invalid("{}: rank {} is there already ({}, process {})", who(hello), hello.rank.value,
                   printable(place_name(*first)), first->pid);
  }
  if (!hello.problem.empty()) return unavailable("{}: {}", who(hello), hello.problem);
  members_.emplace(hello.rank, hello);
  return {};
}

std::vector<Rank> Roster::missing() const {
  std::vector<Rank> ranks;
  for (int r = 0; r < size_.value; ++r) {
    if (!members_.contains(Rank(r))) ranks.push_back(Rank(r));
  }
  return ranks;
}

const Hello* Roster::find(Rank rank) const {
  const auto found = members_.find(rank);
  return found == members_.end() ? nullptr : &found->second;
}

class WorldServer::Impl {
 public:
  Impl(Listener listener, Fd epoll, WorldSize size, std::string secret)
      : listener_(std::move(listener)), epoll_(std::move(epoll)), roster_(size), secret_(std::move(secret)) {
    watch(listener_.fd(), EPOLLIN, EPOLL_CTL_ADD);
  }

  int fd() const { return epoll_.get(); }
  const Roster& roster() const { return roster_; }

  std::string invitation() const { return secret_ + "@" + ::stoker::join(listener_.addresses(), ","); }

  std::vector<WorldEvent> take() {
    while (Fd fd = listener_.accept()) {
      watch(fd.get(), EPOLLIN, EPOLL_CTL_ADD);
      guests_.push_back(Guest{Channel(std::move(fd)), Deadline::after(kHelloLimit), std::nullopt});
    }
    std::vector<WorldEvent> events;
    for (Guest& guest : guests_) hear(guest, &events);
    auto strangers = static_cast<std::size_t>(
        std::count_if(guests_.begin(), guests_.end(), [](const Guest& guest) { return !guest.rank; }));
    for (auto guest = guests_.begin(); guest != guests_.end();) {
      const bool is_stale = !guest->rank && (guest->hello_limit.passed() || strangers > kMostStrangers);
      const bool goes = guest->channel.is_closed() || is_stale;
      strangers -= goes && !guest->rank ? 1 : 0;
      guest = goes ? forget(guest, &events) : std::next(guest);
    }
    return events;
  }

  void send(Rank rank, const Message& message) {
    for (Guest& guest : guests_) {
      if (guest.rank == rank) deliver(guest, message);
    }
  }
  void broadcast(const Message& message) {
    for (Guest& guest : guests_) {
      if (guest.rank) deliver(guest, message);
    }
  }
  std::size_t unacknowledged(Rank rank) const {
    for (const Guest& guest : guests_) {
      int queued = 0;
      if (guest.rank == rank && ::ioctl(guest.channel.fd(), SIOCOUTQ, &queued) == 0 && queued > 0)
        return static_cast<std::size_t>(queued);
    }
    return 0;
  }

 private:
  struct Guest {
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

  void deliver(Guest& guest, const Message& message) {
    (void)guest.channel.send(message);  // a broken connection shows as `left` at the next take()
    watch(guest.channel.fd(), guest.channel.has_unsent() ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
  }

  void hear(Guest& guest, std::vector<WorldEvent>* events) {
    if (guest.channel.has_unsent()) {
      (void)guest.channel.flush();
      if (!guest.channel.has_unsent()) watch(guest.channel.fd(), EPOLLIN, EPOLL_CTL_MOD);
    }
    auto messages = guest.channel.receive();
    if (!messages.ok()) {
      guest.refused = true;
      guest.hello_limit = Deadline::after(Duration::zero());
      if (guest.rank) forget_rank(guest, events);
      return;
    }
    for (Message& message : *messages) {
      if (guest.refused) return;
      if (guest.rank) {
        events->push_back({WorldEvent::Kind::message, *guest.rank, {}, std::move(message), {}});
      } else {
        greet(guest, message, events);
      }
    }
  }

  void greet(Guest& guest, const Message& message, std::vector<WorldEvent>* events) {
    auto hello = parse_hello(message);
    const Status admitted = hello.ok() ? admit(message, *hello) : cancelled("{}", hello.status().message());
    if (admitted.ok()) {
      guest.rank = hello->rank;
      events->push_back({WorldEvent::Kind::joined, hello->rank, *hello, {}, {}});
      return;
    }
    guest.refused = true;
    guest.hello_limit = Deadline::after(std::chrono::milliseconds(200));  // time to read why
    Message answer{"refused", {}};
    deliver(guest, answer.with("why", std::string(admitted.to_string())));
    if (admitted.code() != Code::cancelled) {
      events->push_back({WorldEvent::Kind::refused, hello->rank, *hello, {}, admitted.to_string()});
    }
  }

  // Cancelled for a stranger: the run hears nothing of it. A hello counts once, so that to record one and
  // send it again is of no use.
  Status admit(const Message& message, const Hello& hello) {
    if (!is_sealed(message, secret_)) {
      return cancelled("{}: does not know the secret of this run", who(hello));
    }
    if (!nonces_.emplace(message.text("nonce")).second) return cancelled("{}: said this before", who(hello));
    return roster_.admit(hello);
  }

  void forget_rank(Guest& guest, std::vector<WorldEvent>* events) {
    events->push_back({WorldEvent::Kind::left, *guest.rank, {}, {}, {}});
    guest.rank.reset();
  }

  std::list<Guest>::iterator forget(std::list<Guest>::iterator guest, std::vector<WorldEvent>* events) {
    if (guest->rank) forget_rank(*guest, events);
    return guests_.erase(guest);  // closing the descriptor takes it out of epoll
  }

  Listener listener_;
  Fd epoll_;
  Roster roster_;
  const std::string secret_;
  std::set<std::string> nonces_;  // of all that knew the secret
  std::list<Guest> guests_;
};

Result<WorldServer> WorldServer::listen(WorldSize size, std::string secret, Reach reach) {
  OK_OR_RETURN(listener, Listener::open(reach));
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
std::vector<WorldEvent> WorldServer::take() { return impl_->take(); }
void WorldServer::send(Rank rank, const Message& message) { impl_->send(rank, message); }
const Roster& WorldServer::roster() const { return impl_->roster(); }
void WorldServer::broadcast(const Message& message) { impl_->broadcast(message); }
std::size_t WorldServer::unacknowledged(Rank rank) const { return impl_->unacknowledged(rank); }

Result<Channel> join(std::string_view invitation, Hello hello, Deadline deadline) {
  const std::size_t at = invitation.find('@');
  if (at == std::string_view::npos)
    return invalid("invitation '{}': not <secret>@<addresses>", printable(invitation));
  const std::string_view secret = invitation.substr(0, at);
  std::vector<std::string> addresses;
  for (std::string_view address : split(invitation.substr(at + 1), ',')) addresses.emplace_back(address);
  OK_OR_RETURN(channel, Channel::connect_any(addresses, deadline));
  hello.address = channel.own_address();
  hello.via = channel.peer_address();
  RETURN_IF_ERROR(channel.send(sealed(to_message(hello), secret)));
  return std::move(channel);
}

}  // namespace stoker::net
