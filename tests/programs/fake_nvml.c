// A libnvidia-ml.so.1 without a GPU, for tests: plays the GPUs that the file named by FAKE_NVML describes,
// and reads it for each value, so that a test can change it. One line per value, in any order:
//
//   gpus 2            number of GPUs; 1 without this line
//   0.busy 93         a value of GPU 0: busy, used, total, power (mW), sm, memory (MHz), temperature,
//   throttle, ecc, energy (mJ) 1.power -         GPU 1 does not support it 0.denied 1        this job may not use GPU 0
//   0.mig 2           GPU 0 is divided into 2 MIG devices
//   0.nvlinks 18      active NVLinks of GPU 0, each with 0.nvlink_mbps 26562; none without this line
//   0.pcie 5          PCIe generation of GPU 0, with 0.lanes 16
//   path.0.1 40       NVML's number for what GPUs 0 and 1 share; 50 without this line
//   peer.0.1 5        NVML's status of peer access; 0 (it is possible) without this line
//   nvlink.0.1 0      the same over NVLink; 5 (it is not) without this line
//   xid.0 79          the next Xid error that is reported, for GPU 0; one line per error
//
// Compile it with -DOLD_DRIVER for a driver without events and with the older name for the throttle reasons.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, TIMEOUT = 10 };
enum { MOST_GPUS = 64, MOST_PARTS = 16 };

typedef struct {
  unsigned gpu, memory;
} utilization;
typedef struct {
  unsigned long long total, free, used;
} memory;
typedef struct {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char text[32];
} pci;
typedef struct {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
} event;

static char gpus[MOST_GPUS];
static char parts[MOST_GPUS][MOST_PARTS];
static int reported;

static int number_of(void* device) { return (int)((char*)device - gpus); }

// The value of `key`; `otherwise` without a line; -1 for "-".
static long long value(const char* key, long long otherwise) {
  const char* name = getenv("FAKE_NVML");
  FILE* file = name == NULL ? NULL : fopen(name, "r");
  char found[64], text[64];
  while (file != NULL && fscanf(file, "%63s %63s", found, text) == 2) {
    if (strcmp(found, key) == 0) otherwise = strcmp(text, "-") == 0 ? -1 : atoll(text);
  }
  if (file != NULL) fclose(file);
  return otherwise;
}

static long long value_of(void* device, const char* what, long long otherwise) {
  char key[64];
  snprintf(key, sizeof key, "%d.%s", number_of(device), what);
  return value(key, otherwise);
}

static int put(void* device, const char* what, long long otherwise, unsigned* into) {
  const long long found = value_of(device, what, otherwise);
  if (found < 0) return NOT_SUPPORTED;
  *into = (unsigned)found;
  return SUCCESS;
}

int nvmlInit_v2(void) { return value("driver", 1) == 1 ? SUCCESS : 9; }
int nvmlShutdown(void) { return SUCCESS; }

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = (unsigned)value("gpus", 1);
  return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = gpus + index;
  return value_of(*device, "denied", 0) == 1 ? NO_PERMISSION : SUCCESS;
}

int nvmlDeviceGetName(void* device, char* name, unsigned size) {
  snprintf(name, size, "Test GPU");
  return SUCCESS;
}

int nvmlDeviceGetUUID(void* device, char* uuid, unsigned size) {
  const long at = (long)((char*)device - parts[0]);
  if (at >= 0 && at < MOST_GPUS * MOST_PARTS)
    snprintf(uuid, size, "MIG-%ld-%ld", at / MOST_PARTS, at % MOST_PARTS);
  else
    snprintf(uuid, size, "GPU-%d", number_of(device));
  return SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(void* device, pci* info) {
  snprintf(info->text, sizeof info->text, "00000000:%02X:00.0", 0x3b + number_of(device));
  return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void* device, utilization* use) {
  return put(device, "busy", 93, &use->gpu);
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* power) { return put(device, "power", 345600, power); }

int nvmlDeviceGetMemoryInfo(void* device, memory* bytes) {
  bytes->total = (unsigned long long)value_of(device, "total", 8000);
  bytes->used = (unsigned long long)value_of(device, "used", 5000);
  bytes->free = bytes->total - bytes->used;
  return SUCCESS;
}

int nvmlDeviceGetClockInfo(void* device, unsigned which, unsigned* mhz) {
  return which == 1 ? put(device, "sm", 1980, mhz) : put(device, "memory", 2619, mhz);
}

int nvmlDeviceGetTemperature(void* device, unsigned which, unsigned* degrees) {
  return put(device, "temperature", 65, degrees);
}

int nvmlDeviceGetTotalEccErrors(void* device, unsigned kind, unsigned since, unsigned long long* count) {
  unsigned found = 0;
  const int status = put(device, "ecc", 0, &found);
  *count = found;
  return kind == 1 && since == 0 ? status : NOT_SUPPORTED;
}

int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  const long long found = value_of(device, "energy", 7000);
  *millijoules = (unsigned long long)found;
  return found < 0 ? NOT_SUPPORTED : SUCCESS;
}

#ifdef OLD_DRIVER
#define THROTTLE_REASONS nvmlDeviceGetCurrentClocksThrottleReasons
#else
#define THROTTLE_REASONS nvmlDeviceGetCurrentClocksEventReasons
#endif
int THROTTLE_REASONS(void* device, unsigned long long* reasons) {
  unsigned found = 0;
  const int status = put(device, "throttle", 0, &found);
  *reasons = found;
  return status;
}

int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  *current = *pending = value_of(device, "mig", 0) > 0;
  return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** part) {
  if (index >= value_of(device, "mig", 0)) return NOT_FOUND;
  *part = &parts[number_of(device)][index];
  return SUCCESS;
}

int nvmlDeviceGetNvLinkState(void* device, unsigned link, unsigned* is_active) {
  const long long links = value_of(device, "nvlinks", 0);
  *is_active = link < links;
  return link < 18 ? SUCCESS : 2;
}

typedef struct {
  unsigned field, scope;
  long long timestamp, latency;
  unsigned type;
  int status;
  union {
    double real;
    unsigned natural;
  } value;
} field_value;

int nvmlDeviceGetFieldValues(void* device, int count, field_value* values) {
  for (int i = 0; i < count; ++i) {
    values[i].status = values[i].field == 90 ? SUCCESS : NOT_SUPPORTED;
    values[i].type = 1;
    values[i].value.natural = (unsigned)value_of(device, "nvlink_mbps", 26562);
  }
  return SUCCESS;
}

int nvmlDeviceGetMaxPcieLinkGeneration(void* device, unsigned* generation) {
  return put(device, "pcie", 5, generation);
}
int nvmlDeviceGetMaxPcieLinkWidth(void* device, unsigned* lanes) { return put(device, "lanes", 16, lanes); }

static int put_pair(const char* what, void* first, void* second, long long otherwise, unsigned* into) {
  char key[64];
  snprintf(key, sizeof key, "%s.%d.%d", what, number_of(first), number_of(second));
  const long long found = value(key, otherwise);
  if (found < 0) return NOT_SUPPORTED;
  *into = (unsigned)found;
  return SUCCESS;
}

int nvmlDeviceGetTopologyCommonAncestor(void* first, void* second, unsigned* path) {
  return put_pair("path", first, second, 50, path);
}
int nvmlDeviceGetP2PStatus(void* first, void* second, unsigned which, unsigned* status) {
  return which == 2 ? put_pair("nvlink", first, second, 5, status) : put_pair("peer", first, second, 0, status);
}

#ifndef OLD_DRIVER
int nvmlEventSetCreate(void** set) {
  *set = &reported;
  return SUCCESS;
}
int nvmlEventSetFree(void* set) { return SUCCESS; }
int nvmlDeviceRegisterEvents(void* device, unsigned long long types, void* set) {
  return types == 8 ? SUCCESS : NOT_SUPPORTED;
}

int nvmlEventSetWait_v2(void* set, event* found, unsigned timeout_ms) {
  const char* name = getenv("FAKE_NVML");
  FILE* file = name == NULL ? NULL : fopen(name, "r");
  char key[64], text[64];
  int seen = 0, status = TIMEOUT;
  while (file != NULL && status == TIMEOUT && fscanf(file, "%63s %63s", key, text) == 2) {
    if (strncmp(key, "xid.", 4) != 0 || seen++ < reported) continue;
    memset(found, 0, sizeof *found);
    found->device = gpus + atoi(key + 4);
    found->type = 8;
    found->data = (unsigned long long)atoll(text);
    ++reported;
    status = SUCCESS;
  }
  if (file != NULL) fclose(file);
  return status;
}
#endif
