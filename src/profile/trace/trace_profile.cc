#include "profile/trace/trace_profile.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "archive/decompress.h"
#include "base/file.h"
#include "profile/trace/event_stream.h"
#include "profile/trace/time_sets.h"
#include "profile/trace/trace_collectives.h"
#include "profile/trace/trace_events.h"

namespace stoker::profile {
namespace {

constexpr std::size_t kMostTraceSteps = 1u << 20;
constexpr std::size_t kMostOpen = 1u << 16;

struct MarkedStep {
  std::int64_t number = 0;
  TimeSpan span;
};

// One file.
struct TraceFacts {
  TimeSets sets{kEventKinds};
  std::vector<MarkedStep> steps;
  TraceInfo info;
  TimeSpan whole;  // from the first event to the last
  bool has_spans = false;
  bool has_gpu = false;
  std::uint64_t damaged = 0;
  std::string end_note;  // why the file ends early
};

std::size_t index_of(EventKind kind) { return static_cast<std::size_t>(kind); }

class TraceReader {
 public:
  TraceReader(TraceFacts& facts, CollectiveTable& collectives) : facts_(facts), collectives_(collectives) {}

  Status read(const Path& file);

 private:
  void take(const TraceEvent& event);
  void take_exchange(const TraceEvent& event);
  void add_span(EventKind kind, const TraceEvent& event);

  TraceFacts& facts_;
  CollectiveTable& collectives_;
  // Asynchronous exchanges of Stoker's traces that have begun, by id.
  struct Open {
    Nanos begin;
    CollectiveKind kind;
  };
  std::map<std::string, Open, std::less<>> open_;
};

void TraceReader::add_span(EventKind kind, const TraceEvent& event) {
  const TimeSpan span{event.begin, event.begin + event.duration};
  facts_.whole = facts_.has_spans ? TimeSpan{std::min(facts_.whole.begin, span.begin),
                                             std::max(facts_.whole.end, span.end)}
                                  : span;
  facts_.has_spans = true;
  if (kind == EventKind::step) {
    if (facts_.steps.size() == kMostTraceSteps) return;
    const auto last = facts_.steps.empty() ? -1 : facts_.steps.back().number;
    facts_.steps.push_back({step_number(event.name).value_or(last + 1), span});
    return;
  }
  facts_.sets.add(index_of(kind), span);
}

// Begin and end have the same id.
void TraceReader::take_exchange(const TraceEvent& event) {
  if (event.phase == "b" && open_.size() < kMostOpen)
    open_.insert_or_assign(std::string(event.id), Open{event.begin, collective_of(event, facts_.info)});
  const auto found = event.phase == "e" ? open_.find(event.id) : open_.end();
  if (found == open_.end()) return;
  Open open = std::move(found->second);
  open_.erase(found);
  if (event.begin < open.begin) return;
  facts_.sets.add(index_of(EventKind::host_communication), {open.begin, event.begin});
  collectives_.add(std::move(open.kind), event.begin - open.begin);
}

void TraceReader::take(const TraceEvent& event) {
  if (!event.has_time) {
    facts_.damaged += event.phase == "X" ? 1 : 0;
    return;
  }
  if (event.category == "exchange") return take_exchange(event);
  const EventKind kind = kind_of(event);
  if (kind == EventKind::none) return;
  add_span(kind, event);
  facts_.has_gpu = facts_.has_gpu || kind == EventKind::compute || kind == EventKind::gpu_communication;
  const bool is_collective = kind == EventKind::gpu_communication ||
                             (kind == EventKind::host_communication && event.category != "phase" &&
                              event.name.find(':') < event.name.size());
  if (is_collective) collectives_.add(collective_of(event, facts_.info), event.duration);
}

Status TraceReader::read(const Path& path) {
  STOKER_ASSIGN_OR_RETURN(file, File::open_regular(path));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  std::byte begin[4] = {};
  if (size >= sizeof begin) STOKER_RETURN_IF_ERROR(file.read_at(0, begin));
  STOKER_ASSIGN_OR_RETURN(reader,
                          archive::DecompressingReader::open(file, archive::detect_compression(begin)));
  EventStream stream([this](const TraceEvent& event) { take(event); },
                     [this](std::string_view key, std::string_view json) {
                       if (key == "distributedInfo") facts_.info = parse_distributed_info(json);
                     });
  const std::string name = printable(path.string());
  while (true) {
    const auto piece = reader.next();
    if (!piece.ok()) {  // what came before counts
      facts_.end_note = piece.status().message();
      break;
    }
    if (piece->empty()) break;
    const std::string_view text(reinterpret_cast<const char*>(piece->data()), piece->size());
    if (Status status = stream.add(text); !status.ok()) return std::move(status).with_context(name);
  }
  if (Status status = stream.finish(); !status.ok()) {
    return facts_.end_note.empty() ? std::move(status).with_context(name) : corrupt("{}", facts_.end_note);
  }
  facts_.damaged += stream.damaged();
  if (stream.is_cut_off() && facts_.end_note.empty()) facts_.end_note = format("{}: ends early", name);
  facts_.sets.finish();
  return {};
}

// What runs first in the list decides about a moment.
struct TimeLayer {
  EventKind kind;
  ProfilePart part;
};
constexpr TimeLayer kGpuLayers[] = {
    {EventKind::compute, ProfilePart::compute},
    {EventKind::gpu_communication, ProfilePart::communication},
    {EventKind::host_to_device, ProfilePart::host_to_device},
    {EventKind::copy, ProfilePart::copies},
    {EventKind::data, ProfilePart::data},
    {EventKind::checkpoint, ProfilePart::checkpoint},
    {EventKind::optimizer, ProfilePart::host},
    {EventKind::backward, ProfilePart::host},
    {EventKind::forward, ProfilePart::host},
    {EventKind::host_communication, ProfilePart::communication},
};
constexpr TimeLayer kHostLayers[] = {
    {EventKind::data, ProfilePart::data},
    {EventKind::checkpoint, ProfilePart::checkpoint},
    {EventKind::optimizer, ProfilePart::optimizer},
    {EventKind::backward, ProfilePart::backward},
    {EventKind::forward, ProfilePart::forward},
    {EventKind::host_communication, ProfilePart::communication},
};

std::span<const TimeLayer> layers_of(const TraceFacts& facts) {
  return facts.has_gpu ? std::span<const TimeLayer>(kGpuLayers) : std::span<const TimeLayer>(kHostLayers);
}

PartTimes split(const TraceFacts& facts, std::span<const TimeSpan> steps) {
  PartTimes times;
  std::vector<TimeSpan> covered;
  Nanos before = 0;
  for (const TimeLayer& layer : layers_of(facts)) {
    covered = unite(covered, facts.sets.set(index_of(layer.kind)));
    const Nanos now = overlap(steps, covered);
    times[layer.part] += now - before;
    before = now;
  }
  times[ProfilePart::other] = length_of(steps) - before;
  return times;
}

// The rank of "rank3.json", "rank-3.1234.pt.trace.json.gz", "trace-0003.json".
int rank_of_name(const Path& file) {
  const std::string name = to_lower(file.filename().string());
  for (const std::string_view stem : {"rank", "trace"}) {
    std::size_t at = name.find(stem);
    if (at >= name.size()) continue;
    at += stem.size();
    if (at < name.size() && (name[at] == '-' || name[at] == '_')) ++at;
    std::size_t end = at;
    while (end < name.size() && end - at < 7 && name[end] >= '0' && name[end] <= '9') ++end;
    std::int64_t rank = -1;
    if (parse_number(std::string_view(name).substr(at, end - at), &rank)) return static_cast<int>(rank);
  }
  return -1;
}

// The selected steps; all of the trace if it has none.
std::vector<TimeSpan> select_spans(TraceFacts& facts, const StepSelection& selection, RankProfile& rank,
                                   Profile& profile) {
  std::vector<TimeSpan> spans;
  if (facts.steps.empty()) {
    rank.steps = 1;
    return {facts.whole};
  }
  for (const MarkedStep& step : facts.steps) {
    if (step.number < selection.first.value_or(step.number) ||
        step.number > selection.last.value_or(step.number))
      continue;
    if (step.span.end <= step.span.begin) continue;
    spans.push_back(step.span);
    rank.steps += 1;
    if (!profile.range) profile.range = StepRange{.first = step.number, .last = step.number};
    profile.range->first = std::min(profile.range->first, step.number);
    profile.range->last = std::max(profile.range->last, step.number);
  }
  join_spans(spans);
  return spans;
}

void note_limits(const TraceFacts& facts, const std::string& name, Profile& profile) {
  if (!facts.end_note.empty())
    profile.notes.push_back(message("{}: what follows is missing", facts.end_note));
  if (facts.damaged > 0)
    profile.notes.push_back(message("{}: damaged events skipped: {}", name, facts.damaged));
  if (facts.sets.gap() > 0)
    profile.notes.push_back(
        message("{}: gaps up to {} us count as busy, to bound memory", name, facts.sets.gap() / 1000));
}

// One rank a number, also for copies of a file.
int choose_rank(const Path& file, const TraceFacts& facts, std::size_t place, Profile& profile) {
  const auto is_taken = [&](int rank) {
    return std::ranges::any_of(profile.ranks, [rank](const RankProfile& each) { return each.rank == rank; });
  };
  int rank = facts.info.rank >= 0 ? facts.info.rank : rank_of_name(file);
  const bool is_known = rank >= 0 && !is_taken(rank);
  if (is_known) return rank;
  const int wanted = rank;
  rank = static_cast<int>(place);
  while (is_taken(rank)) ++rank;
  if (wanted >= 0) {
    profile.notes.push_back(message("{}: rank {} is there twice; it is shown as rank {}",
                                    printable(file.filename().string()), wanted, rank));
  }
  return rank;
}

void add_measured(const TraceFacts& facts, Profile& profile) {
  for (const TimeLayer& layer : layers_of(facts)) {
    if (std::ranges::find(profile.measured, layer.part) == profile.measured.end())
      profile.measured.push_back(layer.part);
  }
  std::ranges::sort(profile.measured);
}

}  // namespace

Status read_traces(std::span<const Path> files, const StepSelection& selection, CollectiveTable& collectives,
                   Profile& profile) {
  profile.source = TimeSource::trace;
  for (std::size_t i = 0; i < files.size(); ++i) {
    TraceFacts facts;
    STOKER_RETURN_IF_ERROR(TraceReader(facts, collectives).read(files[i]));
    const std::string name = printable(files[i].filename().string());
    note_limits(facts, name, profile);
    RankProfile rank;
    const std::vector<TimeSpan> steps = select_spans(facts, selection, rank, profile);
    if (!facts.has_spans || steps.empty()) {
      profile.notes.push_back(message("{}: no spans of operators, kernels or these steps", name));
      continue;
    }
    rank.rank = choose_rank(files[i], facts, i, profile);
    rank.times = split(facts, steps);
    rank.communication = overlap(steps, unite(facts.sets.set(index_of(EventKind::gpu_communication)),
                                              facts.sets.set(index_of(EventKind::host_communication))));
    add_measured(facts, profile);
    profile.ranks.push_back(std::move(rank));
  }
  if (profile.ranks.empty())
    return not_found("{}: no recorded step{}", printable(profile.subject),
                     selection.first || selection.last ? " in this range (--steps)" : "");
  std::ranges::sort(profile.ranks, {}, &RankProfile::rank);
  StepModel model(1);  // of the mean steps
  for (const RankProfile& rank : profile.ranks) {
    PartTimes mean = rank.times;
    for (Nanos& nanos : mean.nanos) nanos /= rank.steps;
    model.add(0, mean);
  }
  find_gains(model, profile);
  return {};
}

bool looks_like_trace(const Path& path) {
  const auto file = File::open_regular(path);
  if (!file.ok()) return false;
  const auto size = file->size();
  std::byte begin[4] = {};
  if (!size.ok() || *size < sizeof begin || !file->read_at(0, begin).ok()) return false;
  auto reader = archive::DecompressingReader::open(*file, archive::detect_compression(begin));
  if (!reader.ok()) return false;
  const auto piece = reader->next();
  if (!piece.ok()) return false;
  const std::string_view text(reinterpret_cast<const char*>(piece->data()), piece->size());
  const std::size_t first = text.find_first_not_of("\xEF\xBB\xBF \r\n\t");
  return first < text.size() && (text[first] == '{' || text[first] == '[');
}

}  // namespace stoker::profile
