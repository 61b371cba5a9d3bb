#include "net/probe/peer.h"

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
#include "net/seal.h"

namespace stoker::net {
namespace {

using namespace std::chrono_literals;

constexpr Duration kCallLimit = 10s;  // a connection that says nothing for so long is closed
constexpr std::size_t kMostStrangers = 256;
constexpr int kTickMs = 100;
constexpr std::size_t kBuffer = 256 * 1024;
constexpr std::int64_t kMostBytes = 64 << 20;
constexpr std::int64_t kFirstBytes = 64 << 10;
constexpr std::int64_t kLastBytes = 32 << 20;
constexpr double kLongEnough = 0.02;  // seconds: then a transfer tells the speed of a link
constexpr int kRoundTrips = 8;

double since(MonoTime start) { return Seconds(mono_now() - start).count(); }

Message call_of(const Caller& caller, Rank to, std::string_view purpose) {
  Message message{"call", {}};
  message.with("from", std::int64_t{caller.rank.value}).with("to", std::int64_t{to.value});
  message.with("purpose", std::string(purpose));
  return sealed(std::move(message), caller.secret);
}

Status stopped() { return cancelled("stopped"); }

// The next message of the other end.
Result<Message> await(Channel& channel, Deadline deadline, const KeepGoing& keep_going) {
  for (;;) {
    OK_OR_RETURN(messages, channel.receive());
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
  Impl(Rank own, std::string secret, Listener listener)
      : own_(own), secret_(std::move(secret)), listener_(std::move(listener)) {
    thread_ = Thread([this](const StopToken& stop) {
      while (!stop.stop_requested()) turn();
    });
  }

  const std::vector<std::string>& addresses() const { return listener_.addresses(); }

  Result<Fd> take_ring(Rank from, Deadline deadline, const KeepGoing& keep_going) {
    MutexLock lock(mutex_);
    for (;;) {
      if (const auto found = rings_.find(from); found != rings_.end()) {
        Fd fd = std::move(found->second);
        rings_.erase(found);
        return fd;
      }
      if (deadline.passed()) return timeout("rank {}: did not call", from.value);
      if (!keep_going()) return stopped();
      came_.wait(mutex_, Deadline::at(std::min(deadline.time(), mono_now() + Duration(100ms))));
    }
  }

 private:
  struct Guest {
    Channel channel;
    Deadline limit;            // to say who he is
    std::optional<Rank> from;  // set once he has proved it
    std::int64_t to_take = 0;  // bytes of a stream that are still to come
    std::int64_t taken = 0;
    bool is_done = false;
  };

  void turn() {
    std::vector<pollfd> waiting = {{listener_.fd(), POLLIN, 0}};
    for (const Guest& guest : guests_) {
      waiting.push_back({guest.channel.fd(),
                         static_cast<short>(guest.channel.has_unsent() ? POLLIN | POLLOUT : POLLIN), 0});
    }
    ::poll(waiting.data(), waiting.size(), kTickMs);
    while (Fd fd = listener_.accept()) {
      guests_.push_back({.channel = Channel(std::move(fd)), .limit = Deadline::after(kCallLimit)});
    }
    for (Guest& guest : guests_) hear(guest);
    auto strangers = static_cast<std::size_t>(
        std::count_if(guests_.begin(), guests_.end(), [](const Guest& guest) { return !guest.from; }));
    std::erase_if(guests_, [&](const Guest& guest) {
      if (guest.from) return guest.is_done;
      // The oldest go first: whoever has just come may say who he is with the next packet.
      const bool is_stale = guest.is_done || guest.limit.passed() || strangers > kMostStrangers;
      if (is_stale) --strangers;
      return is_stale;
    });
  }

  void hear(Guest& guest) {
    if (guest.channel.has_unsent()) (void)guest.channel.flush();
    if (guest.to_take > 0) return take(guest);
    const auto messages = guest.channel.receive();
    guest.is_done = !messages.ok() || guest.channel.is_closed();
    if (!messages.ok()) return;
    for (const Message& message : *messages) {
      if (!guest.from) {
        greet(guest, message);
      } else if (message.kind == "ping") {
        (void)guest.channel.send({"pong", {}});
      } else if (message.kind == "take") {
        begin_to_take(guest, message);
      }
      if (guest.is_done) return;
    }
  }

  void greet(Guest& guest, const Message& message) {
    const auto from = message.integer("from");
    guest.is_done = true;
    if (message.kind != "call" || !is_sealed(message, secret_) || message.integer("to") != own_.value ||
        !from || *from < 0 || *from > 1'000'000 || !nonces_.emplace(message.text("nonce")).second)
      return;
    guest.is_done = false;
    guest.from = Rank(static_cast<int>(*from));
    (void)guest.channel.send({"ready", {}});
    if (message.text("purpose") != "ring") return;
    MutexLock lock(mutex_);
    rings_.insert_or_assign(*guest.from, std::move(guest.channel).release());
    came_.notify_all();
    guest.is_done = true;
  }

  void begin_to_take(Guest& guest, const Message& message) {
    const auto bytes = message.integer("bytes");
    guest.is_done = !bytes || *bytes < 1 || *bytes > kMostBytes;
    if (guest.is_done) return;
    guest.to_take = *bytes;
    guest.taken = 0;
    (void)guest.channel.send({"ready", {}});
  }

  void take(Guest& guest) {
    while (guest.to_take > 0) {
      const auto wanted = std::min(buffer_.size(), static_cast<std::size_t>(guest.to_take));
      const ssize_t n = ::recv(guest.channel.fd(), buffer_.data(), wanted, MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) {
        guest.is_done = true;
        return;
      }
      guest.to_take -= n;
      guest.taken += n;
    }
    Message got{"got", {}};
    (void)guest.channel.send(got.with("bytes", guest.taken));
  }

  // Constant after construction.
  const Rank own_;
  const std::string secret_;
  // Of the thread.
  Listener listener_;
  std::list<Guest> guests_;
  std::set<std::string> nonces_;
  std::vector<char> buffer_ = std::vector<char>(kBuffer);

  Mutex mutex_;
  Condition came_;
  std::map<Rank, Fd> rings_ GUARDED_BY(mutex_);
  Thread thread_;  // last: it ends before what it uses
};

Result<PeerServer> PeerServer::start(Rank own, std::string secret, Reach reach) {
  OK_OR_RETURN(listener, Listener::open(reach));
  return PeerServer(std::make_unique<Impl>(own, std::move(secret), std::move(listener)));
}
PeerServer::PeerServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PeerServer::PeerServer(PeerServer&&) noexcept = default;
PeerServer& PeerServer::operator=(PeerServer&&) noexcept = default;
PeerServer::~PeerServer() = default;

const std::vector<std::string>& PeerServer::addresses() const { return impl_->addresses(); }
Result<Fd> PeerServer::take_ring(Rank from, Deadline deadline, const KeepGoing& keep_going) {
  return impl_->take_ring(from, deadline, keep_going);
}

namespace {

// One way being tried: first the kernel answers, then the process behind it.
struct Attempt {
  Way* way = nullptr;
  MonoTime start;
  Deadline limit = Deadline::never();
  std::optional<Dial> dial;
  std::optional<Channel> channel;
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

// "10.0.0.2:4000: connection refused" without the address, which is told elsewhere.
std::string reason(const Status& status, const std::string& address) {
  std::string_view text = status.message();
  if (text.starts_with(address + ": ")) text.remove_prefix(address.size() + 2);
  return std::string(text);
}

void begin(Attempt& attempt, const WayLimits& limits) {
  attempt.start = mono_now();
  attempt.limit = Deadline::after(limits.connect);
  auto dial = Dial::start(attempt.way->address);
  if (dial.ok()) attempt.dial = std::move(*dial);
  if (!dial.ok()) attempt.end(reason(dial.status(), attempt.way->address));
}

void connected(Attempt& attempt, const Caller& caller, const WayLimits& limits) {
  auto channel = std::move(*attempt.dial).finish();
  attempt.dial.reset();
  if (!channel.ok()) return attempt.end(reason(channel.status(), attempt.way->address));
  attempt.way->connect_s = since(attempt.start);
  attempt.channel = std::move(*channel);
  attempt.limit = Deadline::after(limits.answer);
  (void)attempt.channel->send(call_of(caller, attempt.way->to, "echo"));
}

void hear(Attempt& attempt) {
  const auto messages = attempt.channel->receive();
  if (!messages.ok()) return attempt.end("connects, but what answers there is not stoker");
  for (std::size_t i = 0; i < messages->size(); ++i) {
    if (attempt.is_welcome) {
      const double trip = since(attempt.asked);
      double& best = attempt.way->round_trip_s;
      best = attempt.pongs == 0 ? trip : std::min(best, trip);
      ++attempt.pongs;
    }
    attempt.is_welcome = true;
    if (attempt.pongs == kRoundTrips) return attempt.end("");
    attempt.asked = mono_now();
    (void)attempt.channel->send({"ping", {}});
  }
  if (attempt.channel->is_closed()) attempt.end("connects, and is closed by the other end");
}

void look_at_the_clock(Attempt& attempt, const WayLimits& limits) {
  if (attempt.is_over() || !attempt.limit.passed()) return;
  attempt.end(attempt.dial ? format("no answer within {}", rounded_duration(limits.connect))
                           : format("connects, but says nothing for {}", rounded_duration(limits.answer)));
}

}  // namespace

Result<std::vector<Way>> try_ways(std::vector<Way> ways, const Caller& caller, const WayLimits& limits) {
  std::vector<Attempt> attempts;
  for (Way& way : ways) attempts.push_back({.way = &way});
  for (Attempt& attempt : attempts) begin(attempt, limits);
  for (;;) {
    std::vector<pollfd> waiting;
    std::vector<Attempt*> whose;
    for (Attempt& attempt : attempts) {
      if (attempt.is_over()) continue;
      waiting.push_back({attempt.fd(), static_cast<short>(attempt.dial ? POLLOUT : POLLIN), 0});
      whose.push_back(&attempt);
    }
    if (waiting.empty()) return ways;
    if (!caller.keep_going()) return stopped();
    ::poll(waiting.data(), waiting.size(), kTickMs);
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents == 0) {
        look_at_the_clock(*whose[i], limits);
      } else if (whose[i]->dial) {
        connected(*whose[i], caller, limits);
      } else {
        hear(*whose[i]);
      }
    }
  }
}

namespace {

// Sends `bytes` bytes and waits until the other end has counted them; how many had arrived at an early end.
Status transfer(Channel& channel, std::int64_t bytes, const Caller& caller, Deadline deadline) {
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
  const auto answer = left > 0 ? Result<Message>(timeout("")) : await(channel, deadline, caller.keep_going);
  if (answer.ok()) return {};
  if (answer.status().code() != Code::timeout) return answer.status();
  int queued = 0;
  ::ioctl(channel.fd(), SIOCOUTQ, &queued);
  return timeout("stalled: {} of {} bytes arrived", bytes - left - queued, bytes);
}

Result<Channel> call(Rank to, std::string_view purpose, const std::string& address, const Caller& caller,
                     Deadline deadline) {
  OK_OR_RETURN(channel, Channel::connect(address, deadline));
  RETURN_IF_ERROR(channel.send(call_of(caller, to, purpose)));
  OK_OR_RETURN(answer, await(channel, deadline, caller.keep_going));
  if (answer.kind != "ready") return corrupt("answers '{}'", printable(answer.kind));
  return std::move(channel);
}

}  // namespace

Result<Flow> measure_flow(Rank to, const std::string& address, const Caller& caller, Duration limit) {
  Flow flow{.to = to};
  const auto failed = [&](const Status& status) -> Result<Flow> {
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
    Message take{"take", {}};
    Status status = channel->send(take.with("bytes", bytes));
    if (status.ok()) status = await(*channel, deadline, caller.keep_going).status();
    const MonoTime start = mono_now();
    if (status.ok()) status = transfer(*channel, bytes, caller, deadline);
    if (!status.ok()) return failed(status);
    const Flow last{.to = to, .bytes = static_cast<std::uint64_t>(bytes), .seconds = since(start)};
    if (last.bytes_per_s() > flow.bytes_per_s()) flow = last;
    if (last.seconds >= kLongEnough) break;
  }
  return flow;
}

Result<Fd> call_for_ring(Rank to, const std::string& address, const Caller& caller, Deadline deadline) {
  OK_OR_RETURN(channel, call(to, "ring", address, caller, deadline));
  return std::move(channel).release();
}

}  // namespace stoker::net
