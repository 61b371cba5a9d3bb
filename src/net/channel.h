// One TCP connection that carries messages, and the socket on which a run listens for its ranks. Never blocks
// but in connect, which has a deadline: owners poll(2). Each object belongs to one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "base/time.h"
#include "net/message.h"

namespace stoker::net {

/// A connection. Bytes that the other end does not take yet wait here, up to 1 MiB.
class Channel {
 public:
  Channel() = default;
  explicit Channel(Fd connected) : fd_(std::move(connected)) {}

  /// Connects to "<numeric address>:<port>" or "[<IPv6>]:<port>". Timeout at the deadline, Unavailable when
  /// refused or unreachable; no name is resolved.
  static Result<Channel> connect(std::string_view address, Deadline deadline);
  /// The first in the list of one listener's addresses that answer; all are tried at once, so that one which
  /// takes packets and says nothing costs no time.
  static Result<Channel> connect_any(const std::vector<std::string>& addresses, Deadline deadline);

  /// Queues the message and sends what goes. Unavailable when the connection is gone or 1 MiB waits already.
  Status send(const Message& message);
  /// Sends what waits, as far as it goes.
  Status flush();
  /// True while bytes wait to be sent: poll for POLLOUT.
  bool has_unsent() const { return !unsent_.empty(); }
  /// Every whole message that has come. Corrupt when the other end is no stoker.
  Result<std::vector<Message>> receive();
  /// True once the other end has closed, or the connection broke.
  bool is_closed() const { return closed_; }
  /// Numeric addresses of the two ends, without ports; "" when the connection is gone.
  std::string own_address() const;
  std::string peer_address() const;
  int fd() const { return fd_.get(); }
  /// The connection itself, for bytes that are no messages. What was received and not taken is lost.
  Fd release() && { return std::move(fd_); }

 private:
  Fd fd_;
  bool closed_ = false;
  std::string unsent_;
  FrameParser parser_;
};

/// A connection on its way.
class Dial {
 public:
  /// Begins to connect to an address as Channel::connect takes it. Unavailable when that fails at once.
  static Result<Dial> start(std::string_view address);
  /// Writable, or in error, once it is decided.
  int fd() const { return fd_.get(); }
  /// REQUIRES: poll(2) has said that it is decided. Unavailable when it was refused or is unreachable.
  Result<Channel> finish() &&;

 private:
  Dial(Fd fd, std::string address) : fd_(std::move(fd)), address_(std::move(address)) {}

  Fd fd_;
  std::string address_;
};

/// Who may connect to a listener.
enum class Reach { this_host, network };

/// Listens on a port of the kernel's choice.
class Listener {
 public:
  static Result<Listener> open(Reach reach);
  /// A connection that waits to be taken, or one whose Fd is empty.
  Fd accept();
  int fd() const { return fd_.get(); }
  /// Where to connect to: loopback, or every address of this host, as Channel::connect takes them.
  const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  Fd fd_;
  std::vector<std::string> addresses_;
};

}  // namespace stoker::net
