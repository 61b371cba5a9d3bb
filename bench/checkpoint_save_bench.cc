// The Stoker side of bench/checkpoint_*.py: one rank that holds `COUNT` tensors of `BYTES` together and does
// runs the commands of standard input, one per line, and prints seconds:
//   save   saves them once, of all ranks together; prints "<stall> <until committed and synced>"
//   raw    writes this rank's share of the same bytes past the page cache, in one file, and syncs it
//   load   reads the step saved last into the tensors; "cold" does so after its files left the page cache
//   scan   reads the same files past the page cache, and does nothing with the bytes
//   steps  saves as save does, and meanwhile runs compute steps, each a pass over 8 MiB in memory; prints
//          "<stall> <steps while saving / steps before> <until committed and synced>"
//   copy   copies as many bytes as this rank's share in memory
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/file.h"
#include "base/stopwatch.h"
#include "checkpoint/layout.h"
#include "stoker/checkpoint.h"

namespace {

using namespace stoker;

// Allocated memory on whole pages.
std::span<std::byte> allocate_pages(std::size_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) std::abort();
  ::madvise(at, bytes, MADV_HUGEPAGE);
  std::memset(at, 1, bytes);
  return {static_cast<std::byte*>(at), bytes};
}

std::size_t whole(std::size_t bytes) { return (bytes + (1 << 20) - 1) >> 20 << 20; }

struct Directories {
  Path directory;
  Path local;  ///< this node's own disk; empty: straight to the directory
};

class RankBench {
 public:
  RankBench(Directories places, std::size_t bytes, std::size_t count, int rank, int world)
      : directory_(std::move(places.directory)),
        local_(std::move(places.local)),
        rank_(rank),
        world_(world),
        memory_(allocate_pages(whole(bytes))),
        share_(allocate_pages(whole(bytes / static_cast<std::size_t>(world)))) {
    auto* numbers = reinterpret_cast<float*>(memory_.data());
    for (std::size_t i = 0; i < bytes / sizeof(float); ++i)
      numbers[i] = static_cast<float>(i * 2654435761u % 1000003u);
    // Rows of 64 numbers where a tensor has as many.
    const std::size_t each = bytes / count / sizeof(float) / 64 * 64;
    for (std::size_t i = 0; i < count; ++i) {
      const std::span part = memory_.subspan(i * each * sizeof(float), each * sizeof(float));
      const Shape shape = {static_cast<std::int64_t>(each / 64), 64};
      targets_.model.push_back({format("layer{}.weight", i), DType::f32, shape, part});
    }
    contents_.parameters.assign(targets_.model.begin(), targets_.model.end());
    targets_.with_optimizer = false;
  }

  Status open() {
    checkpoint::SaverOptions options;
    options.directory = directory_;
    options.local = local_;
    options.rank = Rank{rank_};
    options.world_size = WorldSize{world_};
    options.run = "bench";
    options.writer = "1";
    options.keep_last = 0;  // only saving is measured; the bench removes old steps outside the measurement
    STOKER_ASSIGN_OR_RETURN(saver, checkpoint::Saver::create(std::move(options)));
    saver_ = std::move(saver);
    return saver_->reserve(contents_);
  }

  Status run_command(const std::string& line) {
    if (line == "save") return save();
    if (line == "raw") return raw();
    if (line == "load" || line == "cold") return load(line == "cold");
    if (line == "scan") return scan();
    if (line == "copy") return copy();
    if (line == "steps") return save_during_steps();
    return invalid("'{}' is not a command", line);
  }
  Status close() { return saver_->finish(Deadline::after(std::chrono::minutes(5))); }

 private:
  Status save() {
    contents_.step = Step{++step_};
    Stopwatch watch;
    STOKER_RETURN_IF_ERROR(saver_->save(contents_));
    const double stall = watch.seconds();
    STOKER_RETURN_IF_ERROR(saver_->wait(Deadline::after(std::chrono::minutes(5))));
    std::printf("%.6f %.6f\n", stall, watch.seconds());
    const Path before = directory_ / checkpoint::step_folder_name(Step{step_ - 1});
    return rank_ == 0 ? remove_tree(before) : Status();
  }

  double step() {
    Stopwatch watch;
    for (float& number : work_) number = number * 0.999F + 1e-3F;
    return watch.seconds();
  }
  double mean_step(int count) {
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += step();
    return sum / count;
  }

  Status save_during_steps() {
    contents_.step = Step{++step_};
    (void)mean_step(20);
    const double before = mean_step(100);
    Stopwatch watch;
    STOKER_RETURN_IF_ERROR(saver_->save(contents_));
    const double stall = watch.seconds();
    double sum = 0;
    int count = 0;
    while (saver_->is_busy()) {
      sum += step();
      ++count;
    }
    STOKER_RETURN_IF_ERROR(saver_->wait(Deadline::after(std::chrono::minutes(5))));
    std::printf("%.6f %.6f %.6f\n", stall, count > 0 ? sum / count / before : 1.0, watch.seconds());
    const Path last = directory_ / checkpoint::step_folder_name(Step{step_ - 1});
    return rank_ == 0 ? remove_tree(last) : Status();
  }

  Status raw() {
    const Path path = directory_ / format("raw-{}", rank_);
    (void)remove_file(path);
    Stopwatch watch;
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0644));
    if (!fd || ::posix_fallocate(fd.get(), 0, static_cast<off_t>(share_.size())) != 0)
      return unavailable("raw");
    constexpr std::size_t kPerCall = 16 << 20;
    for (std::size_t at = 0; at < share_.size();) {
      const std::span part = share_.subspan(at, std::min(kPerCall, share_.size() - at));
      const ssize_t n = ::pwrite(fd.get(), part.data(), part.size(), static_cast<off_t>(at));
      if (n <= 0) return unavailable("raw: writing");
      at += static_cast<std::size_t>(n);
    }
    if (::fsync(fd.get()) != 0) return unavailable("raw: syncing");
    std::printf("%.6f\n", watch.seconds());
    return remove_file(path);
  }

  Path folder() const { return directory_ / checkpoint::step_folder_name(Step{step_}); }

  Status load(bool is_cold) {
    if (is_cold) STOKER_RETURN_IF_ERROR(drop_page_cache());
    Stopwatch watch;
    STOKER_ASSIGN_OR_RETURN(loaded, checkpoint::load(folder(), {Rank{rank_}, WorldSize{world_}}, targets_));
    if (loaded.step.value != step_) return internal("another step");
    std::printf("%.6f\n", watch.seconds());
    return {};
  }

  // Drops the step's files from the page cache.
  Status drop_page_cache() const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder())) {
      if (!entry.is_regular_file()) continue;
      const Fd fd(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
      if (::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED) != 0) return unavailable("fadvise");
    }
    return {};
  }

  // One thread for each file, as many as there were ranks.
  Status scan() {
    std::vector<Path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder())) {
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
    }
    Stopwatch watch;
    std::vector<std::thread> threads;
    for (const Path& path : files) threads.emplace_back([path] { scan_file(path); });
    for (std::thread& thread : threads) thread.join();
    std::printf("%.6f\n", watch.seconds());
    return {};
  }
  static void scan_file(const Path& path) {
    constexpr std::size_t kPerCall = 4 << 20;
    const std::span buffer = allocate_pages(kPerCall);
    const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
    for (off_t at = 0;;) {
      const ssize_t n = ::pread(fd.get(), buffer.data(), buffer.size(), at);
      if (n <= 0) break;
      at += n;
    }
    ::munmap(buffer.data(), buffer.size());
  }

  Status copy() {
    Stopwatch watch;
    std::memcpy(share_.data(), memory_.data(), std::min(share_.size(), memory_.size()));
    std::printf("%.6f\n", watch.seconds());
    return {};
  }

  const Path directory_;
  const Path local_;
  const int rank_;
  const int world_;
  std::span<std::byte> memory_;
  std::span<std::byte> share_;
  checkpoint::StepContents contents_;
  checkpoint::Targets targets_;
  std::unique_ptr<checkpoint::Saver> saver_;
  std::int64_t step_ = 0;
  std::vector<float> work_ = std::vector<float>(2 << 20, 1.0F);
};

int run(RankBench& bench) {
  Status status = bench.open();
  std::printf("ready\n");
  std::fflush(stdout);
  for (std::string line; status.ok() && std::getline(std::cin, line);) {
    status = bench.run_command(line);
    std::fflush(stdout);
  }
  if (status.ok()) status = bench.close();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
  std::int64_t rank = 0;
  std::int64_t world = 1;
  const bool is_read = (argc == 6 || argc == 7) && stoker::parse_number(argv[2], &bytes) &&
                       stoker::parse_number(argv[3], &count) && stoker::parse_number(argv[4], &rank) &&
                       stoker::parse_number(argv[5], &world);
  if (!is_read || count == 0 || world < 1) {
    std::fprintf(stderr, "usage: checkpoint_save_bench DIRECTORY BYTES COUNT RANK WORLD [LOCAL]\n");
    return 2;
  }
  RankBench bench({argv[1], argc == 7 ? argv[6] : ""}, bytes, count, static_cast<int>(rank),
                  static_cast<int>(world));
  return run(bench);
}
