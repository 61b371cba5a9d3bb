// The Python program with which a rank tests torch.distributed like a training: it reads only the rank's
// environment (env://). With one GPU per rank it uses NCCL. It finds a rank without a GPU, and two ranks on
// one, before the first collective. Its arguments are a time limit in seconds, and "speed" to measure NCCL.
// Prints one line, and one per measured size, or fails with torch's error. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "netcheck/report.h"
#include "stoker/text.h"

namespace stoker::netcheck {

inline constexpr const char* kTorchProgram = R"py(
import datetime, os, socket, sys, time
sys.tracebacklimit = 0
import torch
import torch.distributed as dist

rank, size, local = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
timeout = datetime.timedelta(seconds=float(sys.argv[1]))
measures_speed = sys.argv[2] == "speed"
torch.set_num_threads(1)
store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), size, rank == 0, timeout=timeout)

# All ranks must choose the same backend, and NCCL refuses several ranks on one GPU.
device = torch.device("cpu")
own = ""
if torch.cuda.is_available() and dist.is_nccl_available():
    gpus = int(os.environ.get("STOKER_GPUS_PER_RANK") or 1)
    device = torch.device("cuda", local * gpus % torch.cuda.device_count())
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    own = str(uuid or f"{socket.gethostname()} {os.environ.get('CUDA_VISIBLE_DEVICES', '')} {device.index}")
store.set(f"gpu/{rank}", own)
found = [store.get(f"gpu/{each}").decode() for each in range(size)]
# Rank 0 serves the store.
store.set(f"read/{rank}", "")
if rank == 0:
    store.wait([f"read/{each}" for each in range(size)])
without = [each for each in range(size) if not found[each]]
if without and len(without) < size:
    sys.exit(f"rank {without[0]} sees no GPU, but rank {next(each for each in range(size) if found[each])} does")
shared = [(found.index(uuid), each) for each, uuid in enumerate(found) if uuid and found.index(uuid) < each]
note = "; ranks {} and {} use the same GPU, which NCCL refuses".format(*shared[0]) if shared else ""
use_nccl = bool(own) and not shared
backend = "nccl" if use_nccl else "gloo"
if use_nccl:
    torch.cuda.set_device(device)
else:
    device = torch.device("cpu")
dist.init_process_group(backend, store=dist.PrefixStore("hello", store), rank=rank, world_size=size, timeout=timeout)


def seconds(values, repeats):
    begin = time.perf_counter()
    for _ in range(repeats):
        dist.all_reduce(values)
    if use_nccl:
        torch.cuda.synchronize()
    return (time.perf_counter() - begin) / repeats


for count in (256, 262144):
    values = torch.full((count,), float(rank), device=device)
    dist.all_reduce(values)
    wrong = int((values != size * (size - 1) / 2).sum())
    if wrong:
        sys.exit(f"all-reduce: {wrong} of {count} elements are wrong")
median = sorted(seconds(values, 1) for _ in range(5))[2]
for mib in (1, 16, 128) if use_nccl and measures_speed and size > 1 else ():
    values = torch.zeros(mib << 18, device=device)
    seconds(values, 3)
    print(f"nccl all-reduce {mib << 20} {seconds(values, 10):.9f}", flush=True)
print(f"exact by torch {torch.__version__} over {backend}{note}, 1 MiB in {median * 1e3:.1f} ms", flush=True)
dist.destroy_process_group()
)py";

/// More lines than the program prints are ignored.
inline constexpr std::size_t kMaxGpuTimings = 16;

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

/// The measured all-reduces over NCCL in the program's standard output; without ranks and bound.
inline std::vector<GpuTiming> torch_timings(std::string_view output) {
  constexpr std::string_view kStart = "nccl all-reduce ";
  std::vector<GpuTiming> timings;
  for (std::string_view line : split(output, '\n')) {
    const std::size_t at = line.find(kStart);
    if (at == line.npos) continue;
    const std::vector<std::string_view> words = split(trim(line.substr(at + kStart.size())), ' ');
    GpuTiming timing;
    const bool is_valid = words.size() == 2 && parse_number(words[0], &timing.bytes) &&
                          parse_number(words[1], &timing.seconds) && timing.seconds > 0;
    if (is_valid && timings.size() < kMaxGpuTimings) timings.push_back(timing);
  }
  return timings;
}

/// The lines that torch_timings() reads.
inline std::string to_text(const std::vector<GpuTiming>& timings) {
  std::string text;
  for (const GpuTiming& timing : timings)
    text += format("nccl all-reduce {} {:.9f}\n", timing.bytes, timing.seconds);
  return text;
}

}  // namespace stoker::netcheck
