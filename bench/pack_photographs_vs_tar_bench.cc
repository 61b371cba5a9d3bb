// The minimal cost of packing files: one call reads each file and one call writes it after a header of 512
// bytes, into one file per thread, without listing, checks or syncs. `sha256` also hashes all bytes, two
// files at once, which is the fastest method here. `checks` also stats each file first, computes its CRC-32C
// and scans it as an image, with the kernels of `stoker data pack`.
//
//   pack_photographs_vs_tar_bench LIST OUT copy|checks|sha256 THREADS     LIST has a path on each line;
//   prints seconds
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/uio.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "base/stopwatch.h"
#include "pack/images/image_check.h"

namespace {

using namespace stoker;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "pack_photographs_vs_tar_bench: %s\n", why.c_str());
  std::exit(1);
}

// A reusable file in memory.
struct FileBuffer {
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

enum class Work { copy, checks, sha256 };

// One thread's share of the files.
class Share {
 public:
  Share(const std::vector<std::string>& files, std::size_t first, std::size_t step)
      : files_(files), first_(first), step_(step) {}

  void stat_files() const {
    struct stat facts{};
    for (std::size_t i = first_; i < files_.size(); i += step_)
      if (::lstat(files_[i].c_str(), &facts) != 0) fail(files_[i] + ": is gone");
  }

  void pack(const std::string& out, Work work) {
    (void)::unshare(CLONE_FILES);  // as the command's threads do
    const Fd target(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    for (std::size_t i = first_; i < files_.size(); i += 2 * step_) {
      copy_file(one_, files_[i], target.get(), work);
      if (i + step_ >= files_.size()) break;
      copy_file(two_, files_[i + step_], target.get(), work);
      if (work == Work::sha256) {
        volatile auto digest = sha256_pair(one_.bytes, two_.bytes)[0][0];
        (void)digest;
      }
    }
  }

 private:
  static void copy_file(FileBuffer& held, const std::string& path, int target, Work work) {
    held.read(path);
    if (work == Work::checks) {
      volatile auto sum = crc32c(held.bytes);
      (void)sum;
      if (!pack::scan_image(held.bytes).is_good) fail(path + ": is broken");
    }
    held.write(target);
  }

  const std::vector<std::string>& files_;
  std::size_t first_, step_;
  FileBuffer one_, two_;
};

Work work_of(std::string_view word) {
  return word == "sha256" ? Work::sha256 : word == "checks" ? Work::checks : Work::copy;
}

template <typename Do>
void in_threads(std::vector<Share>& shares, const Do& work) {
  std::vector<std::thread> threads;
  for (Share& share : shares) threads.emplace_back([&] { work(share); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int count, char** argv) {
  if (count != 5) fail("LIST OUT copy|checks|sha256 THREADS");
  std::vector<std::string> files;
  std::ifstream list(argv[1]);
  for (std::string line; std::getline(list, line);) files.push_back(line);
  const Work work = work_of(argv[3]);
  const std::size_t threads = std::max(1, std::atoi(argv[4]));
  const Stopwatch watch;
  std::vector<Share> shares;
  for (std::size_t t = 0; t < threads; ++t) shares.emplace_back(files, t, threads);
  const auto name = [&](const Share& share) { return argv[2] + std::to_string(&share - shares.data()); };
  if (work == Work::checks) in_threads(shares, [](const Share& share) { share.stat_files(); });
  in_threads(shares, [&](Share& share) { share.pack(name(share), work); });
  std::printf("%.6f\n", watch.seconds());
  for (const Share& share : shares) ::unlink(name(share).c_str());
  return 0;
}
