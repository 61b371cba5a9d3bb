#include "checkpoint/save/share.h"

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/hash.h"
#include "checkpoint/json_fields.h"
#include "checkpoint/layout.h"
#include "checkpoint/save/page_buffer.h"

namespace stoker::checkpoint {

namespace {

constexpr std::string_view kRecordName = "share.record";
constexpr std::string_view kMagic = "stoker-share 1 ";
constexpr std::size_t kDigits = 8;

// After the first line: the rank, its marker, and rank 0's description of the step. One line each, the last
// one to the end.
std::string body_of(const Share& share) {
  return format("{{\"rank\":{}}}\n{}\n{}", share.rank.value, marker_text(share.marker),
                manifest_text(share.head));
}

Status copy_file(const Path& from, const Path& to, const TensorFile& file, const StopToken& stop) {
  const std::string subject = printable(from.string());
  STOKER_ASSIGN_OR_RETURN(source, File::open_read(from));
  STOKER_ASSIGN_OR_RETURN(size, source.size());
  if (size != file.bytes)
    return corrupt("{}: is {} bytes long, but {} were written", subject, size, file.bytes);
  STOKER_ASSIGN_OR_RETURN(target, File::create_new(to));
  STOKER_RETURN_IF_ERROR(target.reserve(file.bytes));
  STOKER_ASSIGN_OR_RETURN(buffer, PageBuffer::create(kBlockBytes));
  for (std::size_t block = 0; block < file.blocks.size(); ++block) {
    if (stop.stop_requested()) return cancelled("{}: interrupted while copying", subject);
    const std::uint64_t at = block * kBlockBytes;
    const auto bytes = buffer.bytes().first(std::min<std::uint64_t>(kBlockBytes, file.bytes - at));
    STOKER_RETURN_IF_ERROR(source.read_at(at, bytes));
    const std::uint32_t crc = crc32c(bytes);
    if (crc != file.blocks[block]) {
      return corrupt("{}: damaged between bytes {} and {} (crc32c {:08x}, expected {:08x})", subject, at,
                     at + bytes.size(), crc, file.blocks[block]);
    }
    STOKER_RETURN_IF_ERROR(target.write_at(at, bytes));
  }
  STOKER_RETURN_IF_ERROR(target.truncate(file.bytes));
  STOKER_RETURN_IF_ERROR(target.sync());
  return target.close();
}

}  // namespace

Path share_folder(const Path& local, Step step, std::string_view writer, std::uint64_t repeat, Rank rank) {
  return local / format("{}.rank-{:04}", pending_folder_name(step, writer, repeat), rank.value);
}

std::string share_text(const Share& share) {
  const std::string body = body_of(share);
  return format("{}{:08x}\n{}", kMagic, crc32c(body), body);
}

Result<Share> parse_share(std::string_view subject, std::string_view text) {
  const std::size_t head = kMagic.size() + kDigits + 1;
  if (!text.starts_with(kMagic) || text.size() < head || text[head - 1] != '\n')
    return corrupt("{}: is not a share record, or is truncated", subject);
  const std::string_view stored = text.substr(kMagic.size(), kDigits);
  const std::string_view body = text.substr(head);
  const std::string found = format("{:08x}", crc32c(body));
  if (stored != found)
    return corrupt("{}: damaged (crc32c {}, expected {})", subject, found, printable(stored));
  const std::size_t first = body.find('\n');
  const std::size_t second = first == std::string_view::npos ? first : body.find('\n', first + 1);
  if (second == std::string_view::npos) return corrupt("{}: has no marker", subject);
  Share share;
  JsonText json(subject, body.substr(0, first));
  JsonFields fields = json.fields();
  const std::int64_t rank = fields.integer("rank");
  if (rank < 0 || rank > 1 << 24) fields.fail("rank is out of range");
  if (!fields.ok()) return fields.status();
  share.rank = Rank{static_cast<int>(rank)};
  STOKER_ASSIGN_OR_RETURN(marker, parse_marker(subject, body.substr(first + 1, second - first - 1)));
  STOKER_ASSIGN_OR_RETURN(manifest, parse_manifest_head(subject, body.substr(second + 1)));
  if (share.rank.value >= manifest.world_size.value || manifest.save != marker.save)
    return corrupt("{}: marker and step do not match", subject);
  share.marker = std::move(marker);
  share.head = std::move(manifest);
  return share;
}

Status write_share_record(const Share& share) {
  return write_file(share.folder / kRecordName, share_text(share), Durability::synced);
}

Result<Share> read_share(const Path& folder) {
  const Path record = folder / kRecordName;
  STOKER_ASSIGN_OR_RETURN(text, read_file(record, kManifestLimit));
  STOKER_ASSIGN_OR_RETURN(share, parse_share(printable(record.string()), text));
  share.folder = folder;
  return share;
}

std::vector<Share> list_shares(const Path& local) {
  std::vector<Share> shares;
  const auto names = list_directory(local);
  if (!names.ok()) return shares;
  for (const std::string& name : *names) {
    if (!hidden_folder(name)) continue;
    auto share = read_share(local / name);
    if (share.ok()) shares.push_back(std::move(*share));
  }
  return shares;
}

Status copy_share_files(const Share& share, const Path& to, const StopToken& stop) {
  for (const TensorFile& file : share.marker.files) {
    const Path target = to / file.path;
    const Path part = target.string() + ".part";
    Status status = copy_file(share.folder / file.path, part, file, stop);
    if (status.ok()) status = rename_path(part, target);
    if (status.ok()) continue;
    (void)remove_file(part);
    return status;
  }
  return {};
}

void remove_share(const Path& folder) {
  (void)remove_file(folder / kRecordName);
  (void)remove_tree(folder);
}

}  // namespace stoker::checkpoint
