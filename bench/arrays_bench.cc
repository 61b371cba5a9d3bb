// Reads rows of an array for bench/zarr_vs_zarr_python.py and bench/hdf5_vs_h5py.py.
//
//   arrays_bench zarr|hdf5 STORE ARRAY ordered|shuffled ROWS CACHE_MIB THREADS
//
// In batches of ROWS rows, for a fifth of a second: rows per second, and the sum of all bytes of a pass
// before.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "arrays/hdf5/dataset.h"
#include "arrays/zarr/array.h"
#include "base/stopwatch.h"
#include "base/thread.h"
#include "program.h"
#include "stoker/text.h"

namespace stoker::arrays {
namespace {

constexpr double kSeconds = 0.2;

using bench::fail;
using bench::value_or_fail;

std::uint64_t number(const char* text) {
  std::uint64_t value = 0;
  if (!parse_number(text, &value) || value == 0) fail(std::string("no number: ") + text);
  return value;
}

// Reads batches on several threads, in `order` or, if that is empty, in stored order.
template <typename Array>
class Reading {
 public:
  Reading(const Array& array, std::span<const std::uint64_t> order, std::uint64_t batch)
      : array_(array), order_(order), batch_(batch), batches_((array.rows() + batch - 1) / batch) {}

  /// Rows that were read in `seconds`.
  std::uint64_t run(std::size_t threads, double seconds) {
    const Stopwatch watch;
    std::atomic<std::uint64_t> rows{0};
    const auto work = [&] {
      std::vector<std::byte> out(batch_ * array_.row_bytes());
      while (watch.seconds() < seconds) rows += read(next_++ % batches_, out).size() / array_.row_bytes();
    };
    std::vector<Thread> others;
    for (std::size_t t = 1; t < threads; ++t) others.emplace_back([&](const StopToken&) { work(); });
    work();
    others.clear();
    return rows;
  }

  /// The sum of all bytes.
  std::uint64_t sum() {
    std::uint64_t sum = 0;
    std::vector<std::byte> out(batch_ * array_.row_bytes());
    for (std::uint64_t i = 0; i < batches_; ++i) {
      for (const std::byte b : read(i, out)) sum += static_cast<std::uint64_t>(b);
    }
    return sum;
  }

 private:
  std::span<const std::byte> read(std::uint64_t number, std::span<std::byte> out) const {
    const std::uint64_t at = number * batch_;
    const std::uint64_t rows = std::min(batch_, array_.rows() - at);
    const std::span<std::byte> part = out.first(rows * array_.row_bytes());
    const Status status =
        order_.empty() ? array_.read_rows(at, rows, part) : array_.read_rows(order_.subspan(at, rows), part);
    if (!status.ok()) fail(status.to_string());
    return part;
  }

  const Array& array_;
  const std::span<const std::uint64_t> order_;
  const std::uint64_t batch_;
  const std::uint64_t batches_;
  std::atomic<std::uint64_t> next_{0};
};

template <typename Array>
void measure(const Array& array, bool is_shuffled, std::uint64_t batch, std::size_t threads) {
  std::vector<std::uint64_t> order(is_shuffled ? array.rows() : 0);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
  Reading reading(array, order, batch);
  const std::uint64_t sum = reading.sum();
  const Stopwatch watch;
  const std::uint64_t rows = reading.run(threads, kSeconds);
  std::printf("%.0f %llu\n", static_cast<double>(rows) / watch.seconds(),
              static_cast<unsigned long long>(sum));
}

}  // namespace
}  // namespace stoker::arrays

int main(int count, char** argv) {
  using namespace stoker;
  using namespace stoker::codec;
  using namespace stoker::arrays;
  if (count != 8) {
    std::fprintf(stderr, "arrays_bench zarr|hdf5 STORE ARRAY ordered|shuffled ROWS CACHE_MIB THREADS\n");
    return 2;
  }
  const bool is_shuffled = std::string_view(argv[4]) == "shuffled";
  const auto cache = std::make_shared<codec::ChunkCache>(ByteCount{number(argv[6]) << 20});
  if (std::string_view(argv[1]) == "zarr") {
    measure(*value_or_fail(arrays::ZarrArray::open(argv[2], argv[3], cache)), is_shuffled, number(argv[5]),
            number(argv[7]));
  } else {
    measure(*value_or_fail(arrays::Hdf5Dataset::open(argv[2], argv[3], {.cache = cache})), is_shuffled,
            number(argv[5]), number(argv[7]));
  }
}
