// The ranks of a run from the run's side: each rank sends one hello, is admitted or refused, and then sends
// messages until it leaves. Used by `stoker run` (WorldServer) and `stoker rank` (join). Only join blocks,
// until its deadline. Each object belongs to one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/channel.h"
#include "net/message.h"
#include "stoker/status.h"
#include "stoker/strong.h"
#include "stoker/time.h"

namespace stoker::net {

/// The first message of a rank.
struct Hello {
  Rank rank;
  WorldSize world_size;
  std::string host;
  std::int64_t pid = 0;
  std::string address;  ///< the rank's end of the connection; set by join
  std::string via;      ///< the run's address that the rank connected to; set by join
  int port = 0;         ///< rank 0: the port reserved for the training's rendezvous
  std::string problem;  ///< why this rank cannot join: "port 29500: taken ..."; empty if it can
  std::string node;     ///< the scheduler's name of the host; empty: same as `host`
};
/// The host name for messages.
std::string display_host(const Hello& hello);
ControlMessage to_message(const Hello& hello);
/// Invalid if a field is missing or not a number.
Result<Hello> parse_hello(const ControlMessage& message);

/// Admits ranks, without sockets.
class RankRegistry {
 public:
  explicit RankRegistry(WorldSize size) : size_(size) {}

  /// Admits the rank. Invalid for a wrong world size (each process would be a separate world), a rank out of
  /// range or a duplicate rank. Unavailable if the rank reports a problem.
  Status admit(const Hello& hello);
  bool is_complete() const { return static_cast<int>(members_.size()) == size_.value; }
  /// Ranks not admitted yet, in order.
  std::vector<Rank> missing() const;
  /// The hello of an admitted rank, or null.
  const Hello* find(Rank rank) const;

 private:
  WorldSize size_;
  std::map<Rank, Hello> members_;
};

/// An event of a connection.
struct WorldEvent {
  enum class Kind {
    joined,   ///< `rank` was admitted with `hello`
    message,  ///< `rank` sent `message`
    left,     ///< the connection of `rank` was closed
    refused,  ///< an authenticated process was refused for the reason in `text`: the run was started
              ///< incorrectly
  };
  Kind kind = Kind::message;
  Rank rank;
  Hello hello;
  ControlMessage message;
  std::string text;
};

/// The run's end of all connections.
class WorldServer {
 public:
  /// `secret` authenticates ranks and is never sent.
  static Result<WorldServer> listen(WorldSize size, std::string secret, ListenScope reach);
  WorldServer(WorldServer&&) noexcept;
  WorldServer& operator=(WorldServer&&) noexcept;
  ~WorldServer();

  /// Readable when poll_events() has work.
  int fd() const;
  /// What `join` needs: "<secret>@<address>,<address>...".
  std::string invitation() const;
  /// All events since the last call. Unauthenticated connections are dropped without an event, and a
  /// connection without a hello is closed after 10 s.
  std::vector<WorldEvent> poll_events();
  /// Sends to a rank. No effect if it has left.
  void send(Rank rank, const ControlMessage& message);
  void broadcast(const ControlMessage& message);
  const RankRegistry& registry() const;
  /// Bytes sent to a rank that its kernel has not acknowledged; 0 for an unknown rank. Kernels acknowledge
  /// even for a hung process, so bytes that stay unacknowledged for seconds mean packet loss or a dead host.
  std::size_t unacknowledged(Rank rank) const;

 private:
  class Impl;
  explicit WorldServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The rank's end: connects with the invitation and sends the hello. The answer, "welcome" or "refused"
/// (field `why`), arrives as a message, so that the rank can wait for it and for signals.
Result<Channel> join(std::string_view invitation, Hello hello, Deadline deadline);

}  // namespace stoker::net
