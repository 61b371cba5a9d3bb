// The Python program with which a rank tests torch.distributed like a training: it reads only the rank's
// environment (env://). Prints one line, or fails with torch's error. Thread-safe: no state.
#pragma once

#include <string_view>

#include "stoker/text.h"

namespace stoker::netcheck {

inline constexpr const char* kTorchProgram = R"(
import datetime, os, sys, time
sys.tracebacklimit = 0
import torch
import torch.distributed as dist

rank, size, local = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
# NCCL refuses several ranks on one GPU.
use_nccl = torch.cuda.is_available() and dist.is_nccl_available()
use_nccl = use_nccl and torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
backend = "nccl" if use_nccl else "gloo"
torch.set_num_threads(1)
dist.init_process_group(backend, timeout=datetime.timedelta(seconds=float(sys.argv[1])))
device = torch.device("cuda", local) if use_nccl else torch.device("cpu")
for count in (256, 262144):
    values = torch.full((count,), float(rank), device=device)
    dist.all_reduce(values)
    wrong = int((values != size * (size - 1) / 2).sum())
    if wrong:
        sys.exit(f"all-reduce: {wrong} of {count} elements are wrong")
times = []
for _ in range(5):
    begin = time.perf_counter()
    dist.all_reduce(values)
    if use_nccl:
        torch.cuda.synchronize()
    times.append(time.perf_counter() - begin)
print(f"exact by torch {torch.__version__} over {backend}, 1 MiB in {sorted(times)[2] * 1e3:.1f} ms", flush=True)
dist.destroy_process_group()
)";

/// The start of the program's line.
inline constexpr std::string_view kTorchSummaryStart = "exact by torch ";

/// The program's line in its standard output, where NCCL_DEBUG and site packages print too; "" without it.
inline std::string_view torch_summary(std::string_view output) {
  std::string_view summary;
  for (const std::string_view line : split(output, '\n')) {
    // Other threads may print without a line end before it.
    if (const std::size_t at = line.find(kTorchSummaryStart); at != line.npos)
      summary = trim(line.substr(at));
  }
  return summary;
}

}  // namespace stoker::netcheck
