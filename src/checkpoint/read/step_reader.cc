#include "checkpoint/read/step_reader.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "base/file.h"
#include "base/hash.h"
#include "base/thread.h"
#include "format/safetensors.h"

namespace stoker::checkpoint {

namespace {

// Pieces that touch [begin, end) of a file's data, as a message shows them.
std::string names_in(const ShardFile& file, std::uint64_t begin, std::uint64_t end) {
  constexpr int kMost = 3;
  std::string text;
  int count = 0;
  for (const Piece& piece : file.pieces) {
    if (file.header_bytes + piece.begin >= end || file.header_bytes + piece.end <= begin) continue;
    if (++count <= kMost) text += format("{}'{}'", count > 1 ? ", " : "", printable(piece.name));
  }
  if (count > kMost) text += format(" and {} more", count - kMost);
  return text.empty() ? "its header" : text;
}

// A file of another save may be whole in itself. A damaged header is left to the CRC-32C, which names the
// place.
std::string save_problem(const Path& path, const Manifest& manifest) {
  const auto header = formats::read_safetensors_header(path);
  if (!header.ok()) return {};
  const auto save = header->metadata.find(std::string(kSaveKey));
  const std::string found = save == header->metadata.end() ? "" : printable(save->second);
  if (found != manifest.save) {
    return format("belongs to another save ({}, expected {})", found.empty() ? "not named" : found,
                  manifest.save);
  }
  return {};
}

bool header_agrees(const formats::SafetensorsHeader& header, const ShardFile& file) {
  if (header.data_begin != file.header_bytes || header.entries.size() != file.pieces.size()) return false;
  for (std::size_t i = 0; i < file.pieces.size(); ++i) {
    const formats::SafetensorsEntry& entry = header.entries[i];
    const Piece& piece = file.pieces[i];
    if (entry.name != piece.name || entry.dtype != piece.dtype || entry.shape != piece.shape) return false;
    if (entry.begin != piece.begin || entry.end != piece.end) return false;
  }
  const auto info = header.metadata.find("DCP_SHARDING_INFO");
  return info != header.metadata.end() && info->second == sharding_info(file.pieces);
}

// The state of one pass over all blocks of all files, shared by its threads.
class BlockPass {
 public:
  BlockPass(const Path& folder, const Manifest& manifest, PartFilter parts, const PieceSink& sink,
            Progress& progress)
      : manifest_(manifest),
        sink_(sink),
        progress_(progress),
        files_(manifest.files.size()),
        damage_(manifest.files.size()) {
    for (std::size_t i = 0; i < manifest.files.size(); ++i) {
      const ShardFile& file = manifest.files[i];
      if (!parts.includes(part_of_path(file.path).value_or(Part::model))) continue;
      auto opened = File::open_read(folder / file.path);
      if (!opened.ok()) {
        damage_[i] = std::string(opened.error().message());
        continue;
      }
      files_[i] = std::move(*opened);
      total_ += file.bytes;
      for (std::size_t block = 0; block < file.blocks.size(); ++block) work_.push_back({i, block});
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
    // A Thread asks to stop and joins; the bodies end when the work does and look at no token.
  }

  // By file, "" where nothing was found. REQUIRES: run() has returned.
  std::vector<std::string> damage() {
    const MutexLock lock(mutex_);
    return damage_;
  }

 private:
  struct Item {
    std::size_t file;
    std::size_t block;
  };

  void work() {
    std::vector<std::byte> buffer(kBlockBytes);
    for (;;) {
      const std::size_t next = next_.fetch_add(1);
      if (next >= work_.size() || progress_.stop_requested()) return;
      read_block(work_[next], buffer);
      const std::uint64_t block = std::min(kBlockBytes, manifest_.files[work_[next].file].bytes);
      const std::uint64_t done = std::min(done_.fetch_add(block) + block, total_);
      progress_.report({.done = done, .total = total_, .unit = "bytes", .bytes = {done}});
    }
  }

  void read_block(const Item& item, std::vector<std::byte>& buffer) {
    const ShardFile& file = manifest_.files[item.file];
    const std::uint64_t begin = item.block * kBlockBytes;
    const std::uint64_t end = std::min(begin + kBlockBytes, file.bytes);
    const std::span bytes = std::span(buffer).first(end - begin);
    if (Status status = files_[item.file].read_at(begin, bytes); !status.ok()) {
      return found(item, std::string(status.message()));
    }
    const std::uint32_t crc = crc32c(bytes);
    if (crc != file.blocks[item.block]) {
      return found(item, format("damaged between bytes {} and {} (crc32c {:08x}, expected {:08x}): {}", begin,
                                end, crc, file.blocks[item.block], names_in(file, begin, end)));
    }
    if (sink_) scatter(item, begin, bytes);
  }

  // Hands the block's bytes to the sink, piece by piece.
  void scatter(const Item& item, std::uint64_t begin, std::span<const std::byte> bytes) {
    const ShardFile& file = manifest_.files[item.file];
    const std::uint64_t skipped = begin < file.header_bytes ? file.header_bytes - begin : 0;
    if (skipped >= bytes.size()) return;
    bytes = bytes.subspan(skipped);
    std::uint64_t at = begin + skipped - file.header_bytes;
    auto piece = std::upper_bound(file.pieces.begin(), file.pieces.end(), at,
                                  [](std::uint64_t offset, const Piece& p) { return offset < p.end; });
    for (; !bytes.empty() && piece != file.pieces.end(); ++piece) {
      const std::size_t n = std::min<std::uint64_t>(bytes.size(), piece->end - at);
      if (n == 0) continue;
      sink_(item.file, static_cast<std::size_t>(piece - file.pieces.begin()), at - piece->begin,
            bytes.first(n));
      bytes = bytes.subspan(n);
      at += n;
    }
  }

  // Keeps the first damage of a file, by place, whatever thread finds it.
  void found(const Item& item, std::string what) {
    const MutexLock lock(mutex_);
    std::size_t& first = first_block_.try_emplace(item.file, item.block).first->second;
    if (!damage_[item.file].empty() && first < item.block) return;
    first = item.block;
    damage_[item.file] = std::move(what);
  }

  // Constant while run() runs.
  const Manifest& manifest_;
  const PieceSink& sink_;
  Progress& progress_;
  std::uint64_t total_ = 0;
  std::vector<File> files_;
  std::vector<Item> work_;
  // Own synchronization.
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> done_{0};
  Mutex mutex_;
  std::vector<std::string> damage_ GUARDED_BY(mutex_);
  std::map<std::size_t, std::size_t> first_block_ GUARDED_BY(mutex_);
};

void check_listed(const Path& folder, const Manifest& manifest, Part part, std::vector<Damage>& damages) {
  std::set<std::string> listed;
  for (const ShardFile& file : manifest.files) listed.insert(file.path);
  const auto names = list_directory(folder / to_text(part));
  if (!names.ok()) return;  // a part without tensors has no folder; missing files are reported by name
  for (const std::string& name : *names) {
    const std::string path = format("{}/{}", to_text(part), name);
    if (name.ends_with(kTensorSuffix) && !listed.contains(path)) {
      damages.push_back(
          {printable(path), "does not belong to this checkpoint, though other readers would open it"});
    }
  }
}

}  // namespace

std::vector<Damage> check_files(const Path& folder, const Manifest& manifest, PartFilter parts) {
  std::vector<Damage> damages;
  for (const ShardFile& file : manifest.files) {
    if (!parts.includes(part_of_path(file.path).value_or(Part::model))) continue;
    const Path path = folder / file.path;
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(path, error);
    if (error) {
      const bool is_missing = error == std::errc::no_such_file_or_directory;
      damages.push_back(
          {file.path, is_missing ? format("rank {}'s file is missing", file.rank) : error.message()});
    } else if (size != file.bytes) {
      damages.push_back({file.path, format("is {} bytes long, expected {}{}", size, file.bytes,
                                           size < file.bytes ? " (cut off)" : "")});
    } else if (std::string what = save_problem(path, manifest); !what.empty()) {
      damages.push_back({file.path, std::move(what)});
    }
  }
  for (const Part part : kParts) {
    if (parts.includes(part)) check_listed(folder, manifest, part, damages);
  }
  return damages;
}

std::vector<Damage> read_files(const Path& folder, const Manifest& manifest, PartFilter parts,
                               const PieceSink& sink) {
  NoProgress progress;
  return read_files(folder, manifest, parts, sink, progress);
}

std::vector<Damage> read_files(const Path& folder, const Manifest& manifest, PartFilter parts,
                               const PieceSink& sink, Progress& progress) {
  std::vector<Damage> damages = check_files(folder, manifest, parts);
  if (!damages.empty()) return damages;
  BlockPass pass(folder, manifest, parts, sink, progress);
  pass.run();
  const std::vector<std::string> found = pass.damage();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const ShardFile& file = manifest.files[i];
    if (!found[i].empty()) {
      damages.push_back({file.path, found[i]});
      continue;
    }
    if (!parts.includes(part_of_path(file.path).value_or(Part::model))) continue;
    const auto header = formats::read_safetensors_header(folder / file.path);
    if (!header.ok()) {
      damages.push_back({file.path, std::string(header.error().message())});
    } else if (!header_agrees(*header, file)) {
      damages.push_back({file.path, "its header is not the one of the manifest"});
    }
  }
  return damages;
}

Status damage_error(const Path& folder, const std::vector<Damage>& damages) {
  const std::string more =
      damages.size() > 1 ? format(" (and {} more files)", damages.size() - 1) : std::string();
  return corrupt("{}: {}{}", printable(folder.string()), damages[0].text(), more)
      .cure("stoker checkpoint verify {}", shell_quote(folder.string()));
}

Result<Manifest> manifest_of_step(const Path& folder) {
  if (!folder_exists(folder)) return not_found("{}: no such checkpoint", printable(folder.string()));
  auto manifest = read_manifest(folder);
  if (!manifest.ok() && manifest.error().code() == Code::not_found) {
    return corrupt("{}: has no manifest, so it is not a whole checkpoint", printable(folder.string()));
  }
  return manifest;
}

}  // namespace stoker::checkpoint
