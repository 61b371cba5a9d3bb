#include "checkpoint/read/step_reader.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <sys/uio.h>
#include <thread>

#include "archive/safetensors.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/thread.h"

namespace stoker::checkpoint {

namespace {

// The pieces that overlap [begin, end) of a file's data, for a message.
std::string names_in(const TensorFile& file, std::uint64_t begin, std::uint64_t end) {
  constexpr int kMost = 3;
  std::string text;
  int count = 0;
  for (const Piece& piece : file.pieces) {
    if (file.header_bytes + piece.begin >= end || file.header_bytes + piece.end <= begin) continue;
    if (++count <= kMost) text += format("{}'{}'", count > 1 ? ", " : "", printable(piece.name));
  }
  if (count > kMost) text += format(" and {} more", count - kMost);
  return format("{}, written by rank {}", text.empty() ? "its header" : text, file.rank);
}

// A file of a different save may be valid in itself. A damaged header is left to the CRC-32C, which locates
// the damage.
std::string save_problem(const Path& path, const StepManifest& manifest) {
  const auto header = archive::read_safetensors_header(path);
  if (!header.ok()) return {};
  const auto save = header->metadata.find(std::string(kSaveKey));
  const std::string found = save == header->metadata.end() ? "" : printable(save->second);
  if (found != manifest.save) {
    return format("belongs to another save ({}, expected {})", found.empty() ? "not named" : found,
                  manifest.save);
  }
  return {};
}

bool header_agrees(const archive::SafetensorsHeader& header, const TensorFile& file) {
  if (header.data_begin != file.header_bytes || header.entries.size() != file.pieces.size()) return false;
  for (std::size_t i = 0; i < file.pieces.size(); ++i) {
    const archive::SafetensorsEntry& entry = header.entries[i];
    const Piece& piece = file.pieces[i];
    if (entry.name != piece.name || entry.dtype != piece.dtype || entry.shape != piece.shape) return false;
    if (entry.begin != piece.begin || entry.end != piece.end) return false;
  }
  const auto info = header.metadata.find("DCP_SHARDING_INFO");
  return info != header.metadata.end() && info->second == sharding_info(file.pieces);
}

// Reads a range of a file into several memory ranges.
Status read_scattered(const File& file, std::uint64_t offset, std::vector<iovec>& to) {
  constexpr std::size_t kMaxAtOnce = 1024;  // IOV_MAX of Linux
  for (std::size_t at = 0; at < to.size();) {
    const int count = static_cast<int>(std::min(kMaxAtOnce, to.size() - at));
    const ssize_t n = ::preadv(file.fd(), &to[at], count, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return posix_error(printable(file.path().string()), errno);
    if (n == 0) return corrupt("{}: ends at byte {}", printable(file.path().string()), offset);
    offset += static_cast<std::uint64_t>(n);
    std::size_t left = static_cast<std::size_t>(n);
    for (; at < to.size() && left >= to[at].iov_len; ++at) left -= to[at].iov_len;
    if (left == 0) continue;
    to[at].iov_base = static_cast<std::byte*>(to[at].iov_base) + left;
    to[at].iov_len -= left;
  }
  return {};
}

// Destinations for the bytes of one block: requested ones to their places, the rest to scratch memory.
class BlockPlaces {
 public:
  BlockPlaces(const TensorFile& file, const std::vector<Destination>* places)
      : file_(file), places_(places) {}

  // Memory for bytes [begin, end) of the file, in order. `scratch` is large enough for all of them.
  std::vector<iovec> iovecs_for(std::uint64_t begin, std::uint64_t end, std::byte* scratch) const {
    std::vector<iovec> to;
    const auto put = [&](std::byte* at, std::uint64_t bytes) {
      if (bytes == 0) return;
      const bool is_next =
          !to.empty() && static_cast<std::byte*>(to.back().iov_base) + to.back().iov_len == at;
      if (is_next) to.back().iov_len += bytes;
      if (!is_next) to.push_back({at, bytes});
    };
    std::uint64_t at = begin;
    for_each_wanted(
        begin, end,
        [&](const Destination& place, std::uint64_t from, std::uint64_t until, std::uint64_t skip) {
          if (place.to == nullptr) return;
          put(scratch + (at - begin), from - at);
          put(place.to + skip, until - from);
          at = until;
        });
    put(scratch + (at - begin), end - at);
    return to;
  }

  bool wants(std::uint64_t begin, std::uint64_t end) const {
    bool any = false;
    for_each_wanted(begin, end,
                    [&](const Destination&, std::uint64_t, std::uint64_t, std::uint64_t) { any = true; });
    return any;
  }

 private:
  // Calls visit(place, from, until, skip) for the requested ranges [from, until) of the file inside [begin,
  // end), in order; `skip` is the offset in the destination.
  template <typename Visit>
  void for_each_wanted(std::uint64_t begin, std::uint64_t end, Visit visit) const {
    if (places_ == nullptr || end <= file_.header_bytes) return;
    const std::uint64_t first = begin < file_.header_bytes ? 0 : begin - file_.header_bytes;
    auto piece = std::upper_bound(file_.pieces.begin(), file_.pieces.end(), first,
                                  [](std::uint64_t offset, const Piece& p) { return offset < p.end; });
    for (; piece != file_.pieces.end() && file_.header_bytes + piece->begin < end; ++piece) {
      const Destination& place = (*places_)[static_cast<std::size_t>(piece - file_.pieces.begin())];
      const std::uint64_t start = file_.header_bytes + piece->begin + place.begin;
      const std::uint64_t from = std::max(begin, start);
      const std::uint64_t until = std::min(end, file_.header_bytes + piece->begin + place.end);
      if (from < until) visit(place, from, until, from - start);
    }
  }

  const TensorFile& file_;
  const std::vector<Destination>* places_;  // null: nothing is requested
};

// A step and its folder, which outlive what reads them.
struct StepFiles {
  const Path& folder;
  const StepManifest& manifest;
};

// State of one pass over the blocks of files, shared by its threads.
class BlockPass {
 public:
  // Reads the files selected by `includes`: all without `places`, otherwise only requested ones. Opens those
  // that are not in `opened`.
  BlockPass(const StepFiles& step, const std::vector<bool>& includes, const Destinations* places,
            Progress& progress, std::vector<File> opened)
      : manifest_(step.manifest),
        places_(places),
        progress_(progress),
        files_(std::move(opened)),
        damage_(step.manifest.files.size()) {
    files_.resize(step.manifest.files.size());
    for (std::size_t i = 0; i < step.manifest.files.size(); ++i) {
      if (!includes[i]) continue;
      const TensorFile& file = step.manifest.files[i];
      if (files_[i].fd() < 0) {
        auto found = File::open_regular(step.folder / file.path);
        if (!found.ok()) {
          damage_[i] = std::string(found.error().message());
          continue;
        }
        files_[i] = std::move(*found);
      }
      for (std::size_t block = 0; block < file.blocks.size(); ++block) {
        const auto [begin, end] = bytes_of({i, block});
        // Always the first block: it contains the header.
        if (places != nullptr && block > 0 && !places_of(i).wants(begin, end)) continue;
        work_.push_back({i, block});
        total_ += end - begin;
      }
    }
  }

  void run() {
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    const std::size_t count = std::min({cores, std::size_t{8}, work_.size()});
    std::vector<Thread> threads;
    for (std::size_t i = 1; i < count; ++i) {
      threads.emplace_back([this](const StopToken&) { work(); });
    }
    work();
    // A Thread requests a stop when it joins. The bodies end with the work and do not check the token.
  }

  // The files. REQUIRES: run() has returned, and the pass ends.
  std::vector<File> take_files() { return std::move(files_); }
  // By file, "" for undamaged ones. REQUIRES: run() has returned.
  std::vector<std::string> damage() {
    const MutexLock lock(mutex_);
    return damage_;
  }

 private:
  struct Item {
    std::size_t file;
    std::size_t block;
  };
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
  };

  Range bytes_of(const Item& item) const {
    const std::uint64_t begin = item.block * kBlockBytes;
    return {begin, std::min(begin + kBlockBytes, manifest_.files[item.file].bytes)};
  }
  BlockPlaces places_of(std::size_t file) const {
    return {manifest_.files[file], places_ == nullptr ? nullptr : &(*places_)[file]};
  }

  void work() {
    std::vector<std::byte> scratch(kBlockBytes);
    for (;;) {
      const std::size_t next = next_.fetch_add(1);
      if (next >= work_.size() || progress_.stop_requested()) return;
      const auto [begin, end] = bytes_of(work_[next]);
      read_block(work_[next], begin, end, scratch.data());
      const std::uint64_t done = std::min(done_.fetch_add(end - begin) + (end - begin), total_);
      progress_.report({.done = done, .total = total_, .unit = "bytes", .bytes = {done}});
    }
  }

  void read_block(const Item& item, std::uint64_t begin, std::uint64_t end, std::byte* scratch) {
    const TensorFile& file = manifest_.files[item.file];
    const std::vector<iovec> to = places_of(item.file).iovecs_for(begin, end, scratch);
    std::vector<iovec> left = to;
    if (Status status = read_scattered(files_[item.file], begin, left); !status.ok()) {
      return found(item, std::string(status.message()));
    }
    std::uint32_t crc = 0;
    for (const iovec& part : to)
      crc = crc32c({static_cast<const std::byte*>(part.iov_base), part.iov_len}, crc);
    if (crc == file.blocks[item.block]) return;
    found(item, format("damaged between bytes {} and {} (crc32c {:08x}, expected {:08x}): {}", begin, end,
                       crc, file.blocks[item.block], names_in(file, begin, end)));
  }

  // Keeps the first damage of a file by position, whichever thread finds it.
  void found(const Item& item, std::string what) {
    const MutexLock lock(mutex_);
    std::size_t& first = first_block_.try_emplace(item.file, item.block).first->second;
    if (!damage_[item.file].empty() && first < item.block) return;
    first = item.block;
    damage_[item.file] = std::move(what);
  }

  // Constant during run().
  const StepManifest& manifest_;
  const Destinations* places_;
  Progress& progress_;
  std::uint64_t total_ = 0;
  std::vector<File> files_;
  std::vector<Item> work_;
  // Synchronized internally.
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> done_{0};
  Mutex mutex_;
  std::vector<std::string> damage_ STOKER_GUARDED_BY(mutex_);
  std::map<std::size_t, std::size_t> first_block_ STOKER_GUARDED_BY(mutex_);
};

void check_listed(const Path& folder, const StepManifest& manifest, StepPart part,
                  std::vector<StepDamage>& damages) {
  std::set<std::string> listed;
  for (const TensorFile& file : manifest.files) listed.insert(file.path);
  const auto names = list_directory(folder / to_text(part));
  if (!names.ok()) return;  // a part without tensors has no folder; missing files are reported by name
  for (const std::string& name : *names) {
    const std::string path = format("{}/{}", to_text(part), name);
    if (name.ends_with(kTensorSuffix) && !listed.contains(path)) {
      damages.push_back(
          {printable(path), "does not belong to this checkpoint, but other readers would open it"});
    }
  }
}

// Checks of one file without reading its data.
std::optional<StepDamage> check_file(const Path& folder, const StepManifest& manifest,
                                     const TensorFile& file) {
  const Path path = folder / file.path;
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(path, error);
  if (error) {
    const bool is_missing = error == std::errc::no_such_file_or_directory;
    return StepDamage{file.path,
                      is_missing ? format("rank {}'s file is missing", file.rank) : error.message()};
  }
  if (size != file.bytes) {
    return StepDamage{file.path, format("is {} bytes long, expected {}{}", size, file.bytes,
                                        size < file.bytes ? " (truncated)" : "")};
  }
  std::string what = save_problem(path, manifest);
  return what.empty() ? std::nullopt : std::optional(StepDamage{file.path, std::move(what)});
}

std::vector<StepDamage> check_included(const Path& folder, const StepManifest& manifest,
                                       const std::vector<bool>& includes) {
  std::vector<StepDamage> damages;
  std::set<StepPart> parts;
  for (std::size_t i = 0; i < manifest.files.size(); ++i) {
    if (!includes[i]) continue;
    parts.insert(part_of_path(manifest.files[i].path).value_or(StepPart::model));
    if (auto damage = check_file(folder, manifest, manifest.files[i])) damages.push_back(std::move(*damage));
  }
  for (const StepPart part : parts) check_listed(folder, manifest, part, damages);
  return damages;
}

std::vector<StepDamage> read_included(const StepFiles& step, const std::vector<bool>& includes,
                                      const Destinations* places, Progress& progress,
                                      std::vector<File>& opened) {
  const auto& [folder, manifest] = step;
  std::vector<StepDamage> damages = check_included(folder, manifest, includes);
  if (!damages.empty()) return damages;
  BlockPass pass(step, includes, places, progress, {});
  pass.run();
  const std::vector<std::string> found = pass.damage();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!includes[i]) continue;
    const TensorFile& file = manifest.files[i];
    if (!found[i].empty()) {
      damages.push_back({file.path, found[i]});
      continue;
    }
    const auto header = archive::read_safetensors_header(folder / file.path);
    if (!header.ok()) {
      damages.push_back({file.path, std::string(header.error().message())});
    } else if (!header_agrees(*header, file)) {
      damages.push_back({file.path, "header differs from the manifest"});
    }
  }
  opened = pass.take_files();
  return damages;
}

std::vector<bool> files_with(const Destinations& places) {
  std::vector<bool> includes;
  for (const std::vector<Destination>& of_file : places) {
    includes.push_back(std::ranges::any_of(of_file, [](const Destination& p) { return p.begin < p.end; }));
  }
  return includes;
}

std::vector<bool> files_of(const StepManifest& manifest, PartFilter parts) {
  std::vector<bool> includes;
  for (const TensorFile& file : manifest.files)
    includes.push_back(parts.includes(part_of_path(file.path).value_or(StepPart::model)));
  return includes;
}

}  // namespace

std::vector<StepDamage> check_files(const Path& folder, const StepManifest& manifest, PartFilter parts) {
  std::vector<StepDamage> damages = check_included(folder, manifest, files_of(manifest, parts));
  // A part without tensors must have no files either.
  for (const StepPart part : kParts) {
    const bool has_file = std::ranges::any_of(
        manifest.files, [&](const TensorFile& file) { return part_of_path(file.path) == part; });
    if (parts.includes(part) && !has_file) check_listed(folder, manifest, part, damages);
  }
  return damages;
}

std::vector<StepDamage> verify_files(const Path& folder, const StepManifest& manifest, PartFilter parts,
                                     Progress& progress) {
  std::vector<StepDamage> damages = check_files(folder, manifest, parts);
  if (!damages.empty()) return damages;
  std::vector<File> opened;
  return read_included({folder, manifest}, files_of(manifest, parts), nullptr, progress, opened);
}

std::vector<StepDamage> read_files(const Path& folder, const StepManifest& manifest,
                                   const Destinations& places, Progress& progress,
                                   std::vector<File>& opened) {
  return read_included({folder, manifest}, files_with(places), &places, progress, opened);
}

std::vector<StepDamage> fill_files(const Path& folder, const StepManifest& manifest,
                                   const Destinations& places, Progress& progress, std::vector<File> opened) {
  BlockPass pass({folder, manifest}, files_with(places), &places, progress, std::move(opened));
  pass.run();
  std::vector<StepDamage> damages;
  const std::vector<std::string> found = pass.damage();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].empty()) damages.push_back({manifest.files[i].path, found[i]});
  }
  return damages;
}

Status damage_error(const Path& folder, const std::vector<StepDamage>& damages) {
  const std::string more =
      damages.size() > 1 ? format(" (and {} more files)", damages.size() - 1) : std::string();
  return corrupt("{}: {}{}", printable(folder.string()), damages[0].text(), more)
      .cure("stoker checkpoint verify {}", shell_quote(folder.string()));
}

Result<StepManifest> read_step_manifest(const Path& folder) {
  if (!folder_exists(folder)) return not_found("{}: no such checkpoint", printable(folder.string()));
  auto manifest = read_manifest(folder);
  if (!manifest.ok() && manifest.error().code() == Code::not_found) {
    return corrupt("{}: has no manifest, so it is not a whole checkpoint", printable(folder.string()));
  }
  return manifest;
}

}  // namespace stoker::checkpoint
