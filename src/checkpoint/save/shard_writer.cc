#include "checkpoint/save/shard_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "checkpoint/save/page_buffer.h"

namespace stoker::checkpoint {

namespace {

Shape shape_of(const TensorInfo& tensor, const Slice& slice) {
  Shape shape = tensor.shape;
  if (!shape.empty()) shape[0] = slice.rows;
  return shape;
}

// Requests direct I/O: the page cache is better used for training data.
bool set_direct(const File& file, bool on) {
  const int flags = ::fcntl(file.fd(), F_GETFL);
  return flags >= 0 && ::fcntl(file.fd(), F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

// Writes whole pages directly, or through the page cache once the filesystem rejects direct I/O.
class PageWriter {
 public:
  explicit PageWriter(File& file) : file_(file), is_direct_(set_direct(file, true)) {}

  Status write(std::uint64_t offset, std::span<const std::byte> pages) {
    if (is_direct_) {
      // A rejection comes before anything is written: EINVAL concerns alignment or support, not data.
      const ssize_t n = ::pwrite(file_.fd(), pages.data(), pages.size(), static_cast<off_t>(offset));
      if (n == static_cast<ssize_t>(pages.size())) return {};
      if (n < 0 && errno != EINVAL && errno != EINTR)
        return posix_error(printable(file_.path().string()), errno);
      is_direct_ = false;
      if (!set_direct(file_, false)) return posix_error(printable(file_.path().string()), errno);
    }
    return file_.write_at(offset, pages);
  }

 private:
  File& file_;
  bool is_direct_;
};

// CRC-32C of each block of header and data, concatenated.
class BlockChecksums {
 public:
  void add(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const std::size_t n = std::min<std::size_t>(bytes.size(), kBlockBytes - filled_);
      crc_ = crc32c(bytes.first(n), crc_);
      filled_ += n;
      bytes = bytes.subspan(n);
      if (filled_ == kBlockBytes) end_block();
    }
  }
  std::vector<std::uint32_t> finish() {
    if (filled_ != 0) end_block();
    return std::move(sums_);
  }

 private:
  void end_block() {
    sums_.push_back(crc_);
    crc_ = 0;
    filled_ = 0;
  }
  std::vector<std::uint32_t> sums_;
  std::uint32_t crc_ = 0;
  std::uint64_t filled_ = 0;
};

Status copy_timeout(const Path& path) {
  return timeout("{}: the tensors were not copied in time", printable(path.string()));
}

Status write_all(File& file, std::string_view header, const ShardData& data, const StopToken& stop) {
  const std::uint64_t size = header.size() + data.bytes.size();
  STOKER_RETURN_IF_ERROR(file.reserve(size));
  STOKER_ASSIGN_OR_RETURN(head, PageBuffer::create(header.size()));
  std::memcpy(head.bytes().data(), header.data(), header.size());
  PageWriter writer(file);
  STOKER_RETURN_IF_ERROR(writer.write(0, head.bytes()));
  constexpr std::size_t kPerCall = 16 << 20;
  for (std::size_t done = 0; done < data.bytes.size(); done += kPerCall) {
    if (stop.stop_requested())
      return cancelled("{}: interrupted while writing", printable(file.path().string()));
    const std::size_t n = std::min(kPerCall, data.bytes.size() - done);
    if (!data.copy_progress.wait(done + n, data.deadline)) return copy_timeout(file.path());
    const std::span pages(data.bytes.data() + done, whole_pages(n));
    STOKER_RETURN_IF_ERROR(writer.write(header.size() + done, pages));
  }
  STOKER_RETURN_IF_ERROR(file.truncate(size));  // the last page was written whole
  STOKER_RETURN_IF_ERROR(file.sync());
  return file.close();
}

}  // namespace

Result<ShardPlan> plan_shard(const PartPlan& part) {
  std::vector<archive::SafetensorsEntry> entries;
  std::vector<Piece> pieces;
  std::map<std::string_view, std::size_t> slices;
  for (std::size_t i = 0; i < part.own_slices.size(); ++i) {
    const TensorInfo& tensor = part.tensors[part.own_slices[i].tensor];
    entries.push_back({tensor.name, tensor.dtype, shape_of(tensor, part.own_slices[i]), 0, 0});
    pieces.push_back({tensor.name, tensor.dtype, tensor.shape, part.own_slices[i].first_row, 0, 0});
    slices.emplace(tensor.name, i);
  }
  STOKER_ASSIGN_OR_RETURN(
      file, archive::plan_safetensors(std::move(entries), {{"DCP_SHARDING_INFO", sharding_info(pieces)},
                                                           {"DCP_VERSION", "1.0"},
                                                           {"format", "pt"},
                                                           {std::string(kSaveKey), ""}}));
  ShardPlan plan{std::move(file), {}};
  for (const auto& entry : plan.file.header.entries) plan.order.push_back(slices.at(entry.name));
  return plan;
}

std::vector<Piece> pieces_of(const ShardPlan& shard, const PartPlan& part) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < shard.order.size(); ++i) {
    const archive::SafetensorsEntry& entry = shard.file.header.entries[i];
    pieces.push_back({entry.name, entry.dtype, entry.shape, part.own_slices[shard.order[i]].first_row,
                      entry.begin, entry.end});
  }
  return pieces;
}

Result<std::vector<std::uint32_t>> write_shard(const Path& path, std::string_view header,
                                               const ShardData& data, const StopToken& stop) {
  const Path part = path.string() + ".part";
  STOKER_ASSIGN_OR_RETURN(file, File::create_new(part));
  BlockChecksums sums;
  bool is_summed = false;
  // Parallel to the write, which mostly waits for the disk; but after the copy, which blocks the training.
  Thread summing([&](const StopToken&) {
    if (!data.copy_progress.wait(data.bytes.size(), data.deadline)) return;
    sums.add(std::as_bytes(std::span(header.data(), header.size())));
    sums.add(data.bytes);
    is_summed = true;
  });
  Status status = write_all(file, header, data, stop);
  summing.join();
  if (status.ok() && !is_summed) status = copy_timeout(path);
  if (status.ok()) status = rename_path(part, path);
  if (!status.ok()) {
    (void)remove_file(part);
    return status;
  }
  return sums.finish();
}

}  // namespace stoker::checkpoint
