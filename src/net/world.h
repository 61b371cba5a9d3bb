// The ranks of a run as its own process sees them: each says hello once, is admitted or refused with a
// reason, and then sends messages until it leaves. Used by `stoker run` (WorldServer) and `stoker rank`
// (join). Nothing here blocks but join, which has a deadline. Each object belongs to one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/strong.h"
#include "base/time.h"
#include "net/channel.h"
#include "net/message.h"

namespace stoker::net {

/// The first message of a rank.
struct Hello {
  Rank rank;
  WorldSize world_size;
  std::string host;
  std::int64_t pid = 0;
  std::string address;  ///< of its end of the connection; filled in by join
  std::string via;      ///< the address under which it reached the run; filled in by join
  int port = 0;         ///< rank 0: the port kept for the training's own rendezvous
  std::string problem;  ///< why this rank cannot take part after all: "port 29500: taken ..."; or empty
  std::string node;     ///< how the scheduler and people call the host; empty: as `host`
};
/// The host as people know it.
std::string place_name(const Hello& hello);
Message to_message(const Hello& hello);
/// Invalid when a field is missing or is no number.
Result<Hello> parse_hello(const Message& message);

/// Who has come: the rules of admission, without sockets.
class Roster {
 public:
  explicit Roster(WorldSize size) : size_(size) {}

  /// Takes the rank in, or says why not: another world size (invalid: each such process would be a world of
  /// its own), a number out of range, a number that is taken, a problem of its own (unavailable).
  Status admit(const Hello& hello);
  bool is_complete() const { return static_cast<int>(members_.size()) == size_.value; }
  /// Ranks that have not come, in order.
  std::vector<Rank> missing() const;
  /// What the rank said, null before.
  const Hello* find(Rank rank) const;

 private:
  WorldSize size_;
  std::map<Rank, Hello> members_;
};

/// Something that happened in the world.
struct WorldEvent {
  enum class Kind {
    joined,   ///< `rank` was admitted: `hello` says the rest
    message,  ///< `rank` sent `message`
    left,     ///< the connection of `rank` is gone
    refused,  ///< a process that knows the secret was refused; `text` says why: the run was started wrongly
  };
  Kind kind = Kind::message;
  Rank rank;
  Hello hello;
  Message message;
  std::string text;
};

/// The run's end of all connections.
class WorldServer {
 public:
  /// `secret` keeps all out that do not have it; it is never sent.
  static Result<WorldServer> listen(WorldSize size, std::string secret, Reach reach);
  WorldServer(WorldServer&&) noexcept;
  WorldServer& operator=(WorldServer&&) noexcept;
  ~WorldServer();

  /// Readable when take() has something to do.
  int fd() const;
  /// What `join` needs: "<secret>@<address>,<address>...".
  std::string invitation() const;
  /// All that has happened since the last call. Strangers are dropped without an event, and a connection that
  /// says no hello within 10 s is closed.
  std::vector<WorldEvent> take();
  /// Sends to a rank; quietly nothing when it has left.
  void send(Rank rank, const Message& message);
  void broadcast(const Message& message);
  const Roster& roster() const;
  /// Bytes sent to a rank that its kernel has not acknowledged; 0 for one that is not there. A process that
  /// stands still does not keep its kernel from that: what stays unacknowledged for seconds is lost on the
  /// way, or its host is gone.
  std::size_t unacknowledged(Rank rank) const;

 private:
  class Impl;
  explicit WorldServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The rank's end: connects by the invitation and says hello. The answer, "welcome" or "refused" (field
/// `why`), comes as a message: a rank waits for it beside its signals.
Result<Channel> join(std::string_view invitation, Hello hello, Deadline deadline);

}  // namespace stoker::net
