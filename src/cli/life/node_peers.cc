#include "cli/life/node_peers.h"

#include <array>
#include <poll.h>
#include <unistd.h>

namespace stoker::cli {
namespace {

using namespace std::chrono_literals;

// Longer than the run that started this node waits for all of them.
constexpr Duration kPeersTimeout = 40s;
constexpr Duration kLineStep = 100ms;
constexpr std::size_t kLongestList = 64u << 20;

}  // namespace

std::string NodePeers::listen() {
  auto server = stage::SwarmServer::listen(net::ListenScope::network);
  if (!server.ok()) return to_line(stage::PeerAddress{node_, {}});
  server_ = std::move(*server);
  return to_line(stage::PeerAddress{node_, server_->addresses()});
}

std::optional<stage::BroadcastNodes> NodePeers::wait_for_peers(const Progress& progress) {
  const Deadline deadline = Deadline::after(kPeersTimeout);
  while (server_ && !deadline.passed() && !is_closed() && !progress.stop_requested()) {
    auto peers = stage::parse_peer_list(next_line(Deadline::after(kLineStep)));
    if (!peers) continue;
    server_->serve(peers->secret);
    return stage::BroadcastNodes{.server = server_.get(),
                                 .node = static_cast<std::uint32_t>(node_),
                                 .addresses = std::move(peers->addresses),
                                 .secret = std::move(peers->secret),
                                 .rate = rate_};
  }
  return std::nullopt;
}

std::optional<stage::ListHead> NodePeers::wait_for_list(const Progress& progress) {
  while (!is_closed() && !progress.stop_requested()) {
    if (auto head = stage::parse_list_head(next_line(Deadline::after(kLineStep)))) return head;
  }
  return std::nullopt;
}

std::string NodePeers::next_line(Deadline deadline) {
  while (lines_.empty() && !is_closed_) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (::poll(&input, 1, deadline.poll_ms(100)) > 0) {
      std::array<char, 65536> buffer;
      const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
      is_closed_ = got <= 0;
      if (got > 0) partial_.append(buffer.data(), static_cast<std::size_t>(got));
      if (partial_.size() > kLongestList) is_closed_ = true;
    }
    std::size_t begin = 0;
    for (std::size_t end = partial_.find('\n'); end != std::string::npos; end = partial_.find('\n', begin)) {
      lines_.push_back(partial_.substr(begin, end - begin));
      begin = end + 1;
    }
    partial_.erase(0, begin);
    if (deadline.passed()) break;
  }
  if (lines_.empty()) return {};
  std::string line = std::move(lines_.front());
  lines_.pop_front();
  return line;
}

}  // namespace stoker::cli
