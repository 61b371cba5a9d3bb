#include "sources/shards/scratch_files.h"

#include <algorithm>
#include <sys/resource.h>
#include <utility>
#include <vector>

#include "archive/decompress_file.h"

namespace stoker::sources {

namespace {

// The usual soft limit of 1024 is for programs with select().
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
    : folder_(std::move(folder)), keeps_files_open_(may_open(files)) {}

Result<ScratchFile> ScratchFiles::keep(File file) {
  if (keeps_files_open_) return ScratchFile{std::make_shared<const File>(std::move(file))};
  constexpr std::uint64_t kPiece = 4u << 20;
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  std::vector<std::byte> piece(std::min(kPiece, size));
  MutexLock lock(mutex_);
  if (!common_) {
    STOKER_ASSIGN_OR_RETURN(made, archive::create_unnamed_file(folder_));
    common_ = std::make_shared<File>(std::move(made));
  }
  const std::uint64_t begin = end_;
  for (std::uint64_t at = 0; at < size; at += piece.size()) {
    piece.resize(std::min(kPiece, size - at));
    STOKER_RETURN_IF_ERROR(file.read_at(at, piece));
    STOKER_RETURN_IF_ERROR(common_->write_at(begin + at, piece));
  }
  end_ += size;
  return ScratchFile{common_, begin};
}

}  // namespace stoker::sources
