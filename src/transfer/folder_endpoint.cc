// publish():
//   1. all files of the pending folder reach the disk (syncfs)
//   2. the earlier dataset, if it is to be replaced, is renamed aside
//   3. the pending folder is renamed to its place        <- the dataset exists
//   4. the parent folder reaches the disk
// A crash between 2 and 3 leaves the earlier dataset under its new name, and the pending folder complete.
#include "transfer/folder_endpoint.h"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "base/version.h"
#include "preflight/free_space.h"

namespace stoker::transfer {
namespace {

namespace fs = std::filesystem;

// Quota programs ask servers.
constexpr Duration kQuotaTimeout = std::chrono::seconds(20);

Result<PathState> state_of(const Path& path) {
  struct stat about{};
  if (::lstat(path.c_str(), &about) != 0) {
    if (errno == ENOENT) return PathState::absent;
    return posix_error(printable(path.string()), errno);
  }
  if (!folder_exists(path)) return PathState::other;
  if (path_exists(path / dataset::kManifestFile)) return PathState::dataset;
  STOKER_ASSIGN_OR_RETURN(names, list_directory(path));
  return names.empty() ? PathState::empty : PathState::folder;
}

// The deepest folder above the path that exists.
Path existing_parent(const Path& path) {
  Path folder = path.parent_path();
  while (!folder_exists(folder) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

std::uint64_t bytes_of_range(std::uint64_t size, std::uint64_t block) {
  const std::uint64_t begin = block * kBlock;
  return begin >= size ? 0 : std::min(kBlock, size - begin);
}

class FolderEndpoint final : public Endpoint {
 public:
  FolderEndpoint(Pacer* pacer, std::function<bool()> should_stop)
      : pacer_(pacer), should_stop_(std::move(should_stop)) {}

  Result<PathFacts> look(const std::string& text) override {
    std::error_code error;
    Path path = (fs::absolute(text, error) / "").lexically_normal().parent_path();
    if (error) return posix_error(printable(text), error.value());
    if (folder_exists(path)) {
      path = fs::canonical(path, error);
      if (error) return posix_error(printable(text), error.value());
    }
    PathFacts facts{.path = path.string()};
    STOKER_ASSIGN_OR_RETURN(state, state_of(path));
    facts.state = state;
    const Path parent = existing_parent(path);
    facts.is_writable = ::access(parent.c_str(), W_OK | X_OK) == 0;
    STOKER_ASSIGN_OR_RETURN(space, preflight::free_space_of(parent, Deadline::after(kQuotaTimeout)));
    facts.free_bytes = space.bytes.value;
    facts.free_files = space.files;
    facts.bytes_limited_by = space.bytes_limited_by;
    facts.files_limited_by = space.files_limited_by;
    facts.quota_error = space.quota_error;
    return facts;
  }

  Result<std::vector<std::optional<std::uint64_t>>> sizes(const std::vector<std::string>& files) override {
    std::vector<std::optional<std::uint64_t>> found;
    for (const std::string& file : files) {
      struct stat about{};
      const bool is_file = ::stat(file.c_str(), &about) == 0 && S_ISREG(about.st_mode);
      found.push_back(is_file ? std::optional(static_cast<std::uint64_t>(about.st_size)) : std::nullopt);
    }
    return found;
  }

  Result<std::uint64_t> entries(const std::string& folder) override {
    STOKER_ASSIGN_OR_RETURN(names, list_directory(folder));
    return names.size();
  }

  Status make_folder(const std::string& folder) override { return make_directories(folder); }

  Status put(const std::string& file, std::uint64_t block, std::string_view bytes) override {
    if (pacer_ != nullptr) pacer_->acquire(bytes.size(), should_stop_);
    const Fd created(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!created) return posix_error(printable(file), errno);
    STOKER_ASSIGN_OR_RETURN(opened, File::open_read_write(file));
    STOKER_RETURN_IF_ERROR(
        opened.write_at(block * kBlock, std::as_bytes(std::span(bytes.data(), bytes.size()))));
    return opened.close();
  }

  Result<std::vector<Digest>> hashes(const std::string& file, BlockRange range) override {
    STOKER_ASSIGN_OR_RETURN(opened, File::open_regular(file));
    STOKER_ASSIGN_OR_RETURN(size, opened.size());
    std::vector<Digest> found;
    std::vector<std::byte> buffer;
    for (std::uint64_t i = 0; i < range.count; ++i) {
      buffer.resize(bytes_of_range(size, range.first + i));
      STOKER_RETURN_IF_ERROR(opened.read_at((range.first + i) * kBlock, buffer));
      found.push_back(sha256(buffer));
    }
    return found;
  }

  Result<std::string> get(const std::string& file, std::uint64_t block, std::uint64_t bytes) override {
    STOKER_ASSIGN_OR_RETURN(opened, File::open_regular(file));
    std::string text(std::min(bytes, kBlock), '\0');
    STOKER_RETURN_IF_ERROR(
        opened.read_at(block * kBlock, std::as_writable_bytes(std::span(text.data(), text.size()))));
    return text;
  }

  Status publish(const std::string& pending, const std::string& path, const std::string& aside) override {
    const Fd opened(::open(pending.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!opened || ::syncfs(opened.get()) != 0) return posix_error(printable(pending), errno);
    if (!aside.empty()) STOKER_RETURN_IF_ERROR(rename_path(path, aside));
    // rename(2) replaces an empty folder, and nothing else.
    if (::rename(pending.c_str(), path.c_str()) != 0) {
      const int why = errno;
      if (!aside.empty()) (void)rename_path(aside, path);
      const bool is_taken = why == ENOTEMPTY || why == EEXIST || why == ENOTDIR;
      return is_taken ? exists("{}: something else was created there meanwhile", printable(path))
                      : posix_error(printable(path), why);
    }
    return sync_directory(Path(path).parent_path());
  }

  std::string hashed_by() const override { return format("stoker {}", version()); }

 private:
  Pacer* const pacer_;
  const std::function<bool()> should_stop_;
};

}  // namespace

std::unique_ptr<Endpoint> folder_endpoint(Pacer* pacer, std::function<bool()> should_stop) {
  return std::make_unique<FolderEndpoint>(pacer, std::move(should_stop));
}

}  // namespace stoker::transfer
