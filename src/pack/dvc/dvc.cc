#include "pack/dvc/dvc.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <vector>

#include "base/encode.h"
#include "base/hashes/file_hash.h"
#include "base/json/json.h"
#include "base/language/counted.h"
#include "base/thread.h"
#include "pack/dvc/dvc_read.h"
#include "stoker/text.h"

namespace stoker::pack {

namespace {

using Json = nlohmann::ordered_json;

// "images" of "data/images/".
Path without_slash(const Path& data) {
  const Path plain = data.lexically_normal();
  return plain.has_filename() ? plain : plain.parent_path();
}

// A file of a folder.
struct DvcEntry {
  std::string path;  // relative to the folder
  std::uint64_t bytes = 0;
  std::string md5;
};

// All files of the folder tree, in DVC's order.
Result<std::vector<DvcEntry>> files_below(const Path& folder, const Progress& progress) {
  std::vector<DvcEntry> found;
  std::error_code error;
  std::filesystem::recursive_directory_iterator at(folder, error);
  for (const std::filesystem::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
    if (progress.stop_requested()) return cancelled("{}: interrupted while listing", folder);
    if (at->is_directory(error) || error) continue;
    const std::uint64_t bytes = at->file_size(error);
    if (!error) found.push_back({.path = at->path().lexically_relative(folder).string(), .bytes = bytes});
  }
  if (error) return posix_error(printable(folder.string()), error.value());
  std::sort(found.begin(), found.end(), [](const DvcEntry& a, const DvcEntry& b) { return a.path < b.path; });
  return found;
}

// A .dvcignore with patterns that may affect the folder, or "".
std::string ignored_by(const Path& data) {
  std::error_code ignored;
  Path folder = std::filesystem::absolute(data, ignored);
  for (;;) {
    const Result<std::string> text = read_file(folder / ".dvcignore");
    if (text.ok()) {
      for (const std::string_view line : split(*text, '\n')) {
        if (trim(line).empty() || trim(line).starts_with('#')) continue;
        return printable((folder / ".dvcignore").string());
      }
    }
    if (folder_exists(folder / ".dvc") || !folder.has_relative_path()) return {};
    folder = folder.parent_path();
  }
}

// The heuristic of DVC before 3, by the first 512 bytes.
bool is_text(std::span<const std::byte> beginning) {
  constexpr std::size_t kProbeBytes = 512;
  const auto probe = beginning.first(std::min(kProbeBytes, beginning.size()));
  std::size_t others = 0;
  for (const std::byte byte : probe) {
    const auto c = static_cast<unsigned char>(byte);
    if (c == 0) return false;
    const bool is_plain =
        (c >= 32 && c < 127) || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == '\b';
    others += is_plain ? 0 : 1;
  }
  return probe.empty() || 10 * others <= 3 * probe.size();
}

// The MD5 as computed by DVC before 3: piece by piece, "\r
// " in text as "
// ".
Result<std::string> dvc2_md5(const Path& path, const Progress& progress) {
  constexpr std::uint64_t kPiece = 1u << 20;
  std::optional<FileHash> hash = FileHash::make("md5");
  STOKER_ASSIGN_OR_RETURN(file, File::open_read(path));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  bool has_lines = true;
  std::vector<std::byte> buffer(std::min(kPiece, size));
  for (std::uint64_t at = 0; at < size; at += kPiece) {
    if (progress.stop_requested()) return cancelled("{}: interrupted while reading", path);
    auto piece = std::span(buffer).first(std::min(kPiece, size - at));
    STOKER_RETURN_IF_ERROR(file.read_at(at, piece));
    if (at == 0) has_lines = is_text(piece);
    if (has_lines) {
      std::size_t kept = 0;
      for (std::size_t i = 0; i < piece.size(); ++i) {
        const bool is_end =
            piece[i] == std::byte{'\r'} && i + 1 < piece.size() && piece[i + 1] == std::byte{'\n'};
        if (!is_end) piece[kept++] = piece[i];
      }
      piece = piece.first(kept);
    }
    hash->update(piece);
  }
  return hash->finish();
}

Result<std::string> md5_of(const Path& path, const DvcFile& dvc, const Progress& progress) {
  return dvc.has_old_hashes ? dvc2_md5(path, progress) : hash_file(path, "md5", progress);
}

Status hash_all(const Path& folder, const DvcFile& dvc, int threads, std::vector<DvcEntry>& files,
                Progress& progress) {
  std::atomic<std::size_t> next{0};
  std::atomic<std::uint64_t> done{0};
  std::vector<Status> failed(static_cast<std::size_t>(std::max(1, threads)));
  const auto work = [&](Status& status) {
    for (std::size_t i = next++; i < files.size() && status.ok(); i = next++) {
      Result<std::string> md5 = md5_of(folder / files[i].path, dvc, progress);
      if (!md5.ok()) status = md5.status();
      if (md5.ok()) files[i].md5 = std::move(*md5);
      const std::uint64_t now = done += files[i].bytes;
      progress.report({.done = now >> 20, .total = dvc.version.bytes >> 20, .unit = "MiB", .bytes = {now}});
    }
  };
  {
    std::vector<Thread> helpers;
    for (std::size_t t = 1; t < failed.size(); ++t)
      helpers.emplace_back([&work, &failed, t](const StopToken&) { work(failed[t]); });
    work(failed[0]);
  }
  for (const Status& status : failed) STOKER_RETURN_IF_ERROR(status);
  return {};
}

// The listing whose hash DVC records for a folder.
std::string listing_of(const std::vector<DvcEntry>& files) {
  std::string text;
  for (const DvcEntry& file : files) {
    const Json path = file.path;
    text += format("{}{{\"md5\": \"{}\", \"relpath\": {}}}", text.empty() ? "" : ", ", file.md5,
                   json_ascii(path));
  }
  return "[" + text + "]";
}

// The listing in DVC's cache, if it exists: path → MD5.
std::map<std::string, std::string> cached_listing(const Path& data, const std::string& md5) {
  std::map<std::string, std::string> listed;
  std::error_code ignored;
  Path root = std::filesystem::absolute(data, ignored);
  while (!folder_exists(root / ".dvc") && root.has_relative_path()) root = root.parent_path();
  for (const std::string_view cache : {".dvc/cache/files/md5", ".dvc/cache"}) {
    const Result<std::string> text = read_file(root / cache / md5.substr(0, 2) / md5.substr(2), 1_GiB);
    if (!text.ok()) continue;
    const Json json = parse_json<Json>(*text);
    if (!json.is_array()) continue;
    for (const Json& entry : json) {
      if (!entry.is_object() || !entry.contains("relpath") || !entry.contains("md5")) continue;
      if (entry["relpath"].is_string() && entry["md5"].is_string())
        listed.emplace(entry["relpath"].get<std::string>(), entry["md5"].get<std::string>());
    }
    return listed;
  }
  return listed;
}

// "cat/1.jpg and 2 more"; empty if the cache has no listing.
std::string describe_differing(const std::vector<DvcEntry>& files,
                               std::map<std::string, std::string> listed) {
  if (listed.empty()) return {};
  std::vector<std::string> names;
  for (const DvcEntry& file : files) {
    const auto found = listed.find(file.path);
    if (found == listed.end() || found->second != file.md5) names.push_back(file.path);
    if (found != listed.end()) listed.erase(found);
  }
  for (const auto& [path, md5] : listed) names.push_back(path);
  if (names.empty()) return {};
  const std::string first = printable(*std::min_element(names.begin(), names.end()));
  return names.size() == 1 ? ": " + first : format(": {} and {} more", first, grouped(names.size() - 1));
}

std::string short_md5(const std::string& md5) { return md5.substr(0, 8); }

Result<std::string> folder_difference(const Path& data, const DvcFile& dvc, DvcDepth depth, int threads,
                                      Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(files, files_below(data, progress));
  const dataset::SourceVersion& recorded = dvc.version;
  std::uint64_t bytes = 0;
  for (const DvcEntry& file : files) bytes += file.bytes;
  const bool has_counts = recorded.files > 0 || recorded.bytes > 0;
  if (has_counts && (files.size() != recorded.files || bytes != recorded.bytes)) {
    return format("{} of {} bytes, {} records {} of {}", counted(files.size(), "file"), grouped(bytes),
                  recorded.file, grouped(recorded.files), grouped(recorded.bytes));
  }
  if (depth == DvcDepth::sizes) return std::string();
  STOKER_RETURN_IF_ERROR(hash_all(data, dvc, threads, files, progress));
  std::optional<FileHash> hash = FileHash::make("md5");
  const std::string listing = listing_of(files);
  hash->update(std::as_bytes(std::span(listing)));
  const std::string found = hash->finish() + std::string(kDvcFolder);
  if (found == recorded.md5) return std::string();
  return format("MD5 {}, {} records {}{}", short_md5(found), recorded.file, short_md5(recorded.md5),
                describe_differing(files, cached_listing(data, recorded.md5)));
}

Result<std::string> file_difference(const Path& data, const DvcFile& dvc, DvcDepth depth,
                                    const Progress& progress) {
  const dataset::SourceVersion& recorded = dvc.version;
  STOKER_ASSIGN_OR_RETURN(file, File::open_read(data));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  if (recorded.bytes > 0 && size != recorded.bytes)
    return format("{} bytes, {} records {}", grouped(size), recorded.file, grouped(recorded.bytes));
  if (depth == DvcDepth::sizes) return std::string();
  STOKER_ASSIGN_OR_RETURN(found, md5_of(data, dvc, progress));
  if (found == recorded.md5) return std::string();
  return format("MD5 {}, {} records {}", short_md5(found), recorded.file, short_md5(recorded.md5));
}

// Nullopt for a missing file.
Result<std::optional<std::string>> read_if_exists(const Path& path) {
  constexpr ByteCount kMax = 64_MiB;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::optional<std::string>();
  STOKER_ASSIGN_OR_RETURN(text, read_file(path, kMax));
  return std::optional(std::move(text));
}

// The folder of `data` and its parents up to the one with .dvc/; only the first if none has it.
std::vector<Path> folders_with_pipelines(const Path& data) {
  std::vector<Path> folders;
  for (Path folder = data.parent_path();; folder = folder.parent_path()) {
    folders.push_back(folder);
    if (folder_exists(folder / ".dvc")) return folders;
    if (!folder.has_relative_path()) return {folders.front()};
  }
}

// "prepare", or "../dvc.yaml:prepare" from a different folder, as DVC's commands expect it.
std::string stage_target(const Path& folder, const std::string& stage) {
  std::error_code ignored;
  const Path yaml = std::filesystem::proximate(folder / "dvc.yaml", ignored);
  return yaml == "dvc.yaml" ? stage : format("{}:{}", yaml.string(), stage);
}

Result<std::optional<DvcFile>> find_in_dvc_lock(const Path& plain) {
  std::error_code error;
  const Path data = std::filesystem::absolute(plain, error).lexically_normal();
  if (error || !data.has_filename()) return std::optional<DvcFile>();
  for (const Path& folder : folders_with_pipelines(data)) {
    STOKER_ASSIGN_OR_RETURN(lock, read_if_exists(folder / "dvc.lock"));
    if (!lock) continue;
    STOKER_ASSIGN_OR_RETURN(pipeline, read_if_exists(folder / "dvc.yaml"));
    STOKER_ASSIGN_OR_RETURN(
        found, read_dvc_lock(*lock, pipeline.value_or(""), printable((folder / "dvc.lock").string()),
                             {data.lexically_relative(folder), folder_exists(plain)}));
    if (!found) continue;
    found->version.file = "dvc.lock";
    found->stage = stage_target(folder, found->stage);
    return std::move(found);
  }
  return std::optional<DvcFile>();
}

}  // namespace

Result<std::optional<DvcFile>> find_dvc_file(const Path& data) {
  const Path plain = without_slash(data);
  const Path path = plain.string() + ".dvc";
  STOKER_ASSIGN_OR_RETURN(text, read_if_exists(path));
  if (text) {
    STOKER_ASSIGN_OR_RETURN(
        found, read_dvc_file(*text, printable(path.string()), {plain.filename(), folder_exists(plain)}));
    if (found) {
      found->version.file = path.filename().string();
      return std::move(found);
    }
  }
  return find_in_dvc_lock(plain);
}

Result<DvcComparison> compare_with_dvc(const Path& data, const DvcFile& dvc, DvcDepth depth, int threads,
                                       Progress& progress) {
  DvcComparison compared;
  const Path plain = without_slash(data);
  const bool is_folder = folder_exists(plain);
  if (is_folder) compared.ignored_by = ignored_by(plain);
  if (!compared.ignored_by.empty()) return compared;
  Result<std::string> difference = is_folder ? folder_difference(plain, dvc, depth, threads, progress)
                                             : file_difference(plain, dvc, depth, progress);
  if (!difference.ok()) return difference.status();
  compared.difference = std::move(*difference);
  return compared;
}

std::string dvc_cure(const Path& data, const DvcFile& dvc) {
  const std::string name = without_slash(data).string();
  if (!dvc.stage.empty())
    return format("dvc checkout {}, or dvc commit {}", shell_quote(name), shell_quote(dvc.stage));
  return format("dvc checkout {}, or dvc add {}", shell_quote(name + ".dvc"), shell_quote(name));
}

}  // namespace stoker::pack
