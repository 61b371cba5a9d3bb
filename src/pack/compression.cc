#include "pack/compression.h"

#include <algorithm>
#include <ctime>
#include <functional>
#include <map>

#include "base/hash.h"
#include "codec/filters/filters.h"
#include "sources/files/tree.h"

namespace stoker::pack {

namespace {

constexpr std::size_t kBlock = 1u << 20;
constexpr std::size_t kMaxBytesPerExtension = 8u << 20;  // measured bytes per extension
constexpr std::uint64_t kMaxBytesPerFile = 1u << 20;     // measured bytes per file
constexpr std::size_t kMaxKinds = 8;
constexpr std::size_t kMaxSamples = 4096;

// CPU time of this thread, independent of other processes.
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
                   [level](std::span<const std::byte> bytes) { return codec::compress_zstd(bytes, level); },
                   [](std::span<const std::byte> packed, std::span<std::byte> out) {
                     return codec::decompress_zstd(packed, out, "zstd");
                   }});
  }
  constexpr int kUsual = 6;
  all.push_back(
      {format("gzip {}", kUsual),
       [](std::span<const std::byte> bytes) { return codec::deflate(codec::Deflate::gzip, bytes, kUsual); },
       [](std::span<const std::byte> packed, std::span<std::byte> out) {
         return codec::inflate(codec::Deflate::gzip, packed, out, "gzip");
       }});
  return all;
}

// A sample of the source's files, by extension.
struct FileSamples {
  std::map<std::string, std::string> bytes;
  std::map<std::string, std::uint64_t> source_bytes_by_extension;  // of the whole source
  std::uint64_t sample_count = 0;
  std::uint64_t source_bytes = 0;
};

Status add_file(const sources::PackSource& source, const sources::SourceSample& sample, std::uint32_t which,
                FileSamples& samples) {
  const sources::SourceFile& file = source.file(sample, which);
  const std::string extension = sources::extension_of(file.name);
  if (!samples.bytes.contains(extension) && samples.bytes.size() == kMaxKinds) return {};
  std::string& into = samples.bytes[extension];
  const std::uint64_t wanted = std::min(file.bytes, kMaxBytesPerFile);
  if (wanted == 0 || into.size() + wanted > kMaxBytesPerExtension) return {};
  const std::string& folder = source.folders[sample.folder].path;
  sources::FileBytes whole;
  if (wanted < file.bytes && source.tree->has_parts(file)) {
    STOKER_RETURN_IF_ERROR(source.tree->read_part(folder, file, 0, whole.resize(wanted)));
  } else {
    STOKER_RETURN_IF_ERROR(source.tree->read(folder, file, whole));
  }
  into.append(reinterpret_cast<const char*>(whole.bytes().data()),
              std::min<std::size_t>(wanted, whole.bytes().size()));
  return {};
}

Result<FileSamples> sample_files(const sources::PackSource& source, const Progress& progress) {
  FileSamples samples;
  for (const std::vector<sources::SourceSample>& split : source.samples) {
    const std::size_t step = std::max<std::size_t>(1, split.size() / kMaxSamples);
    samples.sample_count += split.size();
    for (std::size_t i = 0; i < split.size(); ++i) {
      if (progress.stop_requested()) return cancelled("interrupted while measuring compression");
      for (std::uint32_t which = 0; which < split[i].files; ++which) {
        const sources::SourceFile& file = source.file(split[i], which);
        samples.source_bytes_by_extension[sources::extension_of(file.name)] += file.bytes;
        samples.source_bytes += file.bytes;
        if (i % step == 0) STOKER_RETURN_IF_ERROR(add_file(source, split[i], which, samples));
      }
    }
  }
  std::erase_if(samples.bytes, [](const auto& kind) { return kind.second.empty(); });
  return samples;
}

struct MethodStats {
  double plain = 0;
  double packed = 0;
  double pack_s = 0;
  double unpack_s = 0;
};

Result<MethodStats> measure(const Method& method, std::string_view text) {
  MethodStats measured;
  std::vector<std::byte> out(kBlock);
  for (std::size_t at = 0; at < text.size(); at += kBlock) {
    const auto block = std::as_bytes(std::span(text.substr(at, kBlock)));
    const double begin = cpu_seconds();
    STOKER_ASSIGN_OR_RETURN(packed, method.pack(block));
    const double between = cpu_seconds();
    STOKER_RETURN_IF_ERROR(
        method.unpack(std::as_bytes(std::span(packed)), std::span(out).first(block.size())));
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
  if (advice.sampled_bytes == 0) return "there is no data to measure";
  const auto best = std::min_element(advice.trials.begin(), advice.trials.end(),
                                     [](const auto& a, const auto& b) { return a.ratio < b.ratio; });
  const std::string kinds = kinds_text(advice.kinds);
  if (best->ratio > kWorthIt) return format("the files are already compressed (zstd 3: {})", kinds);
  return format("{} would reach {:.2f} (zstd 3: {}), but reading a sample of {} would unpack a block",
                best->name, best->ratio, kinds, rounded({sample_bytes}));
}

}  // namespace

Result<CompressionAdvice> advise_compression(const sources::PackSource& source, const Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(samples, sample_files(source, progress));
  CompressionAdvice advice;
  double tried = 0;  // bytes of the source in measured extensions
  for (const auto& [extension, text] : samples.bytes) {
    advice.sampled_bytes += text.size();
    tried += static_cast<double>(samples.source_bytes_by_extension[extension]);
  }
  for (const Method& method : methods()) {
    CompressionTrial trial{.name = method.name, .ratio = advice.sampled_bytes == 0 ? 1.0 : 0.0};
    MethodStats all;
    for (const auto& [extension, text] : samples.bytes) {
      if (progress.stop_requested()) return cancelled("interrupted while measuring compression");
      STOKER_ASSIGN_OR_RETURN(measured, measure(method, text));
      const double share = static_cast<double>(samples.source_bytes_by_extension[extension]) / tried;
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
  advice.why = reason(advice, samples.source_bytes / std::max<std::uint64_t>(1, samples.sample_count));
  return advice;
}

}  // namespace stoker::pack
