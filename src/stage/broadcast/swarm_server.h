// The listening end of a node's broadcasts: checks who connects, and hands the connection to the swarm of its
// dataset. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/thread.h"
#include "net/channel.h"
#include "stage/broadcast/swarm.h"

namespace stoker::stage {

class SwarmServer {
 public:
  static Result<std::unique_ptr<SwarmServer>> listen(net::ListenScope reach);
  SwarmServer(const SwarmServer&) = delete;
  SwarmServer& operator=(const SwarmServer&) = delete;
  ~SwarmServer();

  /// For Channel::connect_any of the other nodes.
  const std::vector<std::string>& addresses() const { return listener_.addresses(); }
  /// Accepts connections of processes that know the job's secret. Call it once.
  void serve(std::string secret);
  /// From now on, connections for its plan reach the swarm. Removed before the swarm ends.
  void add(Swarm& swarm);
  void remove(Swarm& swarm);

 private:
  explicit SwarmServer(net::Listener listener) : listener_(std::move(listener)) {}
  void accept_all(const StopToken& stop);
  void greet(Fd socket);

  net::Listener listener_;
  std::string secret_;
  Mutex mutex_;
  std::map<std::string, Swarm*, std::less<>> swarms_ STOKER_GUARDED_BY(mutex_);
  Thread acceptor_;
};

}  // namespace stoker::stage
