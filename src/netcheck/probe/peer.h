// Connection tests between ranks: each rank listens on a port (PeerServer, a thread) and connects to its
// peers (probe_routes, measure_bandwidth, connect_ring). Only peers that prove knowledge of the session's
// secret get an answer; other connections are dropped. Used by `stoker hello`. PeerServer is thread-safe,
// the functions have no state; every wait has a deadline.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/channel.h"
#include "stoker/status.h"
#include "stoker/strong.h"
#include "stoker/time.h"

namespace stoker::netcheck {

/// Polled several times a second during a wait; false ends the wait as Cancelled.
using KeepGoing = std::function<bool()>;

/// The initiating rank and the secret of its session.
struct Caller {
  Rank rank;
  std::string secret;
  KeepGoing keep_going = [] { return true; };
};

/// Serves the other ranks: small messages, and streams whose bytes it counts.
class PeerServer {
 public:
  static Result<PeerServer> start(Rank own, std::string secret, net::ListenScope reach);
  PeerServer(PeerServer&&) noexcept;
  PeerServer& operator=(PeerServer&&) noexcept;
  ~PeerServer();

  /// See Listener::addresses.
  const std::vector<std::string>& addresses() const;
  /// Waits for the ring connection of `from`.
  Result<Fd> accept_ring_connection(Rank from, Deadline deadline, const KeepGoing& keep_going);

 private:
  class Impl;
  explicit PeerServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A connection from this rank to one address of a peer.
struct Route {
  Rank to;
  std::string address;
  std::string error;        ///< "no answer within 5.0 s", "connection refused"; empty on success
  double connect_s = 0;     ///< time to connect
  double round_trip_s = 0;  ///< the shortest of several

  friend bool operator==(const Route&, const Route&) = default;
};

/// Time limits of a connection test. The kernel of a healthy host accepts at once under any load; its
/// process may take longer to answer.
struct RouteTimeouts {
  Duration connect = std::chrono::seconds(5);
  Duration answer = std::chrono::seconds(20);
};

/// Tests all connections concurrently (the caller sets `to` and `address`) and fills in the results.
/// Cancelled when keep_going returns false.
Result<std::vector<Route>> probe_routes(std::vector<Route> ways, const Caller& caller,
                                        const RouteTimeouts& limits);

/// The bandwidth of one connection in one direction.
struct FlowResult {
  Rank to;
  std::uint64_t bytes = 0;  ///< of the fastest transfer
  double seconds = 0;       ///< its time, until the peer had received everything
  std::string error;        ///< "stalled: 14480 of 262144 bytes arrived within 10.0 s"; or empty

  double bytes_per_s() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
  friend bool operator==(const FlowResult&, const FlowResult&) = default;
};

/// Sends growing amounts, up to 32 MiB, until the time is measurable; each transfer may take `limit`.
Result<FlowResult> measure_bandwidth(Rank to, const std::string& address, const Caller& caller,
                                     Duration limit);

/// A connection to `to`, which receives it from accept_ring_connection.
Result<Fd> connect_ring(Rank to, const std::string& address, const Caller& caller, Deadline deadline);

}  // namespace stoker::netcheck
