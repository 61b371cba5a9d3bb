// Parsers for the output of mmlsquota and the BeeGFS tools.
#include "preflight/quota_text.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json/json.h"
#include "stoker/text.h"

namespace stoker::preflight {
namespace {

std::optional<std::uint64_t> lower_limit(std::uint64_t soft, std::uint64_t hard) {
  if (soft == 0 && hard == 0) return std::nullopt;
  return soft == 0 ? hard : hard == 0 ? soft : std::min(soft, hard);
}

std::uint64_t left_of(const std::optional<std::uint64_t>& most, std::uint64_t used) {
  if (!most) return UINT64_MAX;
  return *most > used ? *most - used : 0;
}

std::optional<std::uint64_t> bytes_of(const Quota& quota) {
  return quota.bytes_limit ? std::optional(quota.bytes_limit->value) : std::nullopt;
}

// One line of -Y output by column names.
struct QuotaRow {
  const std::vector<std::string_view>& values;
  const std::map<std::string, std::size_t>& columns;

  std::string_view text(const std::string& name) const {
    const auto at = columns.find(name);
    return at == columns.end() || at->second >= values.size() ? "" : values[at->second];
  }
  std::uint64_t number(const std::string& name) const {
    std::uint64_t value = 0;
    return read_amount(text(name), &value) ? value : 0;
  }
};

std::string_view without_dev(std::string_view device) {
  return device.starts_with("/dev/") ? device.substr(5) : device;
}

bool is_part_of(std::string_view name, const Path& folder) {
  return std::any_of(folder.begin(), folder.end(), [&](const Path& part) { return part.string() == name; });
}

// Whether the row belongs to this user, group or fileset. `has_filesets`: users have a quota in each fileset.
bool is_about(const QuotaRow& row, const QuotaTarget& target, bool has_filesets) {
  if (!target.device.empty() && row.text("filesystemname") != without_dev(target.device)) return false;
  const std::string_view type = row.text("quotatype");
  const std::string_view id = row.text("id");
  const std::string_view fileset = type == "FILESET" ? row.text("name") : row.text("filesetname");
  if (type == "FILESET") return is_part_of(fileset, target.folder);
  const bool is_ours = (type == "USR" && id == std::to_string(target.user)) ||
                       (type == "GRP" && id == std::to_string(target.group));
  return is_ours && (!has_filesets || is_part_of(fileset, target.folder));
}

// "1073741824", "0 Byte", "12+"; "unlimited", "-" and a limit of 0 mean no limit.
std::optional<std::uint64_t> beegfs_number(std::string_view text) {
  text = trim(text);
  if (text.ends_with(" Byte")) text.remove_suffix(5);
  if (text.ends_with('+')) text.remove_suffix(1);
  std::uint64_t value = 0;
  return read_amount(text, &value) ? std::optional(value) : std::nullopt;
}

std::optional<std::uint64_t> beegfs_limit(std::string_view text) {
  const auto value = beegfs_number(text);
  return value && *value > 0 ? value : std::nullopt;
}

Quota beegfs_quota_of(std::string_view used, std::string_view most, std::string_view files,
                      std::string_view most_files) {
  Quota quota{.used = {beegfs_number(used).value_or(0)},
              .bytes_limit = {},
              .files = beegfs_number(files).value_or(0),
              .files_limit = beegfs_limit(most_files)};
  if (const auto limit = beegfs_limit(most)) quota.bytes_limit = ByteCount{*limit};
  return quota;
}

// Of two possible pools, keeps the larger remaining quota.
void keep_larger(std::optional<Quota>& kept, const Quota& other) {
  if (!kept || left_of(bytes_of(other), other.used.value) > left_of(bytes_of(*kept), kept->used.value))
    kept = other;
}

// "used/limit".
std::pair<std::string_view, std::string_view> halves(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {text, ""};
  return {text.substr(0, slash), text.substr(slash + 1)};
}

std::string text_of(const nlohmann::json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end()) return "";
  return at->is_string() ? at->get<std::string>() : at->dump();
}

}  // namespace

bool read_amount(std::string_view text, std::uint64_t* amount) {
  if (text.ends_with('*')) text.remove_suffix(1);
  return parse_number(text, amount) && *amount < (std::uint64_t{1} << 53);
}

Quota quota_of(const QuotaUsage& blocks, const QuotaUsage& files) {
  Quota quota{.used = {blocks.used},
              .bytes_limit = {},
              .files = files.used,
              .files_limit = lower_limit(files.soft, files.hard)};
  if (const auto most = lower_limit(blocks.soft, blocks.hard))
    quota.bytes_limit = ByteCount{*most * kQuotaBlock};
  return quota;
}

std::optional<Quota> tighter_quota(const std::optional<Quota>& one, const std::optional<Quota>& other) {
  if (!one || !other) return one ? one : other;
  Quota least = *one;
  if (left_of(bytes_of(*other), other->used.value) < left_of(bytes_of(*one), one->used.value)) {
    least.used = other->used;
    least.bytes_limit = other->bytes_limit;
  }
  if (left_of(other->files_limit, other->files) < left_of(one->files_limit, one->files)) {
    least.files = other->files;
    least.files_limit = other->files_limit;
  }
  return least;
}

std::optional<Quota> parse_gpfs_quota(std::string_view text, const QuotaTarget& target) {
  std::map<std::string, std::size_t> columns;
  std::vector<std::vector<std::string_view>> rows;
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with("mmlsquota:")) continue;
    std::vector<std::string_view> values = split(line, ':');
    if (std::find(values.begin(), values.end(), "HEADER") == values.end()) {
      rows.push_back(std::move(values));
      continue;
    }
    columns.clear();
    for (std::size_t i = 0; i < values.size(); ++i) columns[to_lower(values[i])] = i;
  }
  if (!columns.contains("blockusage") || !columns.contains("quotatype")) return std::nullopt;
  std::size_t user_rows = 0;
  for (const auto& values : rows) {
    const QuotaRow row{values, columns};
    const bool is_here = target.device.empty() || row.text("filesystemname") == without_dev(target.device);
    user_rows +=
        is_here && row.text("quotatype") == "USR" && row.text("id") == std::to_string(target.user) ? 1 : 0;
  }
  std::optional<Quota> least;
  for (const auto& values : rows) {
    const QuotaRow row{values, columns};
    if (!is_about(row, target, user_rows > 1)) continue;
    const std::uint64_t blocks = row.number("blockusage") + row.number("blockindoubt");
    const QuotaUsage bytes{std::min(blocks, UINT64_MAX / kQuotaBlock) * kQuotaBlock, row.number("blockquota"),
                           row.number("blocklimit")};
    const QuotaUsage files{row.number("filesusage") + row.number("filesindoubt"), row.number("filesquota"),
                           row.number("fileslimit")};
    least = tighter_quota(least, quota_of(bytes, files));
  }
  return least;
}

std::optional<Quota> parse_beegfs_csv(std::string_view text, std::uint64_t id) {
  std::optional<Quota> kept;
  for (std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> values = split(trim(line), ',');
    // name, id, size, hard, files, hard; names have no comma.
    if (values.size() != 6 || values[1] != std::to_string(id) || !beegfs_number(values[2])) continue;
    keep_larger(kept, beegfs_quota_of(values[2], values[3], values[4], values[5]));
  }
  return kept;
}

std::optional<Quota> parse_beegfs_lines(std::string_view text, const QuotaTarget& target) {
  std::optional<Quota> user;
  std::optional<Quota> group;
  for (std::string_view line : split(text, '\n')) {
    if (!trim(line).starts_with('{')) continue;  // "INFO: Quota usage information is fetched every 30s ..."
    const auto object = parse_json<nlohmann::json>(line);
    if (!object.is_object()) continue;
    const std::string type = text_of(object, "type");
    const std::string id = text_of(object, "id");
    const bool is_user = type == "user" && id == std::to_string(target.user);
    const bool is_group = type == "group" && id == std::to_string(target.group);
    if (!is_user && !is_group) continue;
    const std::string space = text_of(object, "space");
    const std::string inode = text_of(object, "inode");
    const auto [used, most] = halves(space);
    const auto [files, most_files] = halves(inode);
    if (!beegfs_number(used)) continue;  // "?", or a value with a unit from releases without --raw
    keep_larger(is_user ? user : group, beegfs_quota_of(used, most, files, most_files));
  }
  return tighter_quota(user, group);
}

}  // namespace stoker::preflight
