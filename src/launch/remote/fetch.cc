// A run comes here so:
//   1. its folder as a tar into a hidden file beside the runs
//   2. unpacked into a hidden folder, with a mark that it was fetched
//   3. an older copy is renamed away, and this one into its place     <- the run is there
//   4. the older one is removed
// A crash leaves hidden files alone, or between the two renames of 3 no copy: then it is fetched again.
#include <chrono>

#include "launch/remote/call.h"
#include "record/run_folder.h"
#include "stage/unpack.h"

namespace stoker::launch {
namespace {

constexpr std::string_view kMark = ".stoker-fetched";

class Hidden {
 public:
  explicit Hidden(const Path& runs) : path_(runs / (".stoker-fetch-" + random_name())) {}
  Hidden(const Hidden&) = delete;
  Hidden& operator=(const Hidden&) = delete;
  ~Hidden() { (void)remove_tree(path_); }
  const Path& path() const { return path_; }

 private:
  Path path_;
};

Status replace(const Path& fresh, const Path& target, const Hidden& hidden, bool* is_again) {
  *is_again = path_exists(target);
  if (*is_again && !path_exists(target / kMark))
    return exists("{}: is there already, and was not fetched", printable(target.string()));
  if (*is_again) RETURN_IF_ERROR(rename_path(target, hidden.path() / "older"));
  return rename_path(fresh, target);
}

}  // namespace

Result<std::optional<Fetched>> fetch_run(RemoteCall& call, const RemoteRequest& request,
                                         const RemoteHost& host, const Path& runs, int* code) {
  RETURN_IF_ERROR(make_directories(runs));
  const Hidden hidden(runs);
  RETURN_IF_ERROR(make_directory(hidden.path()));
  const Path tar = hidden.path() / "tar", folder = hidden.path() / "run";
  OK_OR_RETURN(file, File::create_new(tar));
  OK_OR_RETURN(exit, call.run(request, nullptr, file.fd()));
  *code = exit;
  if (exit != 0) return std::optional<Fetched>();
  RETURN_IF_ERROR(file.close());
  RETURN_IF_ERROR(make_directory(folder));
  NoProgress progress;
  const auto unpacked =
      stage::unpack(tar, folder, {.links = stage::OutsideLinks::kept, .threads = 2}, progress);
  if (!unpacked.ok()) return Status(unpacked.status()).with_context(host.host);
  OK_OR_RETURN(names, list_directory(folder));
  if (names.size() != 1) return corrupt("{}: sent no folder of a run", host.host);
  OK_OR_RETURN(run, record::RunFolder::open(folder / names.front()));
  RETURN_IF_ERROR(write_file(run.folder() / kMark, format("{}:{}\n", host.host, host.folder)));
  Fetched fetched{.folder = runs / run.id(), .files = unpacked->files, .bytes = unpacked->bytes};
  RETURN_IF_ERROR(replace(run.folder(), fetched.folder, hidden, &fetched.is_again));
  return std::optional(std::move(fetched));
}

}  // namespace stoker::launch
