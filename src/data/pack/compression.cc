#include "data/pack/compression.h"

#include <algorithm>
#include <ctime>
#include <functional>
#include <map>

#include "base/hash.h"
#include "data/pack/source/tree.h"
#include "format/chunks/filters.h"

namespace stoker::data {

namespace {

constexpr std::size_t kBlock = 1u << 20;
constexpr std::size_t kOfKind = 8u << 20;    // bytes that are tried of one extension
constexpr std::uint64_t kOfFile = 1u << 20;  // and of one file
constexpr std::size_t kMostKinds = 8;
constexpr std::size_t kMostSamples = 4096;

// Seconds that this thread has computed: what else runs here does not count.
double cpu_seconds() {
  std::timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Method {
  std::string name;
  std::function<Result<std::string>(std::span<const std::byte>)> pack;
  std::function<Status(std::span<const std::byte>, std::span<std::byte>)> unpack;
};

std::vector<Method> methods() {
  std::vector<Method> all;
  all.push_back({"none",
                 [](std::span<const std::byte> bytes) -> Result<std::string> {
                   return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
                 },
                 [](std::span<const std::byte> packed, std::span<std::byte> out) -> Status {
                   std::copy(packed.begin(), packed.end(), out.begin());
                   return crc32c(out) == crc32c(packed) ? Status() : internal("memory changes");
                 }});
  for (const int level : {1, 3, 9}) {
    all.push_back({format("zstd {}", level),
                   [level](std::span<const std::byte> bytes) { return formats::zstd(bytes, level); },
                   [](std::span<const std::byte> packed, std::span<std::byte> out) {
                     return formats::unzstd(packed, out, "zstd");
                   }});
  }
  constexpr int kUsual = 6;
  all.push_back({format("gzip {}", kUsual),
                 [](std::span<const std::byte> bytes) {
                   return formats::deflate(formats::Deflate::gzip, bytes, kUsual);
                 },
                 [](std::span<const std::byte> packed, std::span<std::byte> out) {
                   return formats::inflate(formats::Deflate::gzip, packed, out, "gzip");
                 }});
  return all;
}

// Some of a source's files, by their extensions.
struct Gathered {
  std::map<std::string, std::string> bytes;
  std::map<std::string, std::uint64_t> of_all;  // bytes of the whole source
  std::uint64_t samples = 0;
  std::uint64_t source_bytes = 0;
};

Status add_file(const Source& source, const SourceSample& sample, std::uint32_t which, Gathered& gathered) {
  const SourceFile& file = source.file(sample, which);
  const std::string extension = extension_of(file.name);
  if (!gathered.bytes.contains(extension) && gathered.bytes.size() == kMostKinds) return {};
  std::string& into = gathered.bytes[extension];
  const std::uint64_t take = std::min(file.bytes, kOfFile);
  if (take == 0 || into.size() + take > kOfKind) return {};
  const std::string& folder = source.folders[sample.folder].path;
  FileBytes whole;
  if (take < file.bytes && source.tree->has_parts(file)) {
    RETURN_IF_ERROR(source.tree->read_part(folder, file, 0, whole.resize(take)));
  } else {
    RETURN_IF_ERROR(source.tree->read(folder, file, whole));
  }
  into.append(reinterpret_cast<const char*>(whole.bytes().data()),
              std::min<std::size_t>(take, whole.bytes().size()));
  return {};
}

Result<Gathered> gather(const Source& source, const Progress& progress) {
  Gathered gathered;
  for (const std::vector<SourceSample>& split : source.samples) {
    const std::size_t step = std::max<std::size_t>(1, split.size() / kMostSamples);
    gathered.samples += split.size();
    for (std::size_t i = 0; i < split.size(); ++i) {
      if (progress.stop_requested()) return cancelled("stopped while compression was tried");
      for (std::uint32_t which = 0; which < split[i].files; ++which) {
        const SourceFile& file = source.file(split[i], which);
        gathered.of_all[extension_of(file.name)] += file.bytes;
        gathered.source_bytes += file.bytes;
        if (i % step == 0) RETURN_IF_ERROR(add_file(source, split[i], which, gathered));
      }
    }
  }
  std::erase_if(gathered.bytes, [](const auto& kind) { return kind.second.empty(); });
  return gathered;
}

struct Measured {
  double plain = 0;
  double packed = 0;
  double pack_s = 0;
  double unpack_s = 0;
};

Result<Measured> measure(const Method& method, std::string_view text) {
  Measured measured;
  std::vector<std::byte> out(kBlock);
  for (std::size_t at = 0; at < text.size(); at += kBlock) {
    const auto block = std::as_bytes(std::span(text.substr(at, kBlock)));
    const double begin = cpu_seconds();
    OK_OR_RETURN(packed, method.pack(block));
    const double between = cpu_seconds();
    RETURN_IF_ERROR(method.unpack(std::as_bytes(std::span(packed)), std::span(out).first(block.size())));
    measured.pack_s += between - begin;
    measured.unpack_s += cpu_seconds() - between;
    measured.plain += static_cast<double>(block.size());
    measured.packed += static_cast<double>(packed.size());
  }
  return measured;
}

double rate(double bytes, double seconds) { return bytes / 1e6 / std::max(seconds, 1e-9); }

std::string kinds_text(const std::vector<CompressionKind>& kinds) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < kinds.size() && i < kShown; ++i)
    text += format("{}{} {:.2f}", i == 0 ? "" : ", ", printable(kinds[i].extension), kinds[i].ratio);
  return text;
}

std::string reason(const CompressionAdvice& advice, std::uint64_t sample_bytes) {
  constexpr double kWorthIt = 0.95;
  if (advice.sampled_bytes == 0) return "there are no bytes to try it on";
  const auto best = std::min_element(advice.trials.begin(), advice.trials.end(),
                                     [](const auto& a, const auto& b) { return a.ratio < b.ratio; });
  const std::string kinds = kinds_text(advice.kinds);
  if (best->ratio > kWorthIt) return format("the files are compressed already (by zstd 3: {})", kinds);
  return format(
      "{} would leave {:.2f} (by zstd 3: {}), but each sample of {} would cost unpacking a block, and be no "
      "read of its own",
      best->name, best->ratio, kinds, rounded({sample_bytes}));
}

}  // namespace

Result<CompressionAdvice> advise_compression(const Source& source, const Progress& progress) {
  OK_OR_RETURN(gathered, gather(source, progress));
  CompressionAdvice advice;
  double tried = 0;  // bytes of the source whose extensions were tried
  for (const auto& [extension, text] : gathered.bytes) {
    advice.sampled_bytes += text.size();
    tried += static_cast<double>(gathered.of_all[extension]);
  }
  for (const Method& method : methods()) {
    CompressionTrial trial{.name = method.name, .ratio = advice.sampled_bytes == 0 ? 1.0 : 0.0};
    Measured all;
    for (const auto& [extension, text] : gathered.bytes) {
      if (progress.stop_requested()) return cancelled("stopped while compression was tried");
      OK_OR_RETURN(measured, measure(method, text));
      const double share = static_cast<double>(gathered.of_all[extension]) / tried;
      const double ratio = measured.packed / measured.plain;
      trial.ratio += share * ratio;
      all.plain += measured.plain;
      all.pack_s += measured.pack_s;
      all.unpack_s += measured.unpack_s;
      if (method.name == "zstd 3") advice.kinds.push_back({extension, share, ratio});
    }
    trial.write_mb_s = rate(all.plain, all.pack_s);
    trial.read_mb_s = rate(all.plain, all.unpack_s);
    advice.trials.push_back(trial);
  }
  std::stable_sort(advice.kinds.begin(), advice.kinds.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  advice.why = reason(advice, gathered.source_bytes / std::max<std::uint64_t>(1, gathered.samples));
  return advice;
}

}  // namespace stoker::data
