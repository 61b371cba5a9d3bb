// An encrypted and authenticated TCP connection of two processes that know the same secret: frames of a kind
// and bytes. For bulk data; messages of ranks use Channel. Layout: docs/formats/broadcast.md. One thread may
// send while another one receives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::net {

/// Bytes of a frame at most; larger ones are rejected before any allocation.
constexpr std::size_t kLargestSecureFrame = (4u << 20) + 1024;

/// A received frame.
struct SecureFrame {
  std::uint8_t kind = 0;
  std::span<const std::byte> bytes;  ///< valid until the next call of receive()
};

/// Each connection has its own keys, from the secret and random numbers of both ends, so frames can be
/// neither read, changed, replayed, reordered nor left out without the secret. AES-256-GCM
/// where both processors have it, else ChaCha20-Poly1305.
class SecureChannel {
 public:
  /// The end that connected. Waits for the answer: Unavailable if the peer closes, which it does for a
  /// different secret; Timeout.
  static Result<SecureChannel> connect(Fd socket, std::string_view secret, Deadline deadline);
  /// The end that accepted. Invalid if the peer is not Stoker or has a different secret.
  static Result<SecureChannel> accept(Fd socket, std::string_view secret, Deadline deadline);
  SecureChannel(SecureChannel&&) noexcept;
  SecureChannel& operator=(SecureChannel&&) noexcept;
  ~SecureChannel();

  /// Blocks until the frame is in the kernel. `head` and `body` arrive as one. Unavailable if the connection
  /// is broken, or nothing could be sent for 30 s.
  Status send(std::uint8_t kind, std::span<const std::byte> head, std::span<const std::byte> body = {});
  /// Frees the memory of the largest frame sent, by the thread that sends, while it has nothing to send.
  void release_send_buffer();
  /// The next frame. Timeout if none has begun at the deadline. Unavailable if the connection ended, Corrupt
  /// if it was tampered with.
  Result<SecureFrame> receive(Deadline deadline);
  /// Ends both directions, from any thread; send() and receive() then return.
  void shut_down();

 private:
  struct Impl;
  explicit SecureChannel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker::net
