#include "base/name_lock.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/hash.h"

namespace stoker {

Result<Fd> lock_name(const std::string& name) {
  Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return posix_error("socket", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  constexpr std::size_t kLongest = sizeof address.sun_path - 1;
  // Long names must not become equal.
  constexpr std::size_t kKept = 64;
  const std::string used = name.size() <= kLongest
                               ? name
                               : format("{}-{:08x}", name.substr(0, kKept), crc32c(std::string_view(name)));
  std::copy(used.begin(), used.end(), address.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + used.size());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0) return socket;
  if (errno == EADDRINUSE) return Fd();
  return posix_error(format("socket @{}", used), errno);
}

}  // namespace stoker
