// The nodes exchange two streams:
//   1. the list of all files, which the first node made
//   2. the bytes of all files, one after the other, which all nodes read from the source
// Bytes are written straight into files in a pending folder, and read there for peers. Archives are exchanged
// as files, and unpacked from the copy. At the end the files get their modes, times and links, and appear in
// the folder by rename, as in write.cc.
#include "stage/broadcast/broadcast_tree.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>

#include "stage/broadcast/hashed_stream.h"
#include "stage/broadcast/tree_list.h"
#include "stage/list_tree.h"
#include "stage/publish.h"
#include "stage/unpack.h"
#include "stage/write.h"

namespace stoker::stage {
namespace {

using namespace std::chrono_literals;

constexpr Duration kExchangeStep = 50ms;

// The list, in memory.
class ListStream final : public HashedStream {
 public:
  ListStream(std::uint64_t bytes, std::string text) : HashedStream(bytes), text_(std::move(text)) {
    is_source_ = !text_.empty();
    text_.resize(bytes);
  }
  bool is_source() const { return is_source_; }
  const std::string& text() const { return text_; }

 protected:
  Status read_source(std::uint64_t offset, std::span<std::byte> out) override {
    if (!is_source_) return unavailable("only the first node has the list");
    return read_kept(offset, out);
  }
  Status keep(std::uint64_t offset, std::span<const std::byte> bytes) override {
    if (!is_source_) std::ranges::copy(bytes, part(offset, bytes.size()).begin());
    return {};
  }
  void is_kept(std::uint64_t, std::span<const std::byte>) override {}
  Status read_kept(std::uint64_t offset, std::span<std::byte> out) override {
    std::ranges::copy(part(offset, out.size()), out.begin());
    return {};
  }

 private:
  std::span<std::byte> part(std::uint64_t offset, std::size_t bytes) {
    return std::as_writable_bytes(std::span(text_)).subspan(offset, bytes);
  }

  bool is_source_ = false;
  std::string text_;
};

// The bytes of all files of a list.
class TreeStream final : public HashedStream {
 public:
  struct Folders {
    Path copies;    // pending
    Path archives;  // pending
    Path target;    // of the copies
  };

  TreeStream(TreeList list, std::map<std::string, Path> sources, Folders folders, bool has_listed)
      : HashedStream(list.bytes),
        list_(std::move(list)),
        sources_(std::move(sources)),
        folders_(std::move(folders)),
        has_listed_(has_listed) {
    for (const auto* entries : {&list_.copies, &list_.archives}) {
      for (const ArchiveEntry& entry : *entries) {
        if (entry.kind == EntryKind::file && entry.bytes > 0) files_.push_back(&entry);
      }
    }
    crcs_.resize(files_.size());
  }

  // Before the first byte.
  Status make_all_folders() const {
    STOKER_RETURN_IF_ERROR(make_folders(list_.copies, folders_.copies));
    return make_folders(list_.archives, folders_.archives);
  }

  // After the last byte. The result counts the copies, not the archives.
  Result<TransferStats> finish() {
    seal();
    TransferStats stats;
    for (const auto* entries : {&list_.copies, &list_.archives}) {
      for (const ArchiveEntry& entry : *entries) {
        if (entry.kind != EntryKind::file) continue;
        STOKER_ASSIGN_OR_RETURN(file, entry.bytes > 0 ? File::open_read_write(kept_path(entry))
                                                      : File::create_new(kept_path(entry)));
        STOKER_RETURN_IF_ERROR(finish_file(file, entry));
        STOKER_RETURN_IF_ERROR(file.close());
      }
    }
    STOKER_ASSIGN_OR_RETURN(links, finish_tree(list_.copies, folders_.copies));
    STOKER_RETURN_IF_ERROR(finish_tree(list_.archives, folders_.archives).status());
    std::size_t next = 0;
    for (const ArchiveEntry& entry : list_.copies) {
      if (entry.kind != EntryKind::file) continue;
      stats.files += 1;
      stats.bytes += entry.bytes;
      stats.fingerprint += fingerprint_of(entry.name, entry.bytes, entry.bytes > 0 ? crcs_[next++] : 0);
    }
    stats += links;
    return stats;
  }

  // The copies are in their target.
  void published() { is_published_ = true; }

 protected:
  Status read_source(std::uint64_t offset, std::span<std::byte> out) override {
    for (std::size_t i = file_at(offset); !out.empty(); ++i) {
      const ArchiveEntry& entry = *files_[i];
      const auto part = out.first(part_bytes(entry, offset, out.size()));
      Status status = read_part(entry, offset - entry.data_position, part);
      if (!status.ok()) return status;
      offset += part.size();
      out = out.subspan(part.size());
    }
    return {};
  }

  Status keep(std::uint64_t offset, std::span<const std::byte> bytes) override {
    for (std::size_t i = file_at(offset); !bytes.empty(); ++i) {
      const ArchiveEntry& entry = *files_[i];
      const auto part = bytes.first(part_bytes(entry, offset, bytes.size()));
      const Path path = kept_path(entry);
      auto file = File::create_new(path);
      if (file.status().code() == Code::exists) file = File::open_read_write(path);
      STOKER_RETURN_IF_ERROR(file.status());
      STOKER_RETURN_IF_ERROR(file->write_at(offset - entry.data_position, part));
      STOKER_RETURN_IF_ERROR(file->close());
      offset += part.size();
      bytes = bytes.subspan(part.size());
    }
    return {};
  }

  void is_kept(std::uint64_t offset, std::span<const std::byte> bytes) override {
    for (std::size_t i = file_at(offset); !bytes.empty(); ++i) {
      const ArchiveEntry& entry = *files_[i];
      const auto part = bytes.first(part_bytes(entry, offset, bytes.size()));
      const std::uint64_t behind = entry.data_position + entry.bytes - offset - part.size();
      // The CRC of a file is the sum of its parts' CRCs, each moved to its place.
      crcs_[i] ^= crc32c_combine(crc32c(part), 0, behind);
      offset += part.size();
      bytes = bytes.subspan(part.size());
    }
  }

  Status read_kept(std::uint64_t offset, std::span<std::byte> out) override {
    for (std::size_t i = file_at(offset); !out.empty(); ++i) {
      const ArchiveEntry& entry = *files_[i];
      const auto part = out.first(part_bytes(entry, offset, out.size()));
      auto file = File::open_read(kept_path(entry));
      // It may be published at this moment.
      if (file.status().code() == Code::not_found) file = File::open_read(folders_.target / entry.name);
      STOKER_RETURN_IF_ERROR(file.status());
      STOKER_RETURN_IF_ERROR(file->read_at(offset - entry.data_position, part));
      offset += part.size();
      out = out.subspan(part.size());
    }
    return {};
  }

 private:
  // Position in files_ of the one that has this byte.
  std::size_t file_at(std::uint64_t offset) const {
    const auto behind = std::ranges::upper_bound(
        files_, offset, {}, [](const ArchiveEntry* entry) { return entry->data_position; });
    return static_cast<std::size_t>(behind - files_.begin()) - 1;
  }

  static std::uint64_t part_bytes(const ArchiveEntry& entry, std::uint64_t offset, std::uint64_t most) {
    return std::min(most, entry.data_position + entry.bytes - offset);
  }

  Path kept_path(const ArchiveEntry& entry) const {
    if (is_listed_archive(entry)) return folders_.archives / entry.name;
    return (is_published_ ? folders_.target : folders_.copies) / entry.name;
  }

  Status read_part(const ArchiveEntry& entry, std::uint64_t offset, std::span<std::byte> out) {
    STOKER_ASSIGN_OR_RETURN(path, source_in(sources_, entry));
    const auto file = File::open_regular(path);
    Status status = file.status();
    if (status.ok()) status = check_unchanged(*file, entry);
    if (status.ok()) status = file->read_at(offset, out);
    if (status.ok()) status = check_unchanged(*file, entry);
    if (status.ok()) return status;
    // This node made the list, so the file has changed. A different node may see an old state of it.
    return has_listed_ ? fail(std::move(status)) : unavailable("{}", status.message());
  }

  const TreeList list_;
  const std::map<std::string, Path> sources_;
  const Folders folders_;
  const bool has_listed_;
  std::vector<const ArchiveEntry*> files_;  // with bytes, in the order of the stream
  std::vector<std::uint32_t> crcs_;         // of files_; of is_kept()
  std::atomic<bool> is_published_ = false;
};

// Each source for itself, so that the error names the one that does not fit.
Status check_room(const TreeList& list, const Path& folder) {
  std::map<std::string, SpaceNeeded> needs;
  SpaceNeeded all{.files = 0, .bytes = list.bytes};
  for (const auto* entries : {&list.copies, &list.archives}) {
    for (const ArchiveEntry& entry : *entries) {
      const bool is_copy = entries == &list.copies;
      SpaceNeeded& need =
          needs[is_copy ? entry.name.substr(0, entry.name.find('/')) : Path(entry.name).filename().string()];
      need.files += 1;
      need.bytes += entry.bytes;
      all.files += 1;
    }
  }
  for (const auto& [name, need] : needs)
    STOKER_RETURN_IF_ERROR(check_free_space(printable(name), need, folder));
  return check_free_space("stage", all, folder);
}

}  // namespace

ListHead head_of(const std::string& list) {
  if (list.size() > kLargestList) return {};
  return {.bytes = list.size(), .hash = hex(sha256(list))};
}

class TreeBroadcast::Impl {
 public:
  Impl(const StageRequest& request, const Path& folder, BroadcastNodes nodes)
      : request_(request), folder_(folder), nodes_(std::move(nodes)) {}
  ~Impl() { end(); }

  Result<TransferStats> run(const ListHead& head, std::string list, Progress& progress) {
    auto stats = run_together(head, std::move(list), progress);
    if (!note_.empty()) {
      end();
      return stage_in(request_, folder_, progress);
    }
    if (!stats.ok()) return with_room_cure(stats.status());
    return stats;
  }

  const std::string& note() const { return note_; }

 private:
  void end() {
    for (auto* swarm : {&tree_swarm_, &list_swarm_}) {
      if (*swarm) nodes_.server->remove(**swarm);
      swarm->reset();
    }
    tree_.reset();
    copies_.reset();
    archives_.reset();
  }

  // The reason to stage alone.
  Status alone(Status reason) {
    note_ = std::string(reason.message());
    return reason;
  }

  Result<TransferStats> run_together(const ListHead& head, std::string text, Progress& progress) {
    if (head.bytes == 0) return alone(unavailable("the first node cannot send its list"));
    list_.emplace(head.bytes, std::move(text));
    STOKER_RETURN_IF_ERROR(exchange({"list", head.hash}, *list_, list_->is_source(), list_swarm_, progress));
    if (hex(sha256(list_->text())) != head.hash) return alone(corrupt("the list has a different hash"));
    STOKER_ASSIGN_OR_RETURN(list, parse_tree_list(list_->text()));
    STOKER_RETURN_IF_ERROR(check_room(list, folder_));
    STOKER_ASSIGN_OR_RETURN(sources, tree_sources(request_));
    STOKER_ASSIGN_OR_RETURN(copies, PendingFolder::create(folder_));
    copies_.emplace(std::move(copies));
    STOKER_ASSIGN_OR_RETURN(archives, PendingFolder::create(folder_));
    archives_.emplace(std::move(archives));
    tree_.emplace(std::move(list), std::move(sources),
                  TreeStream::Folders{copies_->path(), archives_->path(), folder_}, list_->is_source());
    STOKER_RETURN_IF_ERROR(tree_->make_all_folders());
    STOKER_RETURN_IF_ERROR(exchange({"files", head.hash}, *tree_, false, tree_swarm_, progress));
    STOKER_ASSIGN_OR_RETURN(stats, tree_->finish());
    for (std::size_t i = 0; i < request_.unpack.size(); ++i) {
      STOKER_ASSIGN_OR_RETURN(unpacked, unpack(archives_->path() / archive_name(request_, i), folder_,
                                               {.links = request_.links}, progress));
      stats += unpacked;
    }
    STOKER_RETURN_IF_ERROR(std::move(*copies_).publish());
    tree_->published();
    stats.received_bytes = share_of(stats.bytes);
    return stats;
  }

  struct StreamName {
    std::string_view kind;
    std::string_view hash;
  };
  Status exchange(StreamName name, HashedStream& stream, bool has_all, std::unique_ptr<Swarm>& swarm,
                  Progress& progress) {
    if (stream.pieces().empty()) return {};
    if (has_all) STOKER_RETURN_IF_ERROR(stream.keep_all());
    swarm = std::make_unique<Swarm>(SwarmPlan{.node = nodes_.node,
                                              .addresses = nodes_.addresses,
                                              .secret = nodes_.secret,
                                              .dataset = format("{} {}", name.kind, name.hash.substr(0, 40)),
                                              .pieces = stream.pieces(),
                                              .rate = nodes_.rate,
                                              .limits = nodes_.limits},
                                    stream);
    nodes_.server->add(*swarm);
    const PieceRange all{0, static_cast<std::uint32_t>(stream.pieces().size())};
    if (has_all) {
      swarm->has(all);
    } else {
      swarm->wants(all);
    }
    swarm->joined();
    while (swarm->left() > 0) {
      const Status status = swarm->wait(Deadline::after(kExchangeStep));
      STOKER_RETURN_IF_ERROR(stream.problem());
      STOKER_RETURN_IF_ERROR(status);
      if (progress.stop_requested()) return cancelled("stage: interrupted");
      if (Status lost = stream.lost(); !lost.ok()) return alone(std::move(lost));
      const std::uint64_t done = stream.kept_bytes();
      progress.report({.done = done, .total = stream.bytes(), .unit = "bytes", .bytes = {done}});
    }
    return {};
  }

  // Of these bytes, which are more than those exchanged if an archive is compressed: from other nodes.
  std::uint64_t share_of(std::uint64_t bytes) const {
    const std::uint64_t received = tree_->received_bytes();
    if (bytes == tree_->bytes() || tree_->bytes() == 0) return received;
    return static_cast<std::uint64_t>(static_cast<double>(received) / static_cast<double>(tree_->bytes()) *
                                      static_cast<double>(bytes));
  }

  const StageRequest request_;
  const Path folder_;
  const BroadcastNodes nodes_;
  std::string note_;
  std::optional<ListStream> list_;
  std::optional<PendingFolder> copies_;
  std::optional<PendingFolder> archives_;
  std::optional<TreeStream> tree_;
  std::unique_ptr<Swarm> list_swarm_;
  std::unique_ptr<Swarm> tree_swarm_;
};

TreeBroadcast::TreeBroadcast(const StageRequest& request, const Path& folder, BroadcastNodes nodes)
    : impl_(std::make_unique<Impl>(request, folder, std::move(nodes))) {}
TreeBroadcast::~TreeBroadcast() = default;
Result<TransferStats> TreeBroadcast::run(const ListHead& head, std::string list, Progress& progress) {
  return impl_->run(head, std::move(list), progress);
}
const std::string& TreeBroadcast::note() const { return impl_->note(); }

}  // namespace stoker::stage
