#include "farm/run/output_file.h"

#include <algorithm>
#include <fcntl.h>

namespace stoker::farm {

namespace {

constexpr std::size_t kCopyBytes = 1U << 18;

}  // namespace

Result<OutputFile> OutputFile::open(const Path& farm, const std::string& worker) {
  OutputFile output;
  output.running_ = farm / "running";
  output.worker_ = worker;
  STOKER_ASSIGN_OR_RETURN(file, File::open_append(farm / "output" / (worker + ".out")));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  output.file_ = std::move(file);
  output.size_ = size;
  return output;
}

OutputFile::~OutputFile() {
  for (const Path& spool : spools_) (void)remove_file(spool);
}

Result<OutputSpool> OutputFile::take_spool() {
  if (!free_.empty()) {
    OutputSpool spool = std::move(free_.back());
    free_.pop_back();
    return spool;
  }
  const Path path = running_ / format("{}-{}.out", worker_, spools_.size());
  // A killed worker may have left it.
  STOKER_ASSIGN_OR_RETURN(file, File::open_append(path));
  STOKER_RETURN_IF_ERROR(file.truncate(0));
  spools_.push_back(path);
  return OutputSpool(std::move(file));
}

Result<OutputPlace> OutputFile::keep(OutputSpool spool) {
  STOKER_ASSIGN_OR_RETURN(length, spool.file_.size());
  OutputPlace place{.file = 0, .offset = size_, .length = length};
  if (length > 0) {
    STOKER_ASSIGN_OR_RETURN(reader, File::open_read(spool.file_.path()));
    std::string part;
    for (std::uint64_t at = 0; at < length; at += part.size()) {
      part.resize(std::min<std::uint64_t>(length - at, kCopyBytes));
      STOKER_RETURN_IF_ERROR(reader.read_at(at, std::as_writable_bytes(std::span(part))));
      const Status written = file_.write(part);
      if (!written.ok()) {
        (void)file_.truncate(size_);
        return written;
      }
    }
    size_ += length;
    STOKER_RETURN_IF_ERROR(spool.file_.truncate(0));
  }
  free_.push_back(std::move(spool));
  return place;
}

}  // namespace stoker::farm
