// The least that packing files costs: each is read by one call and written by one call, behind a header of
// 512 bytes, into one file for each thread. Nothing is listed, looked at or made sure of. With `sha256` all
// bytes are hashed besides, those of two files at once, which is the fastest way there is here.
//
//   pack_photographs_vs_tar_bench LIST OUT copy|sha256 THREADS     LIST has a path on each line; prints
//   seconds
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <string>
#include <sys/uio.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "base/stopwatch.h"

namespace {

using namespace stoker;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "pack_photographs_vs_tar_bench: %s\n", why.c_str());
  std::exit(1);
}

// A file in memory that is used again.
struct Held {
  std::vector<std::byte> memory = std::vector<std::byte>(1u << 20);
  std::span<const std::byte> bytes;

  void read(const std::string& path) {
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const ssize_t n = ::read(file.get(), memory.data(), memory.size());
    if (n <= 0 || static_cast<std::size_t>(n) == memory.size()) fail(path + ": not read");
    bytes = std::span(memory).first(static_cast<std::size_t>(n));
  }
  void write(int out) const {
    static const std::vector<std::byte> header(512);
    const iovec both[] = {{const_cast<std::byte*>(header.data()), header.size()},
                          {const_cast<std::byte*>(bytes.data()), bytes.size()}};
    if (::writev(out, both, 2) != static_cast<ssize_t>(header.size() + bytes.size())) fail("not written");
  }
};

void pack(const std::vector<std::string>& files, std::size_t first, std::size_t step, const std::string& out,
          bool hashes) {
  (void)::unshare(CLONE_FILES);  // as the command's threads do
  const Fd target(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  Held one, two;
  for (std::size_t i = first; i < files.size(); i += 2 * step) {
    one.read(files[i]);
    one.write(target.get());
    if (i + step >= files.size()) break;
    two.read(files[i + step]);
    two.write(target.get());
    if (hashes) {
      volatile auto digest = sha256_of_two(one.bytes, two.bytes)[0][0];
      (void)digest;
    }
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) fail("LIST OUT copy|sha256 THREADS");
  std::vector<std::string> files;
  std::ifstream list(words[1]);
  for (std::string line; std::getline(list, line);) files.push_back(line);
  const bool hashes = std::string(words[3]) == "sha256";
  const std::size_t threads = std::max(1, std::atoi(words[4]));
  const Stopwatch watch;
  {
    std::vector<std::thread> crew;
    for (std::size_t t = 0; t < threads; ++t)
      crew.emplace_back([&, t] { pack(files, t, threads, words[2] + std::to_string(t), hashes); });
    for (std::thread& thread : crew) thread.join();
  }
  std::printf("%.6f\n", watch.seconds());
  for (std::size_t t = 0; t < threads; ++t) ::unlink((words[2] + std::to_string(t)).c_str());
  return 0;
}
