#include "pack/index/shard_reading.h"

#include <algorithm>
#include <atomic>

#include "archive/tfrecord.h"
#include "base/json/json.h"
#include "base/thread.h"
#include "codec/chunks/chunk_reader.h"
#include "sources/arrays/array_scan.h"
#include "sources/tables/class_names.h"

namespace stoker::pack {

namespace {

constexpr std::uint64_t kLabelLimit = 1u << 20;

// Reads a shard once, sequentially, and computes hashes and CRCs.
class ShardReader {
  // A member and its number in the shard.
  struct Numbered {
    const sources::ShardMember* member = nullptr;
    std::size_t number = 0;
    codec::ChunkMap::ReadKey turn = {};
  };

 public:
  ShardReader(const Path& folder, const ReadShardsOptions& how, ScannedShard& work)
      : path_(folder / work.entry.file),
        how_(how),
        work_(work),
        has_records_(sources::kind_of_shard(work.entry.file) == dataset::ContainerKind::tfrecord) {}

  template <typename ProgressFunction>
  Status run(const ProgressFunction& report_progress) {
    Result<sources::ShardScan> scan = this->scan();
    if (!scan.ok()) return scan.status();
    work_.scan = std::move(*scan);
    for (const sources::ShardSample& sample : work_.scan.samples) {
      for (const sources::ShardMember& member : sample.members)
        members_.push_back({&member, members_.size()});
    }
    // Members of a Parquet file are sorted by offset; windows over grids are already in chunk order.
    const codec::ChunkMap* const chunks = work_.scan.chunks.get();
    const bool has_windows = chunks != nullptr && chunks->has_windows() && !chunks->has_columns();
    const bool is_shared = chunks != nullptr && chunks->shares_chunks();
    for (Numbered& member : members_) {
      const std::uint64_t at = member.member->data_offset;
      member.turn = is_shared ? chunks->read_key(at) : codec::ChunkMap::ReadKey{.at = at};
    }
    const auto is_before = [](const Numbered& a, const Numbered& b) { return a.turn < b.turn; };
    if (!has_windows) std::stable_sort(members_.begin(), members_.end(), is_before);
    work_.crcs.assign(members_.size(), 0);
    STOKER_ASSIGN_OR_RETURN(
        file, codec::ShardFile::open(
                  path_, work_.scan.chunks ? work_.scan.chunks->parts() : std::vector<codec::ShardPart>()));
    std::vector<std::byte> buffer(dataset::kHashBlock);
    for (std::uint64_t at = 0; at < work_.scan.bytes; at += dataset::kHashBlock) {
      const auto block = std::span(buffer).first(std::min(dataset::kHashBlock, work_.scan.bytes - at));
      STOKER_RETURN_IF_ERROR(file.read_at(at, block));
      work_.blocks.push_back(dataset::block_digest(how_.hash, block));
      if (!work_.scan.chunks) feed(at, block);
      if (has_records_) STOKER_RETURN_IF_ERROR(check_records(at, block));
      if (!report_progress(block.size())) return cancelled("stopped");
    }
    if (work_.scan.chunks) STOKER_RETURN_IF_ERROR(read_chunks(file, report_progress));
    return read_labels(file);
  }

 private:
  Result<sources::ShardScan> scan() const {
    if (how_.options.windows) return scan_windows(path_, printable(work_.entry.file), *how_.options.windows);
    if (!work_.entry.rows) return sources::scan_for_index(path_, {how_.options.table, work_.entry.table});
    if (how_.options.table.is_set()) return sources::not_a_table(printable(path_.string()));
    return sources::scan_npy(path_.parent_path(), *work_.entry.rows);
  }

  // Reads members in an order that unpacks each chunk once.
  template <typename ProgressFunction>
  Status read_chunks(const codec::ShardFile& file, const ProgressFunction& report_progress) {
    // Per thread; for a table the columns of a row group.
    constexpr std::uint64_t kLeast = 64u << 20;
    const ByteCount kept{std::max(kLeast, work_.scan.chunks->cache_bytes_in_read_order())};
    constexpr std::uint64_t kPiece = 64u << 20;
    const codec::ChunkReader reader(*work_.scan.chunks, std::make_shared<codec::ChunkCache>(kept),
                                    printable(path_.string()), codec::ChunkReader::CacheContent::records);
    std::vector<std::byte> bytes;
    for (const Numbered& numbered : members_) {
      std::uint32_t& crc = work_.crcs[numbered.number];
      for (std::uint64_t at = 0; at < numbered.member->bytes; at += kPiece) {
        bytes.resize(std::min(kPiece, numbered.member->bytes - at));
        STOKER_RETURN_IF_ERROR(reader.read(file, numbered.member->data_offset + at, bytes));
        crc = crc32c(bytes, crc);
      }
      if (!report_progress(0)) return cancelled("stopped");
    }
    return {};
  }

  void feed(std::uint64_t begin, std::span<const std::byte> block) {
    const std::uint64_t end = begin + block.size();
    for (std::size_t i = next_; i < members_.size() && members_[i].member->data_offset < end; ++i) {
      const sources::ShardMember& m = *members_[i].member;
      std::uint32_t& crc = work_.crcs[members_[i].number];
      const std::uint64_t from = std::max(begin, m.data_offset);
      const std::uint64_t to = std::min(end, m.data_offset + m.bytes);
      if (from < to) crc = crc32c(block.subspan(from - begin, to - from), crc);
      if (m.data_offset + m.bytes <= end) next_ = i + 1;
    }
  }

  // Checks TFRecord's own CRCs: the CRCs of the index would otherwise cover damaged bytes.
  Status check_records(std::uint64_t begin, std::span<const std::byte> block) {
    for (; next_record_ < work_.scan.samples.size(); ++next_record_) {
      const sources::ShardSample& record = work_.scan.samples[next_record_];
      if (!check_) check_.emplace(record.offset, record.bytes);
      if (!check_->update(begin, block)) return {};
      if (!check_->is_valid()) {
        return corrupt("{}: byte {}: the record's CRC is wrong (sample '{}')", printable(path_.string()),
                       record.offset, printable(record.key));
      }
      check_.reset();
    }
    return {};
  }

  // Negative labels count as missing.
  Status read_labels(const codec::ShardFile& file) {
    const bool has_members = sources::kind_of_shard(work_.entry.file) == dataset::ContainerKind::tar;
    for (const sources::ShardSample& sample : work_.scan.samples) {
      std::optional<std::int64_t>& label = work_.labels.emplace_back(sample.label);
      if (has_members) STOKER_RETURN_IF_ERROR(read_label(file, sample, label));
      if (label && *label < 0) label.reset();
    }
    return {};
  }

  Status read_label(const codec::ShardFile& file, const sources::ShardSample& sample,
                    std::optional<std::int64_t>& label) {
    for (const sources::ShardMember& member : sample.members) {
      if (member.extension != "cls" && member.extension != "json") continue;
      if (member.bytes > kLabelLimit) continue;
      std::string text(member.bytes, '\0');
      STOKER_RETURN_IF_ERROR(file.read_at(member.data_offset, std::as_writable_bytes(std::span(text))));
      if (const auto found = label_in(member.extension, text)) label = found;
    }
    return {};
  }

  std::optional<std::int64_t> label_in(std::string_view extension, std::string_view text) {
    std::int64_t number = 0;
    if (extension == "cls") return parse_number(trim(text), &number) ? std::optional(number) : std::nullopt;
    const auto json = parse_json<nlohmann::json>(text);
    if (!json.is_object() || !json.contains("label")) return std::nullopt;
    if (json["label"].is_number_integer()) return json["label"].get<std::int64_t>();
    ++work_.unread_json_labels;
    return std::nullopt;
  }

  Path path_;
  const ReadShardsOptions& how_;
  ScannedShard& work_;
  const bool has_records_;
  std::vector<Numbered> members_;  // by offset
  std::size_t next_ = 0;
  std::size_t next_record_ = 0;
  std::optional<archive::TfRecordCheck> check_;  // of the current record, once its first bytes were read
};

}  // namespace

Status read_shards(const Path& folder, std::vector<ScannedShard>& shards, const ReadShardsOptions& how,
                   Progress& progress) {
  std::uint64_t total = 0;
  for (const ScannedShard& shard : shards) {
    std::error_code ignored;
    if (!folder_exists(folder / shard.entry.file))
      total += std::filesystem::file_size(folder / shard.entry.file, ignored);
  }
  std::vector<Status> status(shards.size());
  std::atomic<std::size_t> next{0};
  std::atomic<std::uint64_t> done{0};
  const auto report_progress = [&](std::uint64_t bytes) {
    const std::uint64_t now = done += bytes;
    progress.report({.done = now >> 20, .total = total >> 20, .unit = "MiB", .bytes = {now}});
    return !progress.stop_requested();
  };
  {
    const auto work = [&] {
      for (std::size_t i = next++; i < shards.size(); i = next++)
        status[i] = ShardReader(folder, how, shards[i]).run(report_progress);
    };
    std::vector<Thread> helpers;
    for (int t = 1; t < how.options.threads && static_cast<std::size_t>(t) < shards.size(); ++t)
      helpers.emplace_back([&](const StopToken&) { work(); });
    work();
  }
  if (progress.stop_requested())
    return cancelled("{}: interrupted before all shards were read", printable(folder.string()));
  for (const Status& one : status) STOKER_RETURN_IF_ERROR(one);
  return {};
}

}  // namespace stoker::pack
