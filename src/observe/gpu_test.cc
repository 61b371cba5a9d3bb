#include "observe/gpu.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A library with NVML's functions: GPU 0 provides everything, GPU 1 has no power reading (like some laptops),
// GPU 2 is not accessible to this job.
constexpr std::string_view kNvml = R"c(
#include <string.h>
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned long long total, free, used; } memory;
static char devices[3];
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned* n) { *n = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void** d) { *d = devices + i; return i == 2 ? 4 : 0; }
int nvmlDeviceGetName(void* d, char* name, unsigned n) { strncpy(name, "Test GPU", n); return 0; }
int nvmlDeviceGetUtilizationRates(void* d, utilization* u) { u->gpu = 93; u->memory = 40; return 0; }
int nvmlDeviceGetMemoryInfo(void* d, memory* m) { m->total = 8000; m->free = 3000; m->used = 5000; return 0; }
int nvmlDeviceGetPowerUsage(void* d, unsigned* mw) { *mw = 345600; return d == devices + 1 ? 3 : 0; }
)c";

/// Compiles `source` as a shared library; the machine that runs unit tests has the compiler that built them.
std::string compile(const TempDirectory& box, std::string_view source) {
  const std::string library = (box / "libfake.so").string();
  EXPECT_TRUE(write_file(box / "fake.c", source).ok());
  EXPECT_EQ(std::system(format("cc -w -shared -fPIC -o {} {}", library, (box / "fake.c").string()).c_str()),
            0);
  return library;
}

TEST(GpuReader, reads_the_available_values_of_each_gpu) {
  TempDirectory box;
  const GpuReader reader = GpuReader::open(compile(box, kNvml));
  EXPECT_THAT(reader.names(), ElementsAre("Test GPU", "Test GPU"));
  const std::vector<GpuUsage> uses = reader.read();
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].busy_percent, 93);
  EXPECT_EQ(uses[0].memory_bytes, 5000u);
  EXPECT_EQ(uses[0].memory_total_bytes, 8000u);
  EXPECT_EQ(uses[0].power_w, 345.6);
  EXPECT_EQ(uses[1].power_w, std::nullopt);
  EXPECT_EQ(uses[1].busy_percent, 93);
}

TEST(GpuReader, without_nvml_or_a_driver_has_no_gpus) {
  TempDirectory box;
  EXPECT_THAT(GpuReader::open("libno-such-thing.so").names(), IsEmpty());
  EXPECT_THAT(GpuReader::open("libc.so.6").names(), IsEmpty());
  std::string broken(kNvml);
  broken.replace(broken.find("return 0"), 8, "return 9");  // nvmlInit: no driver
  const GpuReader none = GpuReader::open(compile(box, broken));
  EXPECT_THAT(none.names(), IsEmpty());
  EXPECT_THAT(none.read(), IsEmpty());
}

}  // namespace
}  // namespace stoker::observe
