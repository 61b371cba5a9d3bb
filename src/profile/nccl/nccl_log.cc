#include "profile/nccl/nccl_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "archive/decompress.h"
#include "base/file.h"
#include "base/json/json.h"
#include "stoker/text.h"

namespace stoker::profile {
namespace {

constexpr std::string_view kMark = " NCCL INFO ";
// The key of a line of NCCL's Inspector.
constexpr std::string_view kInspector = "\"coll_perf\"";
constexpr std::size_t kMostLine = 64u << 10;
constexpr std::uint64_t kMostRanks = 1u << 24;

std::optional<std::uint64_t> parse_hex(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() ? std::optional(value)
                                                                                   : std::nullopt;
}

std::optional<std::uint64_t> parse_decimal(std::string_view text) {
  std::uint64_t value = 0;
  return parse_number(text, &value) ? std::optional(value) : std::nullopt;
}

// The word after the key, "4" of "nranks 4" and "[nranks=4]"; "" without the key.
std::string_view word_after(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at < text.size(); at = text.find(key, at + 1)) {
    const bool begins_word = at == 0 || text[at - 1] == ' ' || text[at - 1] == '[';
    const std::size_t after = at + key.size();
    if (!begins_word || after >= text.size() || (text[after] != ' ' && text[after] != '=')) continue;
    const std::string_view rest = text.substr(after + 1);
    return rest.substr(0, rest.find_first_of(" ]\r"));
  }
  return "";
}

struct Process {
  std::string host;
  std::uint64_t pid = 0;
};

// "node1:4711:4802 [3]" at the end of any prefix.
std::optional<Process> parse_process(std::string_view prefix) {
  const auto last_word = [&prefix] {
    while (prefix.ends_with(' ')) prefix.remove_suffix(1);
    const std::size_t at = prefix.rfind(' ') + 1;  // npos + 1 is 0
    const std::string_view word = prefix.substr(at);
    prefix = prefix.substr(0, at);
    return word;
  };
  std::string_view word = last_word();
  if (word.starts_with('[')) word = last_word();
  const std::size_t second = word.rfind(':');
  if (second >= word.size() || second == 0) return std::nullopt;
  const std::size_t first = word.rfind(':', second - 1);
  if (first >= word.size() || first == 0) return std::nullopt;
  const auto pid = parse_decimal(word.substr(first + 1, second - first - 1));
  if (!pid || !parse_decimal(word.substr(second + 1))) return std::nullopt;
  return Process{std::string(word.substr(0, first)), *pid};
}

Status read_lines(const Path& path, const std::function<void(std::string_view)>& visit) {
  STOKER_ASSIGN_OR_RETURN(file, File::open_regular(path));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  std::array<std::byte, 4> begin{};
  if (size >= begin.size()) STOKER_RETURN_IF_ERROR(file.read_at(0, begin));
  STOKER_ASSIGN_OR_RETURN(reader,
                          archive::DecompressingReader::open(file, archive::detect_compression(begin)));
  std::string rest;
  while (true) {
    STOKER_ASSIGN_OR_RETURN(piece, reader.next());
    if (piece.empty()) break;
    rest.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    std::size_t at = 0;
    for (std::size_t end = rest.find('\n'); end < rest.size(); at = end + 1, end = rest.find('\n', at))
      visit(std::string_view(rest).substr(at, std::min(end - at, kMostLine)));
    rest.erase(0, at);
    // The rest of a line that is too long for NCCL.
    if (rest.size() > kMostLine) rest.resize(kMostLine);
  }
  visit(rest);
  return {};
}

std::string element_name(std::uint64_t datatype) {
  constexpr std::string_view kNames[] = {"int8",    "uint8",    "int32",      "uint32",
                                         "int64",   "uint64",   "float16",    "float32",
                                         "float64", "bfloat16", "float8e4m3", "float8e5m2"};
  return datatype < std::size(kNames) ? std::string(kNames[datatype]) : format("type {}", datatype);
}

}  // namespace

void NcclLog::add_line(std::string_view line, CollectiveTable& collectives) {
  if (line.starts_with('{') && line.find(kInspector) < line.size()) return add_measured(line, collectives);
  const std::size_t mark = line.find(kMark);
  if (mark >= line.size()) return;
  ++lines_;
  const std::string_view text = line.substr(mark + kMark.size());
  const std::size_t colon = text.find(": opCount ");
  const bool is_collective = colon < text.size();
  const bool is_start = text.find("Init COMPLETE") < text.size();
  const bool is_end =
      text.find("Destroy COMPLETE") < text.size() || text.find("Abort COMPLETE") < text.size();
  if (!is_collective && !is_start && !is_end) return;
  const auto process = parse_process(line.substr(0, mark));
  const auto address = parse_hex(word_after(text, "comm"));
  if (!process || !address) {
    ++rejected_;
    return;
  }
  const Key key{process->host, process->pid, *address};
  if (is_collective) {
    add_collective(key, text.substr(0, colon), text.substr(colon), collectives);
  } else if (is_start) {
    add_communicator(key, text);
  } else {
    communicators_.erase(key);
  }
}

void NcclLog::add_measured(std::string_view line, CollectiveTable& collectives) {
  using Json = nlohmann::json;
  ++lines_;
  const Json object = parse_json<Json>(line);
  const Json::json_pointer coll("/coll_perf/coll"), size("/coll_perf/coll_msg_size_bytes"),
      time("/coll_perf/coll_exec_time_us"), ranks("/header/n_ranks"), id("/header/id");
  const auto is_number = [&](const Json::json_pointer& at) {
    return object.contains(at) && object[at].is_number();
  };
  const double micros = is_number(time) ? object[time].get<double>() : -1;
  const bool is_whole = object.is_object() && object.contains(coll) && object[coll].is_string() &&
                        is_number(size) && object[size].is_number_unsigned() && micros >= 0 && micros < 1e12;
  if (!is_whole) {
    ++rejected_;
    return;
  }
  CollectiveKind kind;
  kind.operation = clipped(operation_name(object[coll].get<std::string>()), 64);
  if (object.contains(id) && object[id].is_string()) kind.group = clipped(object[id].get<std::string>(), 64);
  if (object.contains(ranks) && object[ranks].is_number_unsigned())
    kind.ranks = static_cast<int>(std::min(object[ranks].get<std::uint64_t>(), kMostRanks));
  kind.bytes = object[size].get<std::uint64_t>();
  ++timed_;
  collectives.add(std::move(kind), static_cast<Nanos>(micros * 1000));
}

void NcclLog::add_communicator(const Key& key, std::string_view text) {
  const auto ranks = parse_decimal(word_after(text, "nranks"));
  const auto rank = parse_decimal(word_after(text, "rank"));
  if (!ranks || !rank || *ranks == 0 || *ranks > kMostRanks || *rank >= *ranks) {
    ++rejected_;
    return;
  }
  Communicator made{.group = "", .ranks = static_cast<int>(*ranks)};
  const std::string_view id = word_after(text, "commId");
  const auto parent = parse_hex(word_after(text, "parent"));
  if (!id.empty()) {
    made.group = id;
  } else if (parent) {  // since 2.23 the parts of a split have no id
    const auto found = communicators_.find({std::get<0>(key), std::get<1>(key), *parent});
    std::string_view child = word_after(text, "childCount");
    if (child.empty()) child = word_after(text, "splitCount");
    made.group = format("{}/{}.{}", found == communicators_.end() ? "split" : found->second.group, child,
                        word_after(text, "color"));
  }
  made.group = clipped(made.group, 64);
  if (communicators_.size() < kMostCommunicators || communicators_.contains(key))
    communicators_.insert_or_assign(key, std::move(made));
}

void NcclLog::add_collective(const Key& key, std::string_view operation, std::string_view text,
                             CollectiveTable& collectives) {
  const auto count = parse_decimal(word_after(text, "count"));
  const auto datatype = parse_decimal(word_after(text, "datatype"));
  const bool is_whole =
      !word_after(text, "stream").empty() && parse_hex(word_after(text, "opCount")).has_value();
  const std::size_t blank = operation.rfind(' ') + 1;  // npos + 1 is 0
  if (!count || !datatype || !is_whole || blank == operation.size()) {
    ++rejected_;
    return;
  }
  const auto found = communicators_.find(key);
  const auto ranks = parse_decimal(word_after(text, "nranks"));
  CollectiveKind kind;
  kind.operation = clipped(operation_name(operation.substr(blank)), 64);
  kind.element = element_name(*datatype);
  if (found != communicators_.end()) {
    kind.group = found->second.group;
    kind.ranks = found->second.ranks;
  }
  if (ranks && *ranks <= kMostRanks) kind.ranks = static_cast<int>(*ranks);
  kind.bytes = collective_bytes(kind.operation, *count, element_bytes(kind.element), kind.ranks);
  collectives.add(std::move(kind), std::nullopt);
}

bool looks_like_inspector(const Path& path) {
  const auto file = File::open_regular(path);
  const auto size = file.ok() ? file->size() : Result<std::uint64_t>(file.status());
  if (!size.ok()) return false;
  std::string begin(std::min<std::uint64_t>(*size, 4096), ' ');
  if (!file->read_at(0, std::as_writable_bytes(std::span(begin))).ok()) return false;
  return std::string_view(begin).substr(0, begin.find('\n')).find(kInspector) < begin.size();
}

NcclLines& NcclLines::operator+=(const NcclLines& more) {
  lines += more.lines;
  timed += more.timed;
  rejected += more.rejected;
  if (problem.empty()) problem = more.problem;
  return *this;
}

NcclLines read_nccl_log(const Path& path, CollectiveTable& collectives) {
  NcclLog log;
  const Status status = read_lines(path, [&](std::string_view line) { log.add_line(line, collectives); });
  return {.lines = log.lines(),
          .timed = log.timed(),
          .rejected = log.rejected(),
          .problem = std::string(status.ok() ? "" : status.message())};
}

}  // namespace stoker::profile
