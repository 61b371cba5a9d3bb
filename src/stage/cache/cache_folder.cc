#include "stage/cache/cache_folder.h"

#include <algorithm>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

#include "base/encode.h"
#include "base/json/json.h"
#include "record/filesystem_time.h"
#include "stage/node.h"

namespace stoker::stage {
namespace {

constexpr std::string_view kMarker = "stoker-cache.json";
constexpr int kVersion = 1;
constexpr std::size_t kKeyDigits = 64;

Status check_owner(const Path& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return posix_error(path.string(), errno);
  if (!S_ISDIR(info.st_mode)) return invalid("{}: is not a folder", path);
  if (info.st_uid != ::geteuid()) {
    return invalid("{}: belongs to user {}, and this user is {}", path, info.st_uid, ::geteuid())
        .cure("stoker cache stage DATASET --cache DIR, your own folder");
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return invalid("{}: other users may write to it, so its shards cannot be trusted", path)
      .cure(format("chmod go-w {}", shell_quote(path.string())));
}

Status check_marker(const Path& path) {
  const auto text = read_file(path / kMarker);
  const auto json = text.ok() ? parse_json<nlohmann::json>(*text) : nlohmann::json();
  if (!json.is_object() || !json.contains("format") || !json["format"].is_number_integer()) {
    return invalid("{}: is no cache: its {} {}", path, kMarker,
                   text.ok() ? std::string("is damaged") : std::string("cannot be read"))
        .cure("stoker cache stage DATASET --cache DIR, a new or an empty folder");
  }
  const std::int64_t version = json["format"].get<std::int64_t>();
  if (version == kVersion) return {};
  return invalid("{}: is a cache of version {}; this Stoker reads version {}", path, version, kVersion)
      .cure("stoker cache stage DATASET --cache DIR, a new folder");
}

// Complete or absent: a killed process leaves a hidden folder beside it.
Status create(const Path& path) {
  STOKER_RETURN_IF_ERROR(make_directories(path.parent_path()));
  const Path made = path.parent_path() / format(".{}-{}", path.filename().string(), random_name());
  STOKER_RETURN_IF_ERROR(make_directory(made));
  Status status = ::chmod(made.c_str(), 0700) == 0 ? Status() : posix_error(made.string(), errno);
  for (const char* name : {"shards", "partial", "datasets", "leases", "uses"}) {
    if (status.ok()) status = make_directory(made / name);
  }
  if (status.ok()) status = write_file(made / kMarker, format("{{\"format\": {}}}\n", kVersion));
  if (status.ok() && ::rename(made.c_str(), path.c_str()) != 0) status = posix_error(path.string(), errno);
  // Another process may have made the same cache.
  if (!status.ok()) (void)remove_tree(made);
  return path_exists(path / kMarker) ? Status() : status;
}

}  // namespace

std::string cache_name() { return format("stoker-cache-{}", ::geteuid()); }

Path cache_path(const Path& requested, const Environment& environment) {
  if (!requested.empty()) return std::filesystem::absolute(requested);
  if (const std::string named = variable(environment, "STOKER_CACHE"); !named.empty())
    return std::filesystem::absolute(named);
  return std::filesystem::absolute(node_local_base({}, environment) / cache_name());
}

std::string shard_key(const dataset::Manifest& manifest, const dataset::ShardInfo& shard) {
  if (manifest.schema.block_hash == dataset::BlockHash::sha256) return hex(shard.hash);
  return hex(sha256(format("{} {} {}", manifest.version, shard.file, hex(shard.hash))));
}

Result<CacheFolder> CacheFolder::find(const Path& path) {
  if (!path_exists(path)) {
    return not_found("{}: there is no cache", path)
        .cure("stoker cache stage DATASET creates it; --cache DIR or STOKER_CACHE names a different folder");
  }
  STOKER_RETURN_IF_ERROR(check_owner(path));
  STOKER_RETURN_IF_ERROR(check_marker(path));
  return CacheFolder(path);
}

Result<CacheFolder> CacheFolder::open(const Path& path) {
  if (!path_exists(path / kMarker)) {
    const auto names = list_directory(path);
    if (names.ok() && !names->empty()) {
      return invalid("{}: is no cache and not empty", path)
          .cure("stoker cache stage DATASET --cache DIR, a new or an empty folder");
    }
    if (path_exists(path)) STOKER_RETURN_IF_ERROR(check_owner(path));
    STOKER_RETURN_IF_ERROR(create(path));
  }
  return find(path);
}

Result<DatasetUse> read_use(const CacheFolder& cache, std::string_view version) {
  const Path link = cache.use(version);
  std::error_code error;
  const Path source = std::filesystem::read_symlink(link, error);
  if (error) return posix_error(link.string(), error.value());
  STOKER_ASSIGN_OR_RETURN(last_used, record::modified_at(link));
  return DatasetUse{source, last_used};
}

Status note_use(const CacheFolder& cache, std::string_view version, const Path& source) {
  return replace_link(source, cache.use(version));
}

Status replace_link(const Path& target, const Path& link) {
  const Path made = link.parent_path() / format(".link-{}", random_name());
  if (::symlink(target.c_str(), made.c_str()) != 0) return posix_error(made.string(), errno);
  if (::rename(made.c_str(), link.c_str()) == 0) return {};
  const int code = errno;
  (void)remove_file(made);
  return posix_error(link.string(), code);
}

Result<double> filesystem_time(const CacheFolder& cache) { return record::filesystem_time(cache.leases()); }

std::uint64_t bytes_at(const Path& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (fs::is_regular_file(status)) {
    const std::uint64_t bytes = fs::file_size(path, error);
    return error ? 0 : bytes;
  }
  std::uint64_t sum = 0;
  if (!fs::is_directory(status)) return 0;
  for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    if (!at->is_regular_file(gone) || at->is_symlink(gone)) continue;
    const std::uint64_t bytes = at->file_size(gone);
    if (!gone) sum += bytes;
  }
  return sum;
}

bool is_key(std::string_view name) {
  return name.size() == kKeyDigits && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string unfinished_key(const std::string& name) {
  const std::string key = name.substr(0, kKeyDigits);
  const bool is_unfinished = name.find(".part") == kKeyDigits || name.find(".gone-") == kKeyDigits;
  return is_key(key) && is_unfinished ? key : "";
}

std::uint64_t bytes_used(const CacheFolder& cache) {
  std::map<std::string, std::uint64_t> bytes;  // a shard that is completed meanwhile counts once
  const auto add = [&](const Path& folder, const auto& key_of) {
    const auto names = list_directory(folder);
    for (std::size_t i = 0; names.ok() && i < names->size(); ++i) {
      const std::string key = key_of((*names)[i]);
      if (!key.empty()) bytes[key] = std::max(bytes[key], bytes_at(folder / (*names)[i]));
    }
  };
  add(cache.partial(), unfinished_key);
  add(cache.shards(), [](const std::string& name) { return is_key(name) ? name : std::string(); });
  std::uint64_t sum = 0;
  for (const auto& [key, size] : bytes) sum += size;
  return sum;
}

}  // namespace stoker::stage
