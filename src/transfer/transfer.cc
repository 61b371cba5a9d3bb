// Protocol of a transfer:
//   1. the pending folder .stoker-transfer-<hash of version and name> is created beside the target
//   2. each stream takes pieces of files. A piece that an earlier call may have written is hashed there
//   first;
//      blocks that differ from the source are sent, and hashed there
//   3. the sizes of all files are compared; the manifest is written last
//   4. the pending folder is renamed to the target         <- the dataset exists
// A crash before 4 leaves the pending folder, whose blocks the next call compares. Nothing is remembered, so
// nothing can be out of date. Two calls with the same dataset write the same bytes to the same folder; the
// second one finds the dataset complete.
#include "transfer/transfer.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "base/language/counted.h"
#include "base/pacer.h"
#include "base/stopwatch.h"
#include "base/user.h"
#include "transfer/copy_marker.h"
#include "transfer/copy_streams.h"
#include "transfer/folder_endpoint.h"
#include "transfer/plan.h"
#include "transfer/ssh_endpoint.h"

namespace stoker::transfer {
namespace {

constexpr std::string_view kPendingBegin = ".stoker-transfer-";
constexpr std::string_view kLeftOutFile = "left-out.csv";
constexpr std::size_t kPendingDigits = 8;  // bytes of the hash
// A file takes at least a block of its filesystem.
constexpr std::uint64_t kBytesPerFile = 4096;

enum class Passwords { asked, refused };

class Transfer {
 public:
  Transfer(const Location& source, const Location& target, const TransferOptions& options, Progress& progress)
      : source_location_(source),
        target_location_(target),
        options_(options),
        progress_(progress),
        pacer_(options.limit.value) {}

  Result<TransferReport> run() {
    const Stopwatch watch;
    STOKER_RETURN_IF_ERROR(open_source());
    STOKER_RETURN_IF_ERROR(open_target());
    STOKER_ASSIGN_OR_RETURN(is_present, check_target());
    if (is_present) {
      report_.outcome = TransferOutcome::present;
      return report_;
    }
    STOKER_RETURN_IF_ERROR(find_earlier_blocks());
    STOKER_RETURN_IF_ERROR(check_space());
    if (options_.is_dry_run) {
      report_.outcome = TransferOutcome::planned;
      report_.sent_bytes = report_.bytes - possible_bytes_;
      return report_;
    }
    const Status copied = copy();
    if (!copied.ok()) {
      // Another call may have completed it meanwhile.
      const bool may_be_done = copied.code() == Code::exists || copied.code() == Code::not_found;
      if (!may_be_done || !is_complete_now()) return copied;
      report_.outcome = TransferOutcome::present;
    }
    report_.seconds = watch.seconds();
    return report_;
  }

 private:
  Result<std::unique_ptr<Endpoint>> connect(const Location& location, Passwords passwords) {
    const auto should_stop = [this] { return progress_.stop_requested(); };
    const bool is_local = !source_location_.host && !target_location_.host;
    // Of a host and this machine, the connection is limited.
    if (!location.host) return folder_endpoint(is_local ? &pacer_ : nullptr, should_stop);
    return ssh_endpoint({.host = *location.host,
                         .transfer_node = location.transfer_node,
                         .may_ask = passwords == Passwords::asked,
                         .pacer = &pacer_},
                        should_stop);
  }

  Status open_source() {
    STOKER_ASSIGN_OR_RETURN(endpoint, connect(source_location_, Passwords::asked));
    streams_.push_back({.source = std::move(endpoint), .target = nullptr});
    Endpoint& source = *streams_[0].source;
    STOKER_ASSIGN_OR_RETURN(facts, source.look(source_location_.path));
    source_path_ = facts.path;
    STOKER_ASSIGN_OR_RETURN(dataset, open_dataset(source, facts));
    auto plan = plan_transfer(source, source_path_, std::move(dataset));
    if (!plan.ok()) return at(source_location_, plan.status());
    plan_.emplace(std::move(*plan));
    report_.version = plan_->dataset.manifest.version;
    report_.shards = plan_->shards;
    report_.files = plan_->files.size();
    report_.bytes = plan_->bytes;
    report_.ignored = plan_->ignored;
    return {};
  }

  Result<dataset::OpenDataset> open_dataset(Endpoint& source, const PathFacts& facts) {
    if (!source_location_.host && facts.state != PathState::folder)
      return dataset::open_dataset(source_path_);
    if (facts.state == PathState::dataset) {
      const TempDirectory temporary;
      auto opened = open_through(source, source_path_, temporary.path());
      if (!opened.ok()) return Status(opened.status()).with_context(source_location_.text);
      return opened;
    }
    const std::string path = source_location_.path;
    if (facts.state == PathState::absent) return not_found("{}: does not exist", source_location_.text);
    Status error = not_found("{}: is not a dataset (no {})", source_location_.text, dataset::kManifestFile);
    const std::string on = source_location_.host ? "      (on the host)" : "";
    return std::move(error).cure("stoker data pack {} {}{}", shell_quote(path), shell_quote(path + "-packed"),
                                 on);
  }

  Status open_target() {
    STOKER_ASSIGN_OR_RETURN(endpoint, connect(target_location_, Passwords::asked));
    streams_[0].target = std::move(endpoint);
    report_.verified_by = streams_[0].target->hashed_by();
    return {};
  }

  // By a new connection: the far side may have ended after an error.
  bool is_complete_now() {
    auto target = connect(target_location_, Passwords::refused);
    if (!target.ok()) return false;
    streams_.clear();
    streams_.push_back({.source = nullptr, .target = std::move(*target)});
    const auto is_complete = check_target();
    return is_complete.ok() && *is_complete;
  }

  // Whether the dataset is at the target. Exists for anything else there.
  Result<bool> check_target() {
    Endpoint& target = *streams_[0].target;
    STOKER_ASSIGN_OR_RETURN(facts, target.look(target_location_.path));
    facts_ = facts;
    report_.target = facts.path;
    report_.free_bytes = facts.free_bytes;
    report_.free_limited_by = facts.bytes_limited_by;
    report_.quota_error = facts.quota_error;
    const std::string& text = target_location_.text;
    if (facts.state == PathState::other) return exists("{}: is not a folder", text);
    if (facts.state == PathState::folder) {
      const std::string name = Path(source_path_).filename().string();
      return exists("{}: is a folder with other files", text)
          .cure("stoker {} {} {}", options_.command, shell_quote(source_location_.text),
                shell_quote(target_location_.with_path(target_location_.path + "/" + name)));
    }
    if (facts.state == PathState::dataset) return check_dataset_there();
    return false;
  }

  Result<bool> check_dataset_there() {
    Endpoint& target = *streams_[0].target;
    const std::string& text = target_location_.text;
    const auto json = read_through(target, facts_.path + "/" + std::string(dataset::kManifestFile));
    if (!json.ok() && json.status().code() != Code::not_found) return at(target_location_, json.status());
    const auto manifest =
        json.ok() ? dataset::parse_manifest(*json, text) : Result<dataset::Manifest>(json.status());
    const bool is_same = manifest.ok() && manifest->version == report_.version;
    if (is_same) {
      const auto difference = first_difference(facts_.path, plan_->files.size() - outside_version());
      if (!difference.ok()) return difference.status();
      if (difference->empty()) return true;
      if (options_.is_replacing) return false;
      return exists("{}: has this version, but {}", text, *difference)
          .cure("--replace      (moves it aside)");
    }
    if (options_.is_replacing) return false;
    if (!manifest.ok())
      return exists("{}: is a dataset that cannot be read", text).cure("--replace      (moves it aside)");
    return exists("{}: is a different dataset (version {}, this one is {})", text, manifest->short_version(),
                  report_.version.substr(0, kPendingDigits))
        .cure("--replace      (moves it aside)");
  }

  // Files at the end of the plan that may differ in the same version.
  std::size_t outside_version() const {
    const auto& files = plan_->files;
    return files.size() > 1 && files[files.size() - 2].name == kLeftOutFile ? 2 : 1;
  }

  // "train-000001.tar is missing", "index.bin has 7 bytes instead of 9"; "" if the first `count` files have
  // their size.
  Result<std::string> first_difference(const std::string& folder, std::size_t count) {
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < count; ++i) paths.push_back(folder + "/" + plan_->files[i].name);
    STOKER_ASSIGN_OR_RETURN(sizes, streams_[0].target->sizes(paths));
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const PlannedFile& file = plan_->files[i];
      if (!sizes[i]) return format("{} is missing", printable(file.name));
      if (*sizes[i] != file.bytes)
        return format("{} has {} bytes instead of {}", printable(file.name), *sizes[i], file.bytes);
    }
    return std::string();
  }

  // Sizes of files in the pending folder.
  Status find_earlier_blocks() {
    const Path path(facts_.path);
    std::string identity = report_.version + "\n" + path.filename().string() + "\n";
    for (const PlannedFile& file : plan_->files) identity += format("{} {}\n", file.name, file.bytes);
    const Digest digest = sha256(identity);
    pending_ =
        (path.parent_path() / (std::string(kPendingBegin) + hex(std::span(digest).first(kPendingDigits))))
            .string();
    std::vector<std::string> paths;
    for (const PlannedFile& file : plan_->files) paths.push_back(pending_ + "/" + file.name);
    STOKER_ASSIGN_OR_RETURN(sizes, streams_[0].target->sizes(paths));
    for (std::size_t i = 0; i < paths.size(); ++i) {
      earlier_.push_back(sizes[i].has_value() ? *sizes[i] : 0);
      possible_bytes_ += std::min(earlier_.back(), plan_->files[i].bytes);
    }
    return {};
  }

  Status check_space() {
    const std::string& text = target_location_.text;
    if (!facts_.is_writable) {
      return invalid("{}: no permission to create a folder in {}", text,
                     printable(Path(facts_.path).parent_path().string()));
    }
    const std::uint64_t files = plan_->files.size() + plan_->folders().size() + 1;
    const std::uint64_t bytes = report_.bytes - possible_bytes_ + files * kBytesPerFile;
    const std::string where = shell_quote(Path(target_location_.path).parent_path().string());
    const std::string cure = target_location_.host ? format("ssh {} df -h {}", target_location_.host->host,
                                                            where == "''" ? "." : where)
                                                   : format("df -h {}", where == "''" ? "." : where);
    if (bytes > facts_.free_bytes)
      return no_space("{}: needs {}, only {} are free {}", text, rounded({bytes}),
                      rounded({facts_.free_bytes}), facts_.bytes_limited_by)
          .cure("{}", cure);
    if (facts_.free_files && files > *facts_.free_files)
      return no_space("{}: needs {}, only {} are free {}", text, counted(files, "inode"),
                      grouped(*facts_.free_files), facts_.files_limited_by)
          .cure("{}", cure);
    return {};
  }

  Status copy() {
    const dataset::OpenDataset& dataset = plan_->dataset;
    if (!source_location_.host)
      STOKER_RETURN_IF_ERROR(check_shards_of_parts(dataset, source_path_, progress_));
    Endpoint& target = *streams_[0].target;
    STOKER_RETURN_IF_ERROR(target.make_folder(pending_));
    for (const std::string& folder : plan_->folders())
      STOKER_RETURN_IF_ERROR(target.make_folder(pending_ + "/" + folder));
    CopyRequest request{.plan = *plan_,
                        .source_folder = source_path_,
                        .target_folder = pending_,
                        .source_name = source_location_.text,
                        .target_name = target_location_.text,
                        .earlier = earlier_,
                        .streams = options_.streams,
                        .open = [this] { return open_stream(); }};
    CopyStreams copying(request, streams_, progress_);
    const Status status = copying.run();
    report_.sent_bytes = copying.sent_bytes();
    report_.found_bytes = copying.found_bytes();
    report_.streams = copying.opened_streams();
    report_.streams_note = copying.streams_note();
    STOKER_RETURN_IF_ERROR(status);
    if (source_location_.host) STOKER_RETURN_IF_ERROR(check_shards_of_parts(dataset, pending_, progress_));
    return publish();
  }

  // Further connections must not ask for passwords: their questions would mix.
  Result<CopyStream> open_stream() {
    STOKER_ASSIGN_OR_RETURN(source, connect(source_location_, Passwords::refused));
    STOKER_ASSIGN_OR_RETURN(target, connect(target_location_, Passwords::refused));
    return CopyStream{.source = std::move(source), .target = std::move(target)};
  }

  Status publish() {
    STOKER_ASSIGN_OR_RETURN(difference, first_difference(pending_, plan_->files.size()));
    if (!difference.empty()) return corrupt("{}: {} there", target_location_.text, difference);
    STOKER_RETURN_IF_ERROR(write_marker());
    std::string aside;
    if (facts_.state == PathState::dataset) aside = facts_.path + ".replaced-" + random_name(6);
    STOKER_RETURN_IF_ERROR(streams_[0].target->publish(pending_, facts_.path, aside));
    report_.moved_aside = aside;
    return {};
  }

  // Not part of the dataset: purge removes the files that it lists.
  Status write_marker() {
    CopyMarker marker{.version = report_.version, .source = source_path_, .files = {}};
    marker.source = source_location_.host ? source_location_.text : host_name() + ":" + source_path_;
    for (const PlannedFile& file : plan_->files) marker.files.push_back({file.name, file.bytes});
    std::string text = to_json(marker);
    const std::string path = pending_ + "/" + std::string(kCopyMarker);
    Endpoint& target = *streams_[0].target;
    // A longer one, of an earlier call with a different source, is not cut.
    STOKER_ASSIGN_OR_RETURN(sizes, target.sizes({path}));
    if (sizes[0] && *sizes[0] > text.size()) text.resize(*sizes[0], ' ');
    for (std::uint64_t block = 0; block * kBlock < text.size(); ++block) {
      STOKER_RETURN_IF_ERROR(target.put(path, block, std::string_view(text).substr(block * kBlock, kBlock)));
    }
    return target.sizes({path}).status();
  }

  static Status at(const Location& location, const Status& status) {
    const bool is_far = location.host && !status.message().starts_with(location.host->host + ":");
    return is_far ? Status(status).with_context(location.host->host) : status;
  }

  const Location source_location_;
  const Location target_location_;
  const TransferOptions options_;
  Progress& progress_;
  Pacer pacer_;
  std::vector<CopyStream> streams_;  // the first one also plans and publishes
  std::string source_path_;
  std::string pending_;
  PathFacts facts_;
  std::optional<TransferPlan> plan_;
  std::vector<std::uint64_t> earlier_;  // size of each file in the pending folder
  std::uint64_t possible_bytes_ = 0;    // that an earlier call may have sent
  TransferReport report_;
};

}  // namespace

Result<TransferReport> transfer_dataset(const Location& source, const Location& target,
                                        const TransferOptions& options, Progress& progress) {
  return Transfer(source, target, options, progress).run();
}

}  // namespace stoker::transfer
