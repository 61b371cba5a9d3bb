// A TCP connection that carries messages, and the listening socket of a run. Only connect blocks, until its
// deadline; owners poll(2). Each object belongs to one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "net/message.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::net {

/// A connection. Unsent bytes are buffered, up to 1 MiB.
class Channel {
 public:
  Channel() = default;
  explicit Channel(Fd connected) : fd_(std::move(connected)) {}

  /// Connects to "<numeric address>:<port>" or "[<IPv6>]:<port>". Timeout at the deadline, Unavailable if
  /// refused or unreachable. Resolves no names.
  static Result<Channel> connect(std::string_view address, Deadline deadline);
  /// Connects to the first address in the list that answers. All addresses are tried in parallel, so that an
  /// address that drops packets costs no time.
  static Result<Channel> connect_any(const std::vector<std::string>& addresses, Deadline deadline);

  /// Queues the message and sends without blocking. Unavailable if the connection is closed or 1 MiB is
  /// queued.
  Status send(const ControlMessage& message);
  /// Sends queued bytes without blocking.
  Status flush();
  /// True while bytes are queued: poll for POLLOUT.
  bool has_unsent() const { return !unsent_.empty(); }
  /// All complete messages received. Corrupt if the peer is not Stoker.
  Result<std::vector<ControlMessage>> receive();
  /// True after the peer closed the connection or it broke.
  bool is_closed() const { return closed_; }
  /// Numeric addresses of both ends, without ports; "" if the connection is closed.
  std::string local_address() const;
  std::string peer_address() const;
  int fd() const { return fd_.get(); }
  /// The socket, for bytes that are not messages. Received bytes that were not read yet are lost.
  Fd release() && { return std::move(fd_); }

 private:
  Fd fd_;
  bool closed_ = false;
  std::string unsent_;
  FrameParser parser_;
};

/// A connection in progress.
class PendingConnection {
 public:
  /// Begins to connect to an address, as Channel::connect. Unavailable if that fails at once.
  static Result<PendingConnection> start(std::string_view address);
  /// Writable, or in error, once the connection succeeded or failed.
  int fd() const { return fd_.get(); }
  /// REQUIRES: poll(2) reported fd(). Unavailable if the connection was refused or the address is
  /// unreachable.
  Result<Channel> finish() &&;

 private:
  PendingConnection(Fd fd, std::string address) : fd_(std::move(fd)), address_(std::move(address)) {}

  Fd fd_;
  std::string address_;
};

/// Which hosts can connect to a listener.
enum class ListenScope { loopback, network };

/// Listens on a port chosen by the kernel.
class Listener {
 public:
  static Result<Listener> open(ListenScope reach);
  /// Accepts a connection, or returns an empty Fd.
  Fd accept();
  int fd() const { return fd_.get(); }
  /// Addresses to connect to, for Channel::connect: loopback, or every address of this host.
  const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  Fd fd_;
  std::vector<std::string> addresses_;
};

}  // namespace stoker::net
