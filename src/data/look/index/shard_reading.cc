#include "data/look/index/shard_reading.h"

#include <algorithm>
#include <atomic>

#include "base/json/json.h"
#include "base/thread.h"
#include "data/look/arrays/array_scan.h"
#include "data/look/tables/class_names.h"
#include "format/chunked/chunk_reader.h"
#include "format/tfrecord.h"

namespace stoker::data {

namespace {

constexpr std::uint64_t kLabelLimit = 1u << 20;

// Reads a shard once, front to back, and feeds hashes and CRCs.
class ShardReading {
  // A member, and which one of the shard's it is.
  struct Numbered {
    const ShardMember* member = nullptr;
    std::size_t number = 0;
    formats::ChunkMap::Turn turn = {};
  };

 public:
  ShardReading(const Path& folder, const IndexReading& how, ShardInIndex& work)
      : path_(folder / work.is.file),
        how_(how),
        work_(work),
        has_records_(kind_of_shard(work.is.file) == ContainerKind::tfrecord) {}

  template <typename GoOn>
  Status run(const GoOn& go_on) {
    Result<ShardScan> scan = this->scan();
    if (!scan.ok()) return scan.status();
    work_.scan = std::move(*scan);
    for (const ShardSample& sample : work_.scan.samples) {
      for (const ShardMember& member : sample.members) members_.push_back({&member, members_.size()});
    }
    // Those of a Parquet file lie column by column; windows over grids come chunk by chunk as they are.
    const formats::ChunkMap* const chunks = work_.scan.chunks.get();
    const bool has_windows = chunks != nullptr && chunks->has_windows() && !chunks->has_columns();
    const bool is_shared = chunks != nullptr && chunks->shares_chunks();
    for (Numbered& member : members_) {
      const std::uint64_t at = member.member->data_offset;
      member.turn = is_shared ? chunks->turn(at) : formats::ChunkMap::Turn{.at = at};
    }
    const auto lies_before = [](const Numbered& a, const Numbered& b) { return a.turn < b.turn; };
    if (!has_windows) std::stable_sort(members_.begin(), members_.end(), lies_before);
    work_.crcs.assign(members_.size(), 0);
    OK_OR_RETURN(
        file, formats::ShardFile::open(
                  path_, work_.scan.chunks ? work_.scan.chunks->parts() : std::vector<formats::ShardPart>()));
    std::vector<std::byte> buffer(formats::kHashBlock);
    for (std::uint64_t at = 0; at < work_.scan.bytes; at += formats::kHashBlock) {
      const auto block = std::span(buffer).first(std::min(formats::kHashBlock, work_.scan.bytes - at));
      RETURN_IF_ERROR(file.read_at(at, block));
      work_.blocks.push_back(formats::block_digest(how_.hash, block));
      if (!work_.scan.chunks) feed(at, block);
      if (has_records_) RETURN_IF_ERROR(check_records(at, block));
      if (!go_on(block.size())) return cancelled("stopped");
    }
    if (work_.scan.chunks) RETURN_IF_ERROR(read_chunks(file, go_on));
    return read_labels(file);
  }

 private:
  Result<ShardScan> scan() const {
    if (how_.options.windows) return scan_windows(path_, printable(work_.is.file), *how_.options.windows);
    if (!work_.is.rows) return scan_for_index(path_, {how_.options.table, work_.is.table});
    if (how_.options.table.is_set()) return no_table(printable(path_.string()));
    return scan_npy(path_.parent_path(), *work_.is.rows);
  }

  // Members in an order in which each chunk is unpacked once.
  template <typename GoOn>
  Status read_chunks(const formats::ShardFile& file, const GoOn& go_on) {
    // For each thread that reads a shard; of a table a row group's columns.
    constexpr std::uint64_t kLeast = 64u << 20;
    const ByteCount kept{std::max(kLeast, work_.scan.chunks->held_for_turns())};
    constexpr std::uint64_t kPiece = 64u << 20;
    const formats::ChunkReader reader(*work_.scan.chunks, std::make_shared<formats::ChunkCache>(kept),
                                      printable(path_.string()), formats::ChunkReader::Keep::records);
    std::vector<std::byte> bytes;
    for (const Numbered& numbered : members_) {
      std::uint32_t& crc = work_.crcs[numbered.number];
      for (std::uint64_t at = 0; at < numbered.member->bytes; at += kPiece) {
        bytes.resize(std::min(kPiece, numbered.member->bytes - at));
        RETURN_IF_ERROR(reader.read(file, numbered.member->data_offset + at, bytes));
        crc = crc32c(bytes, crc);
      }
      if (!go_on(0)) return cancelled("stopped");
    }
    return {};
  }

  void feed(std::uint64_t begin, std::span<const std::byte> block) {
    const std::uint64_t end = begin + block.size();
    for (std::size_t i = next_; i < members_.size() && members_[i].member->data_offset < end; ++i) {
      const ShardMember& m = *members_[i].member;
      std::uint32_t& crc = work_.crcs[members_[i].number];
      const std::uint64_t from = std::max(begin, m.data_offset);
      const std::uint64_t to = std::min(end, m.data_offset + m.bytes);
      if (from < to) crc = crc32c(block.subspan(from - begin, to - from), crc);
      if (m.data_offset + m.bytes <= end) next_ = i + 1;
    }
  }

  // TFRecord's own CRCs: those that the index takes would be of the damaged bytes.
  Status check_records(std::uint64_t begin, std::span<const std::byte> block) {
    for (; next_record_ < work_.scan.samples.size(); ++next_record_) {
      const ShardSample& record = work_.scan.samples[next_record_];
      if (!check_) check_.emplace(record.offset, record.bytes);
      if (!check_->take(begin, block)) return {};
      if (!check_->holds()) {
        return corrupt("{}: byte {}: the record's CRC is wrong (sample '{}')", printable(path_.string()),
                       record.offset, printable(record.key));
      }
      check_.reset();
    }
    return {};
  }

  // A negative one is none.
  Status read_labels(const formats::ShardFile& file) {
    const bool has_members = kind_of_shard(work_.is.file) == ContainerKind::tar;
    for (const ShardSample& sample : work_.scan.samples) {
      std::optional<std::int64_t>& label = work_.labels.emplace_back(sample.label);
      if (has_members) RETURN_IF_ERROR(read_label(file, sample, label));
      if (label && *label < 0) label.reset();
    }
    return {};
  }

  static Status read_label(const formats::ShardFile& file, const ShardSample& sample,
                           std::optional<std::int64_t>& label) {
    for (const ShardMember& member : sample.members) {
      if (member.extension != "cls" && member.extension != "json") continue;
      if (member.bytes > kLabelLimit) continue;
      std::string text(member.bytes, '\0');
      RETURN_IF_ERROR(file.read_at(member.data_offset, std::as_writable_bytes(std::span(text))));
      if (const auto found = label_in(member.extension, text)) label = found;
    }
    return {};
  }

  static std::optional<std::int64_t> label_in(std::string_view extension, std::string_view text) {
    std::int64_t number = 0;
    if (extension == "cls") return parse_number(trim(text), &number) ? std::optional(number) : std::nullopt;
    const auto json = parse_json<nlohmann::json>(text);
    if (!json.is_object() || !json.contains("label") || !json["label"].is_number_integer())
      return std::nullopt;
    return json["label"].get<std::int64_t>();
  }

  Path path_;
  const IndexReading& how_;
  ShardInIndex& work_;
  const bool has_records_;
  std::vector<Numbered> members_;  // by their places
  std::size_t next_ = 0;
  std::size_t next_record_ = 0;
  std::optional<formats::TfRecordCheck> check_;  // of that record, once some of it came by
};

}  // namespace

Status read_shards(const Path& folder, std::vector<ShardInIndex>& shards, const IndexReading& how,
                   Progress& progress) {
  std::uint64_t total = 0;
  for (const ShardInIndex& shard : shards) {
    std::error_code ignored;
    if (!folder_exists(folder / shard.is.file))
      total += std::filesystem::file_size(folder / shard.is.file, ignored);
  }
  std::vector<Status> status(shards.size());
  std::atomic<std::size_t> next{0};
  std::atomic<std::uint64_t> done{0};
  const auto go_on = [&](std::uint64_t bytes) {
    const std::uint64_t now = done += bytes;
    progress.report({.done = now >> 20, .total = total >> 20, .unit = "MiB", .bytes = {now}});
    return !progress.stop_requested();
  };
  {
    const auto work = [&] {
      for (std::size_t i = next++; i < shards.size(); i = next++)
        status[i] = ShardReading(folder, how, shards[i]).run(go_on);
    };
    std::vector<Thread> helpers;
    for (int t = 1; t < how.options.threads && static_cast<std::size_t>(t) < shards.size(); ++t)
      helpers.emplace_back([&](const StopToken&) { work(); });
    work();
  }
  if (progress.stop_requested())
    return cancelled("{}: stopped before all shards were read", printable(folder.string()));
  for (const Status& one : status) RETURN_IF_ERROR(one);
  return {};
}

}  // namespace stoker::data
