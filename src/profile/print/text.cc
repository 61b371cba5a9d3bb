#include "profile/print/text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/table.h"
#include "stoker/bytes.h"

namespace stoker::profile {
namespace {

constexpr std::size_t kMostRankRows = 16;
constexpr std::size_t kMostCollectives = 12;
constexpr std::size_t kMostNotes = 8;

// Three digits: "412 ms", "3.41 s", "85 us".
std::string time_text(double seconds) {
  const auto digits = [](double value) {
    return value >= 99.95   ? format("{:.0f}", value)
           : value >= 9.995 ? format("{:.1f}", value)
                            : format("{:.2f}", value);
  };
  if (seconds == 0) return "0";
  if (seconds >= 0.9995) return digits(seconds) + " s";
  if (seconds >= 0.9995e-3) return digits(seconds * 1e3) + " ms";
  return digits(seconds * 1e6) + " us";
}

std::string percent_text(double share) { return format("{:.1f} %", 100 * share); }

std::string rank_text(const RankProfile& rank, const Translator& words) {
  return rank.host.empty() ? words.localize("rank {}", rank.rank)
                           : words.localize("rank {} ({})", rank.rank, printable(rank.host));
}

std::string steps_text(const Profile& profile, const Translator& words) {
  if (!profile.range) return words.localize("no steps are marked: all of the trace counts as one step");
  const StepRange& range = *profile.range;
  const std::int64_t counted = profile.ranks.empty() ? 0 : profile.ranks.front().steps;
  std::string text = words.localize("steps {}-{}: mean of {}", range.first, range.last,
                                    grouped(static_cast<std::uint64_t>(counted)));
  if (range.warm_up > 0)
    text += words.localize(", the first {} left out as warm-up",
                           grouped(static_cast<std::uint64_t>(range.warm_up)));
  return text;
}

std::string heading(const Profile& profile, const Translator& words) {
  std::string text = printable(profile.subject);
  if (profile.attempt > 0) text += words.localize(", attempt {}", profile.attempt);
  if (profile.ranks.size() == 1) text += words.localize(", 1 rank");
  if (profile.ranks.size() > 1) text += words.localize(", {} ranks", profile.ranks.size());
  return text + "\n";
}

// The parts that the source measures, and `other`. Programs and traces may have any part: only parts with
// time.
std::vector<ProfilePart> shown_parts(const Profile& profile) {
  std::vector<ProfilePart> parts = profile.measured;
  if (profile.source != TimeSource::trainer)
    std::erase_if(parts, [&](ProfilePart part) { return profile.seconds_of(part) == 0; });
  if (std::ranges::find(parts, ProfilePart::other) == parts.end()) parts.push_back(ProfilePart::other);
  return parts;
}

std::string gain_text(const Profile& profile, std::optional<ProfilePart> part) {
  for (const Gain& gain : profile.gains) {
    if (gain.part == part) return format("{:.2f} x", gain.factor);
  }
  return "";
}

std::string parts_table(const Profile& profile, const Translator& words) {
  const double step = profile.step_s();
  const bool has_ranks = profile.ranks.size() > 1;
  std::vector<std::string> header = {words.localize("PART"), words.localize("TIME"), words.localize("SHARE")};
  if (has_ranks) header.push_back(words.localize("WORST RANK"));
  header.push_back(words.localize("SPEED WITHOUT IT"));
  std::vector<std::vector<std::string>> rows;
  for (const ProfilePart part : shown_parts(profile)) {
    const double seconds = profile.seconds_of(part);
    std::vector<std::string> row = {label_of(part, words), time_text(seconds),
                                    percent_text(step > 0 ? seconds / step : 0)};
    const RankProfile* worst = profile.worst_rank(part);
    if (has_ranks)
      row.push_back(worst ? format("{}: {}", rank_text(*worst, words), time_text(worst->seconds_of(part)))
                          : "");
    row.push_back(gain_text(profile, part));
    rows.push_back(std::move(row));
  }
  std::vector<std::string> sum = {words.localize("step"), time_text(step), percent_text(step > 0 ? 1 : 0)};
  if (has_ranks) {
    const RankProfile* slowest = profile.slowest_rank();
    sum.push_back(format("{}: {}", rank_text(*slowest, words), time_text(slowest->step_s())));
  }
  sum.emplace_back();
  rows.push_back(std::move(sum));
  return table_text(header, rows);
}

std::string ranks_table(const Profile& profile, const Translator& words) {
  if (profile.ranks.size() < 2) return "";
  if (profile.ranks.size() > kMostRankRows)
    return words.localize("\neach of the {} ranks: --json\n", profile.ranks.size());
  std::vector<std::string> header = {words.localize("RANK")};
  const std::vector<ProfilePart> parts = shown_parts(profile);
  for (const ProfilePart part : parts) {
    if (profile.seconds_of(part) > 0) header.push_back(label_of(part, words));
  }
  header.push_back(words.localize("step"));
  std::vector<std::vector<std::string>> rows;
  for (const RankProfile& rank : profile.ranks) {
    std::vector<std::string> row = {format("{}", rank.rank)};
    for (const ProfilePart part : parts) {
      if (profile.seconds_of(part) > 0) row.push_back(time_text(rank.seconds_of(part)));
    }
    row.push_back(time_text(rank.step_s()));
    rows.push_back(std::move(row));
  }
  return "\n" + table_text(header, rows);
}

std::string bandwidth_text(std::optional<double> bytes_per_s) {
  if (!bytes_per_s || *bytes_per_s >= 1e18) return "-";
  return rounded(ByteCount{static_cast<std::uint64_t>(*bytes_per_s)}) + "/s";
}

std::string collectives_table(const Profile& profile, const Translator& words) {
  if (profile.collectives.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const CollectiveRow& row : profile.collectives) {
    if (rows.size() == kMostCollectives) break;
    rows.push_back({printable(row.kind.operation), row.kind.group.empty() ? "-" : printable(row.kind.group),
                    row.kind.ranks > 0 ? format("{}", row.kind.ranks) : "-",
                    row.kind.bytes > 0 ? rounded(ByteCount{row.kind.bytes}) : "-", format("{}", row.count),
                    row.timed > 0 ? time_text(row.mean_s()) : "-",
                    row.timed > 0 ? time_text(1e-9 * static_cast<double>(row.shortest)) : "-",
                    bandwidth_text(row.algorithm_bandwidth()), bandwidth_text(row.bus_bandwidth())});
  }
  std::string text =
      "\n" + table_text({words.localize("COLLECTIVE"), words.localize("GROUP"), words.localize("RANKS"),
                         words.localize("SIZE"), words.localize("COUNT"), words.localize("MEAN"),
                         words.localize("SHORTEST"), words.localize("ALGBW"), words.localize("BUSBW")},
                        rows);
  if (profile.collectives.size() > rows.size())
    text += words.localize("further kinds: {} (--json)\n", profile.collectives.size() - rows.size());
  return text;
}

std::string condition_text(std::optional<ProfilePart> part, const Translator& words) {
  if (!part) return words.localize("if all ranks were as fast as their mean");
  if (*part == ProfilePart::data) return words.localize("if data never waited");
  if (*part == ProfilePart::host) return words.localize("if the GPU never waited for the host");
  if (*part == ProfilePart::communication) return words.localize("if all communication were hidden");
  return words.localize("without {}", label_of(*part, words));
}

std::string gains_text(const Profile& profile, const Translator& words) {
  std::string text;
  for (const Gain& gain : profile.gains)
    text +=
        (text.empty() ? "" : "; ") + std::string(words.localize("{}: {} x", condition_text(gain.part, words),
                                                                format("{:.2f}", gain.factor)));
  return text;
}

// "14.7 ms not hidden of 20.1 ms".
std::string hidden_text(const Profile& profile, const Translator& words) {
  const double all = profile.communication_s();
  if (all <= 0) return "";
  const double exposed = profile.seconds_of(ProfilePart::communication);
  return words.localize("{} in a step, {} of it hidden", time_text(all),
                        percent_text(std::max(0.0, 1 - exposed / all)));
}

void add_row(std::string& out, const std::string& label, const std::string& text) {
  if (!text.empty()) out += format("  {:<15}{}\n", label, text);
}

}  // namespace

std::string to_plain_text(const Profile& profile, const Translator& words) {
  std::string out = heading(profile, words);
  if (profile.source != TimeSource::none) {
    out += format("  {}\n\n", steps_text(profile, words)) + parts_table(profile, words) +
           ranks_table(profile, words);
  }
  out += collectives_table(profile, words);
  out += "\n";
  if (profile.source != TimeSource::none) {
    add_row(out, words.localize("communication"), hidden_text(profile, words));
    add_row(out, words.localize("possible gain"),
            profile.gains.empty() ? std::string(words.localize("no part to avoid takes 1 % or more"))
                                  : gains_text(profile, words));
  }
  add_row(out, words.localize("advice"), words.render(profile.advice));
  add_row(out, words.localize("next"), profile.command);
  for (std::size_t i = 0; i < std::min(kMostNotes, profile.notes.size()); ++i)
    add_row(out, words.localize("note"), words.render(profile.notes[i]));
  if (profile.notes.size() > kMostNotes)
    add_row(out, words.localize("note"),
            words.localize("further notes: {} (--json)", profile.notes.size() - kMostNotes));
  return out;
}

}  // namespace stoker::profile
