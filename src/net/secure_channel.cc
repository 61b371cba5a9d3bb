#include "net/secure_channel.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <memory>
#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>

#include <openssl/evp.h>

#include "stoker/text.h"

namespace stoker::net {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kHelloMagic = "Stk1";
constexpr std::size_t kNonceBytes = 24;
constexpr std::size_t kHelloBytes = kHelloMagic.size() + 1 + kNonceBytes;
constexpr std::size_t kTagBytes = 16;
constexpr std::size_t kKeyBytes = 32;
constexpr Duration kSendTimeout = 30s;
static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == kTagBytes);
static_assert(crypto_aead_aes256gcm_KEYBYTES == kKeyBytes &&
              crypto_aead_chacha20poly1305_ietf_KEYBYTES == kKeyBytes);

using HelloBytes = std::array<unsigned char, kHelloBytes>;
enum class ChannelEnd : std::uint8_t { client = 1, server = 2 };

// Sends all bytes, with at most kSendTimeout of silence.
Status send_all(int fd, std::span<const unsigned char> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
      continue;
    }
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) return posix_error("connection", errno);
    pollfd waiting{fd, POLLOUT, 0};
    if (::poll(&waiting, 1, Deadline::after(kSendTimeout).poll_ms()) == 0)
      return unavailable("the peer received nothing for 30 s");
  }
  return {};
}

// Fills `bytes`. Timeout only before the first of them if `may_time_out`.
Status receive_all(int fd, std::span<unsigned char> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
      continue;
    }
    if (got == 0) return unavailable("the peer closed the connection");
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return posix_error("connection", errno);
    pollfd waiting{fd, POLLIN, 0};
    if (::poll(&waiting, 1, deadline.poll_ms()) == 0 && deadline.passed())
      return timeout("the peer sent nothing in time");
  }
  return {};
}

Status wait_readable(int fd, Deadline deadline) {
  pollfd waiting{fd, POLLIN, 0};
  while (::poll(&waiting, 1, deadline.poll_ms()) <= 0) {
    if (deadline.passed()) return timeout("no frame");
  }
  return {};
}

struct FreeCipherContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, FreeCipherContext>;
using Nonce = std::array<unsigned char, 12>;

// A frame of 4 bytes of length, the text of `parts`, and room for the tag. Without a copy of the text.
bool encrypt(EVP_CIPHER_CTX* context, const Nonce& nonce,
             std::initializer_list<std::span<const std::byte>> parts, std::span<unsigned char> frame) {
  unsigned char* text = frame.data() + 4;
  int done = 0;
  if (EVP_CipherInit_ex(context, nullptr, nullptr, nullptr, nonce.data(), -1) != 1 ||
      EVP_CipherUpdate(context, nullptr, &done, frame.data(), 4) != 1)
    return false;
  for (const std::span<const std::byte> part : parts) {
    if (part.empty()) continue;
    const auto* const bytes = reinterpret_cast<const unsigned char*>(part.data());
    if (EVP_CipherUpdate(context, text, &done, bytes, static_cast<int>(part.size())) != 1) return false;
    text += done;
  }
  return EVP_CipherFinal_ex(context, text, &done) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, kTagBytes, text) == 1;
}

// The text and its tag, in place.
bool decrypt(EVP_CIPHER_CTX* context, const Nonce& nonce, std::span<const unsigned char> length,
             std::span<unsigned char> text) {
  const int size = static_cast<int>(text.size() - kTagBytes);
  int done = 0;
  return EVP_CipherInit_ex(context, nullptr, nullptr, nullptr, nonce.data(), -1) == 1 &&
         EVP_CipherUpdate(context, nullptr, &done, length.data(), static_cast<int>(length.size())) == 1 &&
         EVP_CipherUpdate(context, text.data(), &done, text.data(), size) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, kTagBytes, text.data() + size) == 1 &&
         EVP_CipherFinal_ex(context, text.data() + done, &done) == 1;
}

HelloBytes make_hello() {
  HelloBytes hello{};
  std::ranges::copy(kHelloMagic, hello.begin());
  hello[kHelloMagic.size()] = crypto_aead_aes256gcm_is_available() != 0 ? 1 : 0;
  randombytes_buf(hello.data() + kHelloMagic.size() + 1, kNonceBytes);
  return hello;
}

}  // namespace

struct SecureChannel::Impl {
  // One direction: its cipher and the number of the next frame.
  struct Direction {
    std::array<unsigned char, kKeyBytes> key{};
    CipherContext aes;  // several times as fast as libsodium's
    std::uint64_t next = 0;
    std::vector<unsigned char> buffer;

    // Growing a vector costs as much as a copy, so it never shrinks between frames.
    std::span<unsigned char> room_for(std::size_t size) {
      if (buffer.size() < size) buffer.resize(size);
      return std::span(buffer).first(size);
    }
  };

  explicit Impl(Fd socket) : fd(std::move(socket)) {}
  ~Impl() {
    sodium_memzero(sending.key.data(), kKeyBytes);
    sodium_memzero(receiving.key.data(), kKeyBytes);
  }

  // Both hellos are known: all keys follow from them and the secret.
  void begin(std::string_view secret, const HelloBytes& client, const HelloBytes& server, ChannelEnd end) {
    uses_aes = client[kHelloMagic.size()] == 1 && server[kHelloMagic.size()] == 1;
    derive(sending, secret, client, server, end == ChannelEnd::client ? 'c' : 's');
    derive(receiving, secret, client, server, end == ChannelEnd::client ? 's' : 'c');
  }
  void derive(Direction& direction, std::string_view secret, const HelloBytes& client,
              const HelloBytes& server, char sender) const {
    const bool encrypts = &direction == &sending;
    crypto_generichash_state state;
    // A key of BLAKE2b has at most 64 bytes, a secret may be longer.
    std::array<unsigned char, crypto_generichash_BYTES> root;
    crypto_generichash(root.data(), root.size(), reinterpret_cast<const unsigned char*>(secret.data()),
                       secret.size(), nullptr, 0);
    crypto_generichash_init(&state, root.data(), root.size(), kKeyBytes);
    crypto_generichash_update(&state, client.data(), client.size());
    crypto_generichash_update(&state, server.data(), server.size());
    crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(&sender), 1);
    crypto_generichash_final(&state, direction.key.data(), kKeyBytes);
    if (uses_aes) {
      direction.aes.reset(EVP_CIPHER_CTX_new());
      EVP_CipherInit_ex(direction.aes.get(), EVP_aes_256_gcm(), nullptr, direction.key.data(), nullptr,
                        encrypts ? 1 : 0);
    }
    sodium_memzero(root.data(), root.size());
  }

  static Nonce nonce_of(std::uint64_t number) {
    Nonce nonce{};
    for (std::size_t i = 0; i < 8; ++i) nonce[i] = static_cast<unsigned char>(number >> (8 * i));
    return nonce;
  }

  Status send(std::uint8_t kind, std::span<const std::byte> head, std::span<const std::byte> body) {
    const std::size_t size = 1 + head.size() + body.size();
    if (size + kTagBytes > kLargestSecureFrame) return internal("a frame of {} bytes", size);
    const std::span<unsigned char> out = sending.room_for(4 + size + kTagBytes);
    for (std::size_t i = 0; i < 4; ++i) out[i] = static_cast<unsigned char>((size + kTagBytes) >> (8 * i));
    const auto nonce = nonce_of(sending.next++);
    if (uses_aes) {
      const std::byte first{kind};
      if (!encrypt(sending.aes.get(), nonce, {std::span(&first, 1), head, body}, out))
        return internal("OpenSSL: cannot encrypt");
    } else {
      unsigned char* const text = out.data() + 4;  // encrypted in place
      text[0] = kind;
      if (!head.empty()) std::memcpy(text + 1, head.data(), head.size());
      if (!body.empty()) std::memcpy(text + 1 + head.size(), body.data(), body.size());
      crypto_aead_chacha20poly1305_ietf_encrypt(text, nullptr, text, size, out.data(), 4, nullptr,
                                                nonce.data(), sending.key.data());
    }
    return send_all(fd.get(), out);
  }

  Result<SecureFrame> receive(Deadline deadline) {
    if (const Status status = wait_readable(fd.get(), deadline); !status.ok()) {
      receiving.buffer = {};  // idle
      return status;
    }
    // A frame that has begun arrives soon.
    const Deadline rest = Deadline::after(kSendTimeout);
    std::array<unsigned char, 4> length;
    const auto broken = [](const Status& status) {
      return status.code() == Code::timeout
                 ? unavailable("the peer sent half a frame and then nothing for 30 s")
                 : status;
    };
    if (const Status status = receive_all(fd.get(), length, rest); !status.ok()) return broken(status);
    std::size_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) size |= std::size_t{length[i]} << (8 * i);
    if (size < kTagBytes + 1 || size > kLargestSecureFrame)
      return corrupt("a frame of {} bytes from the peer", size);
    const std::span<unsigned char> in = receiving.room_for(size);
    if (const Status status = receive_all(fd.get(), in, rest); !status.ok()) return broken(status);
    const auto nonce = nonce_of(receiving.next++);
    const bool is_right = uses_aes ? decrypt(receiving.aes.get(), nonce, length, in)
                                   : crypto_aead_chacha20poly1305_ietf_decrypt(
                                         in.data(), nullptr, nullptr, in.data(), size, length.data(), 4,
                                         nonce.data(), receiving.key.data()) == 0;
    if (!is_right) return corrupt("a frame from the peer has a wrong authentication tag");
    const auto bytes = std::as_bytes(in.first(size - kTagBytes));
    return SecureFrame{.kind = in[0], .bytes = bytes.subspan(1)};
  }

  const Fd fd;
  bool uses_aes = false;
  Direction sending;
  Direction receiving;
};

SecureChannel::SecureChannel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SecureChannel::SecureChannel(SecureChannel&&) noexcept = default;
SecureChannel& SecureChannel::operator=(SecureChannel&&) noexcept = default;
SecureChannel::~SecureChannel() = default;

Result<SecureChannel> SecureChannel::connect(Fd socket, std::string_view secret, Deadline deadline) {
  if (sodium_init() < 0) return internal("libsodium: cannot start");
  auto impl = std::make_unique<Impl>(std::move(socket));
  const HelloBytes hello = make_hello();
  STOKER_RETURN_IF_ERROR(send_all(impl->fd.get(), hello));
  HelloBytes answer;
  STOKER_RETURN_IF_ERROR(receive_all(impl->fd.get(), answer, deadline));
  if (!std::equal(kHelloMagic.begin(), kHelloMagic.end(), answer.begin()))
    return invalid("the peer is not Stoker, or a different version");
  impl->begin(secret, hello, answer, ChannelEnd::client);
  // Both ends prove that they know the secret, before anything else is trusted.
  STOKER_RETURN_IF_ERROR(impl->send(0, {}, {}));
  const auto proof = impl->receive(deadline);
  if (!proof.ok()) return proof.status();
  return SecureChannel(std::move(impl));
}

Result<SecureChannel> SecureChannel::accept(Fd socket, std::string_view secret, Deadline deadline) {
  if (sodium_init() < 0) return internal("libsodium: cannot start");
  auto impl = std::make_unique<Impl>(std::move(socket));
  HelloBytes hello;
  STOKER_RETURN_IF_ERROR(receive_all(impl->fd.get(), hello, deadline));
  if (!std::equal(kHelloMagic.begin(), kHelloMagic.end(), hello.begin()))
    return invalid("the peer is not Stoker, or a different version");
  const HelloBytes answer = make_hello();
  STOKER_RETURN_IF_ERROR(send_all(impl->fd.get(), answer));
  impl->begin(secret, hello, answer, ChannelEnd::server);
  const auto proof = impl->receive(deadline);
  if (!proof.ok())
    return proof.status().code() == Code::corrupt ? invalid("the peer does not know the job's secret")
                                                  : proof.status();
  STOKER_RETURN_IF_ERROR(impl->send(0, {}, {}));
  return SecureChannel(std::move(impl));
}

Status SecureChannel::send(std::uint8_t kind, std::span<const std::byte> head,
                           std::span<const std::byte> body) {
  return impl_->send(kind, head, body);
}
Result<SecureFrame> SecureChannel::receive(Deadline deadline) { return impl_->receive(deadline); }
void SecureChannel::release_send_buffer() { impl_->sending.buffer = {}; }
void SecureChannel::shut_down() { ::shutdown(impl_->fd.get(), SHUT_RDWR); }

}  // namespace stoker::net
