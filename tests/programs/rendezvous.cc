// For tests/lab/test_lab_modes.py: a program without Stoker, Slurm and PyTorch that connects its ranks by the
// environment that every launcher sets. Rank 0 listens on MASTER_PORT; its peers connect to MASTER_ADDR and
// send their rank.

#include <cstdio>
#include <cstdlib>
#include <netdb.h>
#include <set>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace {

int number(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) {
    std::fprintf(stderr, "%s is not set\n", name);
    std::exit(2);
  }
  return std::atoi(text);
}

addrinfo* address(const char* host, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  if (getaddrinfo(host, std::getenv("MASTER_PORT"), &hints, &found) != 0) std::exit(3);
  return found;
}

void listen_for(int others) {
  const addrinfo* here = address(nullptr, AI_PASSIVE);
  const int server = socket(here->ai_family, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(server, here->ai_addr, here->ai_addrlen) != 0 || listen(server, 64) != 0) {
    std::perror("bind");
    std::exit(4);
  }
  std::set<int> seen;
  for (int i = 0; i < others; ++i) {
    const int guest = accept(server, nullptr, nullptr);
    int rank = 0;
    if (read(guest, &rank, sizeof rank) == sizeof rank) seen.insert(rank);
    close(guest);
  }
  std::printf("met %zu of %d\n", seen.size(), others);
}

void come(int rank) {
  for (int i = 0; i < 600; ++i) {
    const addrinfo* there = address(std::getenv("MASTER_ADDR"), 0);
    const int out = socket(there->ai_family, SOCK_STREAM, 0);
    if (connect(out, there->ai_addr, there->ai_addrlen) == 0) {
      if (write(out, &rank, sizeof rank) != sizeof rank) std::exit(5);
      close(out);
      return;
    }
    close(out);
    usleep(50'000);
  }
  std::exit(6);
}

}  // namespace

int main() {
  const int rank = number("RANK");
  const int size = number("WORLD_SIZE");
  if (rank == 0) {
    listen_for(size - 1);
  } else {
    come(rank);
  }
  std::printf("rank %d of %d, %d of %d on node %d, %d threads\n", rank, size, number("LOCAL_RANK"),
              number("LOCAL_WORLD_SIZE"), number("NODE_RANK"), number("OMP_NUM_THREADS"));
}
