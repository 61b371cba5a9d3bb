#include "stage/copy_forecast.h"

#include <algorithm>
#include <fcntl.h>

#include "base/stopwatch.h"
#include "stage/cache/decision.h"

namespace stoker::stage {
namespace {

constexpr double kCount_s = 2;
constexpr double kSample_s = 1;
constexpr std::uint64_t kSmallFile = 1 << 20;
constexpr std::size_t kSampled = 64;
constexpr double kThreads = 4;  // that a copy reads small files with

// Keeps every n-th path, at most twice kSampled.
class PathSample {
 public:
  void add(const Path& path) {
    if (seen_++ % stride_ != 0) return;
    paths_.push_back(path);
    if (paths_.size() < 2 * kSampled) return;
    for (std::size_t i = 0; i < kSampled; ++i) paths_[i] = paths_[2 * i];
    paths_.resize(kSampled);
    stride_ *= 2;
  }
  const std::vector<Path>& paths() const { return paths_; }

 private:
  std::vector<Path> paths_;
  std::uint64_t seen_ = 0;
  std::uint64_t stride_ = 1;
};

struct Tree {
  CopyForecast sum;
  Path largest;
  std::uint64_t largest_bytes = 0;
  std::uint64_t small_files = 0;
  PathSample small;

  void add(const Path& path, std::uint64_t bytes) {
    sum.bytes += bytes;
    sum.files += 1;
    if (bytes < kSmallFile) {
      small_files += 1;
      small.add(path);
    }
    if (largest.empty() || bytes > largest_bytes) {
      largest = path;
      largest_bytes = bytes;
    }
  }
};

void count(const Path& source, const Stopwatch& watch, Tree& tree) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(source, error)) {
    const std::uint64_t bytes = fs::file_size(source, error);
    if (!error) tree.add(source, bytes);
    return;
  }
  constexpr auto kOptions = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator at(source, kOptions, error), end; !error && at != end;
       at.increment(error)) {
    if (watch.seconds() > kCount_s) {
      tree.sum.is_whole = false;
      return;
    }
    std::error_code gone;
    if (at->is_symlink(gone) || !at->is_regular_file(gone)) continue;
    const std::uint64_t bytes = at->file_size(gone);
    if (!gone) tree.add(at->path(), bytes);
  }
}

// Seconds to open and read a small file; 0 if none can be read.
double time_of_small_file(const std::vector<Path>& paths) {
  const Stopwatch watch;
  std::size_t read = 0;
  std::vector<std::byte> buffer(kSmallFile);
  for (const Path& path : paths) {
    if (watch.seconds() > kSample_s) break;
    const auto file = File::open_regular(path);
    if (!file.ok()) continue;
    ::posix_fadvise(file->fd(), 0, 0, POSIX_FADV_DONTNEED);
    const auto size = file->size();
    if (!size.ok()) continue;
    const auto piece = std::span(buffer).first(std::min<std::uint64_t>(*size, buffer.size()));
    read += file->read_at(0, piece).ok() ? 1 : 0;
  }
  return read == 0 ? 0 : watch.seconds() / static_cast<double>(read);
}

}  // namespace

CopyForecast forecast_copy(const std::vector<Path>& sources) {
  Tree tree;
  tree.sum.is_whole = true;
  const Stopwatch watch;
  for (const Path& source : sources) count(source, watch, tree);
  if (tree.sum.files == 0) return tree.sum;
  if (const auto rate = measure_read_rate(tree.largest); rate.ok() && *rate > 0)
    tree.sum.seconds = static_cast<double>(tree.sum.bytes) / *rate;
  tree.sum.seconds +=
      time_of_small_file(tree.small.paths()) * static_cast<double>(tree.small_files) / kThreads;
  return tree.sum;
}

}  // namespace stoker::stage
