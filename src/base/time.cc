#include "stoker/time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <thread>
#include <vector>

namespace stoker {

using namespace std::chrono_literals;

WallTime RealClock::wall() const {
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}
MonoTime RealClock::mono() const {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
}
void RealClock::sleep(Duration duration) { std::this_thread::sleep_for(duration); }

Deadline Deadline::after(Duration duration) {
  const MonoTime now = RealClock().mono();
  return Deadline(duration > MonoTime::max() - now ? MonoTime::max() : now + duration);
}

bool Deadline::passed() const { return time_ != MonoTime::max() && RealClock().mono() >= time_; }

Duration Deadline::left() const {
  if (time_ == MonoTime::max()) return Duration::max();
  return std::max(Duration::zero(), time_ - RealClock().mono());
}

int Deadline::poll_ms(int cap_ms) const {
  const Duration remaining = left();
  if (remaining >= std::chrono::milliseconds(cap_ms)) return cap_ms;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(remaining).count());
}

std::string utc_text(WallTime time) {
  const std::time_t seconds =
      std::chrono::system_clock::to_time_t(std::chrono::time_point_cast<std::chrono::system_clock::duration>(
          std::chrono::floor<std::chrono::seconds>(time)));
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                parts.tm_hour, parts.tm_min, parts.tm_sec);
}

double unix_seconds(WallTime time) { return Seconds(time.time_since_epoch()).count(); }

namespace {

struct TimeUnit {
  std::string_view name;
  Duration length;
};
constexpr std::array kTimeUnits = {TimeUnit{"d", 24h},    TimeUnit{"h", 1h},  TimeUnit{"m", 1min},
                                   TimeUnit{"min", 1min}, TimeUnit{"s", 1s},  TimeUnit{"ms", 1ms},
                                   TimeUnit{"us", 1us},   TimeUnit{"ns", 1ns}};
// Longer durations are mistakes. Sums of a few of these still fit.
constexpr Duration kLongest = 24h * 365 * 50;

// Slurm's [days-]hours:minutes:seconds, hours:minutes:seconds or minutes:seconds.
Result<Duration> parse_colons(std::string_view text, const Status& malformed) {
  std::int64_t days = 0;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    if (!parse_number(text.substr(0, dash), &days) || days < 0 || days > 20000) return malformed;
    text.remove_prefix(dash + 1);
  }
  std::int64_t total = 0;
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3) return malformed;
  for (std::string_view part : parts) {
    std::int64_t n = 0;
    if (!parse_number(part, &n) || n < 0 || n > 1'000'000) return malformed;
    total = total * 60 + n;
  }
  return Duration(days * Duration(24h) + std::chrono::seconds(total));
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  const Status malformed = invalid("'{}' is not a duration (such as 90s, 20h or 1:30:00)", printable(text));
  if (text.find(':') != std::string_view::npos) return parse_colons(text, malformed);
  if (double bare = 0; parse_number(text, &bare) && text.find_first_of("xXnN-") == std::string_view::npos) {
    return invalid("'{}' has no unit (write {}s, {}m or {}h)", text, text, text, text);
  }
  Duration total{0};
  std::string_view rest = text;
  if (rest.empty()) return malformed;
  while (!rest.empty()) {
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789."), rest.size());
    double amount = 0;
    if (digits == 0 || !parse_number(rest.substr(0, digits), &amount)) return malformed;
    rest.remove_prefix(digits);
    const std::size_t letters = std::min(rest.find_first_of("0123456789."), rest.size());
    const auto unit = std::find_if(kTimeUnits.begin(), kTimeUnits.end(),
                                   [&](const TimeUnit& u) { return u.name == rest.substr(0, letters); });
    if (unit == kTimeUnits.end()) return malformed;
    const double length = amount * static_cast<double>(unit->length.count());
    if (!(length + static_cast<double>(total.count()) <= static_cast<double>(kLongest.count()))) {
      return invalid("'{}' is longer than 50 years", text);
    }
    total += Duration(std::llround(length));
    rest.remove_prefix(letters);
  }
  return total;
}

std::string duration_text(Duration duration) {
  if (duration == Duration::zero()) return "0s";
  std::string text = duration < Duration::zero() ? "-" : "";
  duration = std::chrono::abs(duration);
  for (const TimeUnit& unit : kTimeUnits) {
    if (unit.name == "min") continue;
    if (const auto count = duration / unit.length; count > 0) {
      text += format("{}{}", count, unit.name);
      duration -= count * unit.length;
    }
  }
  return text;
}

std::string rounded_duration(Duration duration) {
  const double s = Seconds(duration).count();
  if (s < 0.001) return format("{:.0f} us", s * 1e6);
  if (s < 0.9995) return format("{:.{}f} ms", s * 1e3, s < 0.00995 ? 1 : 0);
  if (s < 9.95) return format("{:.1f} s", s);
  const auto whole = std::llround(s);
  if (whole < 60) return format("{} s", whole);
  if (whole < 3600) return format("{} min {:02} s", whole / 60, whole % 60);
  if (whole < 86400) return format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
  return format("{} d {:02} h", whole / 86400, whole % 86400 / 3600);
}

}  // namespace stoker
