#include "record/receipts.h"

#include <bit>
#include <cstring>

#include "base/language/counted.h"

namespace stoker::record {

static_assert(std::endian::native == std::endian::little, "receipts are little-endian on disk");

namespace {

constexpr std::size_t kHead = 3 * sizeof(std::uint32_t);

std::uint32_t word_at(std::string_view bytes, std::size_t index) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data() + index * sizeof word, sizeof word);
  return word;
}

}  // namespace

Result<ReceiptWriter> ReceiptWriter::create(const Path& file) {
  STOKER_ASSIGN_OR_RETURN(made, File::create_new(file));
  return ReceiptWriter(std::move(made));
}

Status ReceiptWriter::append(std::uint32_t epoch, std::uint32_t step,
                             std::span<const std::uint64_t> samples) {
  if (file_.fd() < 0) return {};
  STOKER_CHECK(samples.size() <= kMaxReceiptSamples);
  const std::uint32_t head[3] = {epoch, step, static_cast<std::uint32_t>(samples.size())};
  buffer_.resize(kHead + samples.size_bytes());
  std::memcpy(buffer_.data(), head, kHead);
  if (!samples.empty()) std::memcpy(buffer_.data() + kHead, samples.data(), samples.size_bytes());
  Status written = file_.write(buffer_);
  if (!written.ok()) file_ = File();
  return written;
}

Result<ReceiptLog> read_receipts(const Path& file) {
  STOKER_ASSIGN_OR_RETURN(content, read_file(file, 8_GiB));
  ReceiptLog log;
  std::string_view rest = content;
  while (!rest.empty()) {
    log.torn = rest.size() < kHead;
    if (log.torn) break;
    const std::uint32_t count = word_at(rest, 2);
    if (count > kMaxReceiptSamples) {
      return corrupt("{}: {} in one step at byte {}, at most {} are possible", printable(file.string()),
                     counted(count, "sample"), content.size() - rest.size(), kMaxReceiptSamples);
    }
    const std::size_t body = count * sizeof(std::uint64_t);
    log.torn = rest.size() - kHead < body;
    if (log.torn) break;
    Receipt receipt{word_at(rest, 0), word_at(rest, 1), std::vector<std::uint64_t>(count)};
    if (count > 0) std::memcpy(receipt.samples.data(), rest.data() + kHead, body);
    log.receipts.push_back(std::move(receipt));
    rest.remove_prefix(kHead + body);
  }
  return log;
}

}  // namespace stoker::record
