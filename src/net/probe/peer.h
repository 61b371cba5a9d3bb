// Ranks that try their ways to each other: each listens on a port of its own (PeerServer, a thread), and each
// calls the others (try_ways, measure_flow, call). Only who knows the session's secret is answered; anybody
// else who finds the port is dropped and takes nothing with him. Used by `stoker hello`. PeerServer is
// thread-safe, the functions have no state; whatever waits has a deadline.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/strong.h"
#include "base/time.h"
#include "net/channel.h"

namespace stoker::net {

/// Called several times a second while something is waited for; the wait ends as Cancelled once it says
/// false.
using KeepGoing = std::function<bool()>;

/// Who calls, and the session that he belongs to.
struct Caller {
  Rank rank;
  std::string secret;
  KeepGoing keep_going = [] { return true; };
};

/// Answers calls of the other ranks: small messages, and streams of bytes that it counts.
class PeerServer {
 public:
  static Result<PeerServer> start(Rank own, std::string secret, Reach reach);
  PeerServer(PeerServer&&) noexcept;
  PeerServer& operator=(PeerServer&&) noexcept;
  ~PeerServer();

  /// As Listener::addresses.
  const std::vector<std::string>& addresses() const;
  /// The connection over which `from` called for a ring; waits for it.
  Result<Fd> take_ring(Rank from, Deadline deadline, const KeepGoing& keep_going);

 private:
  class Impl;
  explicit PeerServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// One way to a rank: from here to one of its addresses.
struct Way {
  Rank to;
  std::string address;
  std::string error;        ///< "no answer within 5.0 s", "connection refused"; empty: it answers
  double connect_s = 0;     ///< until the connection was there
  double round_trip_s = 0;  ///< the shortest of several

  friend bool operator==(const Way&, const Way&) = default;
};

/// How long a way is waited for. The kernel of a healthy host accepts at once, whatever it has to do; its
/// process may take longer to say a word.
struct WayLimits {
  Duration connect = std::chrono::seconds(5);
  Duration answer = std::chrono::seconds(20);
};

/// Tries all ways at once (`to` and `address` are given) and fills in the rest. Cancelled when keep_going
/// said so.
Result<std::vector<Way>> try_ways(std::vector<Way> ways, const Caller& caller, const WayLimits& limits);

/// What went over one connection, one way.
struct Flow {
  Rank to;
  std::uint64_t bytes = 0;  ///< of the fastest transfer
  double seconds = 0;       ///< that it took, until the other end had it all
  std::string error;        ///< "stalled: 14480 of 262144 bytes arrived within 10.0 s"; or empty

  double bytes_per_s() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
  friend bool operator==(const Flow&, const Flow&) = default;
};

/// Sends ever more until it takes long enough to tell, at most 32 MiB; each transfer may take `limit`.
Result<Flow> measure_flow(Rank to, const std::string& address, const Caller& caller, Duration limit);

/// A connection to `to` whose bytes go to its take_ring.
Result<Fd> call_for_ring(Rank to, const std::string& address, const Caller& caller, Deadline deadline);

}  // namespace stoker::net
