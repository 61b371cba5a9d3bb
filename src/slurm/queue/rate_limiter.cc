#include "slurm/queue/rate_limiter.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"

namespace stoker::slurm {
namespace {

constexpr Duration kLongestSleep = std::chrono::milliseconds(500);

double mono_seconds() { return Seconds(RealClock().mono().time_since_epoch()).count(); }

// The locked file, or empty if it has a different owner or cannot be created. /tmp is shared.
Fd open_locked(const Path& file) {
  Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  struct stat info{};
  const bool is_ours = fd && ::fstat(fd.get(), &info) == 0 && info.st_uid == ::geteuid() &&
                       S_ISREG(info.st_mode) && ::flock(fd.get(), LOCK_EX) == 0;
  return is_ours ? std::move(fd) : Fd();
}

struct Bucket {
  double calls = CallRateLimiter::kBurst;
  double time = 0;
};

// An empty or damaged file, or one from before the last boot, is a full bucket.
Bucket read_bucket(int fd, double now, double per_second) {
  std::array<char, 64> text{};
  const ssize_t count = ::pread(fd, text.data(), text.size() - 1, 0);
  const std::string_view all(text.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  const std::size_t blank = all.find(' ');
  Bucket bucket;
  const bool is_read = blank != std::string_view::npos && parse_number(all.substr(0, blank), &bucket.calls) &&
                       parse_number(trim(all.substr(blank)), &bucket.time);
  // The stored time is rounded, so it may be slightly in the future.
  if (!is_read || !(bucket.time > 0 && bucket.time <= now + 1) || !(bucket.calls >= 0)) return {};
  bucket.calls =
      std::min(CallRateLimiter::kBurst, bucket.calls + std::max(0.0, now - bucket.time) * per_second);
  return bucket;
}

void write_bucket(int fd, double calls, double now) {
  const std::string text = format("{:.3f} {:.3f}\n", calls, now);
  if (::pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()))
    (void)::ftruncate(fd, static_cast<off_t>(text.size()));
}

}  // namespace

CallRateLimiter CallRateLimiter::for_user(std::string_view runtime_folder, std::string_view slurm_conf,
                                          std::string_view rate) {
  double per_second = kDefaultPerSecond;
  if (!rate.empty() && (!parse_number(rate, &per_second) || !(per_second >= 0)))
    per_second = kDefaultPerSecond;
  const Path folder = runtime_folder.starts_with('/') ? Path(runtime_folder) : Path("/tmp");
  const auto cluster = crc32c(slurm_conf);
  return {folder / format("stoker-slurm-{}-{:08x}", ::geteuid(), cluster), per_second};
}

Status CallRateLimiter::acquire(Deadline deadline) {
  if (file_.empty() || per_second_ <= 0) return {};
  for (;;) {
    double wait_s = 0;
    {
      const Fd file = open_locked(file_);
      if (!file) return {};
      const double now = mono_seconds();
      const Bucket bucket = read_bucket(file.get(), now, per_second_);
      left_ = std::max(0.0, bucket.calls - 1);
      if (bucket.calls >= 1) {
        write_bucket(file.get(), left_, now);
        return {};
      }
      wait_s = (1 - bucket.calls) / per_second_;
    }
    const auto wait = std::chrono::duration_cast<Duration>(Seconds(wait_s));
    if (wait > deadline.left()) {
      return timeout("rate limit: {:.0f} requests in a row are allowed, then {} a second", kBurst,
                     per_second_)
          .cure("{}=N in the environment raises the limit", kCallsPerSecond);
    }
    RealClock().sleep(std::min(wait, kLongestSleep));
  }
}

}  // namespace stoker::slurm
