#include "data/pack/source/scratch_files.h"

#include <algorithm>
#include <sys/resource.h>
#include <utility>
#include <vector>

#include "format/expanded_file.h"

namespace stoker::data {

namespace {

// The soft limit of many systems, 1024, is for programs that use select().
bool may_open(std::size_t files) {
  constexpr std::size_t kOthers = 256;
  const rlim_t wanted = files + kOthers;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return true;
  limit.rlim_cur = std::min(limit.rlim_max, wanted);
  setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur >= wanted;
}

}  // namespace

ScratchFiles::ScratchFiles(Path folder, std::size_t files)
    : folder_(std::move(folder)), are_apart_(may_open(files)) {}

Result<ScratchFile> ScratchFiles::keep(File file) {
  if (are_apart_) return ScratchFile{std::make_shared<const File>(std::move(file))};
  constexpr std::uint64_t kPiece = 4u << 20;
  OK_OR_RETURN(size, file.size());
  std::vector<std::byte> piece(std::min(kPiece, size));
  MutexLock lock(mutex_);
  if (!common_) {
    OK_OR_RETURN(made, formats::nameless_file(folder_));
    common_ = std::make_shared<File>(std::move(made));
  }
  const std::uint64_t begin = end_;
  for (std::uint64_t at = 0; at < size; at += piece.size()) {
    piece.resize(std::min(kPiece, size - at));
    RETURN_IF_ERROR(file.read_at(at, piece));
    RETURN_IF_ERROR(common_->write_at(begin + at, piece));
  }
  end_ += size;
  return ScratchFile{common_, begin};
}

}  // namespace stoker::data
