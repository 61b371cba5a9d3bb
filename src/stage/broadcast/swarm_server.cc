#include "stage/broadcast/swarm_server.h"

#include <list>
#include <poll.h>

namespace stoker::stage {
namespace {

using namespace std::chrono_literals;

// A stranger who connects and is silent keeps one of these for this time.
constexpr std::size_t kMaxGreetings = 64;
constexpr Duration kGreetingTimeout = 5s;

struct Greeting {
  std::shared_ptr<std::atomic<bool>> is_done;
  Thread thread;
};

}  // namespace

Result<std::unique_ptr<SwarmServer>> SwarmServer::listen(net::ListenScope reach) {
  STOKER_ASSIGN_OR_RETURN(listener, net::Listener::open(reach));
  return std::unique_ptr<SwarmServer>(new SwarmServer(std::move(listener)));
}

SwarmServer::~SwarmServer() { acceptor_.join(); }

void SwarmServer::serve(std::string secret) {
  secret_ = std::move(secret);
  acceptor_ = Thread([this](const StopToken& stop) { accept_all(stop); });
}

void SwarmServer::add(Swarm& swarm) {
  const MutexLock lock(mutex_);
  swarms_[swarm.plan_text()] = &swarm;
}

void SwarmServer::remove(Swarm& swarm) {
  const MutexLock lock(mutex_);
  swarms_.erase(swarm.plan_text());
}

void SwarmServer::accept_all(const StopToken& stop) {
  std::list<Greeting> greetings;
  while (!stop.stop_requested()) {
    greetings.remove_if([](const Greeting& one) { return one.is_done->load(); });
    pollfd waiting{listener_.fd(), POLLIN, 0};
    if (greetings.size() >= kMaxGreetings) waiting.events = 0;
    if (::poll(&waiting, 1, 100) <= 0 || greetings.size() >= kMaxGreetings) continue;
    Fd socket = listener_.accept();
    if (!socket) continue;
    auto is_done = std::make_shared<std::atomic<bool>>(false);
    Thread thread([this, is_done, fd = std::move(socket)](const StopToken&) mutable {
      greet(std::move(fd));
      is_done->store(true);
    });
    greetings.push_back({std::move(is_done), std::move(thread)});
  }
}

void SwarmServer::greet(Fd socket) {
  const Deadline deadline = Deadline::after(kGreetingTimeout);
  auto channel = net::SecureChannel::accept(std::move(socket), secret_, deadline);
  if (!channel.ok()) return;
  const auto frame = channel->receive(deadline);
  if (!frame.ok() || frame->kind != static_cast<std::uint8_t>(SwarmKind::hello)) return;
  const auto hello = parse_hello(frame->bytes);
  if (!hello.ok()) return;
  // A dataset that this node has not come to yet: the peer connects again.
  const MutexLock lock(mutex_);
  const auto swarm = swarms_.find(hello->plan);
  if (swarm != swarms_.end()) swarm->second->adopt(std::move(*channel), *hello);
}

}  // namespace stoker::stage
