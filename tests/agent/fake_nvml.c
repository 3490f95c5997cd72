/* A stand-in for NVIDIA's libnvidia-ml.so.1, as far as the agent asks. Its state is a file that the
   test writes while the agent reads: the path is in FAKE_NVML. See fake_nvml.py for the layout. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define GPUS 8
#define PARTS 7
#define PIDS 8
enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7,
       NOT_LOADED = 9, TIMEOUT = 10, LOST = 15 };
enum { ENERGY, USAGE, FIELDS, UTILISATION, MEMORY, TEMPERATURE, CLOCK, LIMIT, THROTTLE, ECC, PROCESSES,
       EVENTS, QUESTIONS = 16 };

typedef struct { char uuid[96]; char name[96]; uint32_t sms; uint32_t pad; } part_t;
typedef struct {
  char uuid[96]; char name[96];
  uint64_t counter_millijoule, counter_step; /* rises by the step with each question */
  double rising_w, rising_since_s;           /* and by the clock; 0 W: not at all */
  uint64_t memory_total, memory_used, throttle, ecc;
  uint32_t usage_milliwatt, average_milliwatt, instant_milliwatt, module_milliwatt; /* 0: has none */
  uint32_t utilisation_percent, temperature_c, sm_clock_mhz, limit_milliwatt, max_limit_milliwatt;
  uint32_t architecture, lost, xid, mig_on, parts, all_sms, pids;
  uint32_t error[QUESTIONS];
  uint32_t pid[PIDS];
  part_t part[PARTS];
} gpu_t;
typedef struct {
  uint32_t gpus, init_error, driver_life, wrap_bits;
  char driver[80];
  uint64_t questions;
  gpu_t gpu[GPUS];
} state_t;

static state_t *state;
static uint32_t life, opened;

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int map_state(void) {
  if (opened) return SUCCESS;
  if (state) munmap(state, sizeof(state_t));
  state = 0;
  const char *path = getenv("FAKE_NVML");
  int file = path ? open(path, O_RDWR) : -1;
  if (file < 0) return NOT_LOADED;
  void *at = mmap(0, sizeof(state_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (at == MAP_FAILED) return NOT_LOADED;
  state = at;
  return SUCCESS;
}

int nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  int error = map_state();
  if (error) return error;
  if (state->init_error) return (int)state->init_error;
  if (!opened || life == state->driver_life) { life = state->driver_life; opened++; return SUCCESS; }
  return UNINITIALIZED; /* the driver went away under those who hold it: they have to let go first */
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) {
  if (!opened) return UNINITIALIZED;
  opened--;
  return SUCCESS;
}
const char *nvmlErrorString(int error) { return error == TIMEOUT ? "Timeout" : "Fake error"; }

static int whole(void) {
  if (!opened) return UNINITIALIZED;
  state->questions++;
  return life == state->driver_life ? SUCCESS : NOT_LOADED;
}
static int usable(gpu_t *gpu, int question) {
  int error = whole();
  if (error) return error;
  if (gpu->lost) return (int)gpu->lost;
  return question < 0 ? SUCCESS : (int)gpu->error[question];
}
static part_t *as_part(void *handle) {
  for (unsigned g = 0; state && g < GPUS; g++)
    for (unsigned p = 0; p < PARTS; p++)
      if (handle == &state->gpu[g].part[p]) return handle;
  return 0;
}

int nvmlSystemGetDriverVersion(char *out, unsigned size) {
  int error = whole();
  if (!error) strncpy(out, state->driver, size);
  return error;
}
int nvmlDeviceGetCount_v2(unsigned *count) {
  int error = whole();
  if (!error) *count = state->gpus;
  return error;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
  int error = whole();
  if (error) return error;
  if (index >= state->gpus) return INVALID;
  *handle = &state->gpu[index];
  return usable(*handle, -1);
}
int nvmlDeviceGetIndex(gpu_t *gpu, unsigned *index) { *index = (unsigned)(gpu - state->gpu); return whole(); }
int nvmlDeviceGetUUID(void *handle, char *out, unsigned size) {
  part_t *part = as_part(handle);
  strncpy(out, part ? part->uuid : ((gpu_t *)handle)->uuid, size);
  return whole();
}
int nvmlDeviceGetName(void *handle, char *out, unsigned size) {
  part_t *part = as_part(handle);
  strncpy(out, part ? part->name : ((gpu_t *)handle)->name, size);
  return whole();
}
int nvmlDeviceGetArchitecture(gpu_t *gpu, unsigned *out) { *out = gpu->architecture; return whole(); }

int nvmlDeviceGetTotalEnergyConsumption(gpu_t *gpu, unsigned long long *out) {
  if (as_part(gpu)) return NOT_SUPPORTED;
  int error = usable(gpu, ENERGY);
  if (error) return error;
  gpu->counter_millijoule += gpu->counter_step;
  double by_clock = gpu->rising_w > 0 ? (now_s() - gpu->rising_since_s) * gpu->rising_w * 1000 : 0;
  uint64_t value = gpu->counter_millijoule + (uint64_t)by_clock;
  *out = state->wrap_bits ? value & ((1ULL << state->wrap_bits) - 1) : value;
  return SUCCESS;
}
int nvmlDeviceGetPowerUsage(gpu_t *gpu, unsigned *out) {
  int error = usable(gpu, USAGE);
  *out = gpu->usage_milliwatt;
  return error ? error : gpu->usage_milliwatt ? SUCCESS : NOT_SUPPORTED;
}

typedef struct { uint32_t field, scope; int64_t at, latency; int32_t type, result;
                 union { double d; uint32_t u; uint64_t ull; } value; } field_t;
int nvmlDeviceGetFieldValues(gpu_t *gpu, int count, field_t *fields) {
  int error = usable(gpu, FIELDS);
  if (error) return error;
  for (int i = 0; i < count; i++) {
    uint32_t power = fields[i].scope == 1 ? gpu->module_milliwatt
                   : fields[i].scope != 0 ? 0
                   : fields[i].field == 185 ? gpu->average_milliwatt
                   : fields[i].field == 186 ? gpu->instant_milliwatt : 0;
    fields[i].result = power ? SUCCESS : NOT_SUPPORTED;
    fields[i].type = 1;
    fields[i].value.ull = 0;
    fields[i].value.u = power;
  }
  return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(gpu_t *gpu, unsigned *out) {
  out[0] = gpu->utilisation_percent; out[1] = 0;
  return gpu->mig_on ? NOT_SUPPORTED : usable(gpu, UTILISATION);
}
int nvmlDeviceGetMemoryInfo(gpu_t *gpu, unsigned long long *out) {
  out[0] = gpu->memory_total; out[1] = gpu->memory_total - gpu->memory_used; out[2] = gpu->memory_used;
  return usable(gpu, MEMORY);
}
int nvmlDeviceGetTemperature(gpu_t *gpu, unsigned sensor, unsigned *out) {
  (void)sensor; *out = gpu->temperature_c; return usable(gpu, TEMPERATURE);
}
int nvmlDeviceGetClockInfo(gpu_t *gpu, unsigned type, unsigned *out) {
  (void)type; *out = gpu->sm_clock_mhz; return usable(gpu, CLOCK);
}
int nvmlDeviceGetEnforcedPowerLimit(gpu_t *gpu, unsigned *out) {
  *out = gpu->limit_milliwatt; return usable(gpu, LIMIT);
}
int nvmlDeviceGetPowerManagementLimit(gpu_t *gpu, unsigned *out) {
  *out = gpu->limit_milliwatt; return usable(gpu, LIMIT);
}
int nvmlDeviceGetPowerManagementLimitConstraints(gpu_t *gpu, unsigned *least, unsigned *most) {
  *least = 100000; *most = gpu->max_limit_milliwatt; return usable(gpu, LIMIT);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(gpu_t *gpu, unsigned long long *out) {
  *out = gpu->throttle; return usable(gpu, THROTTLE);
}
int nvmlDeviceGetTotalEccErrors(gpu_t *gpu, unsigned type, unsigned counter, unsigned long long *out) {
  (void)type; (void)counter; *out = gpu->ecc; return usable(gpu, ECC);
}
int nvmlDeviceGetComputeMode(gpu_t *gpu, unsigned *out) { *out = 0; return usable(gpu, -1); }

typedef struct { uint32_t pid; uint64_t memory; uint32_t gi, ci; } process_t;
int nvmlDeviceGetComputeRunningProcesses_v3(gpu_t *gpu, unsigned *count, process_t *out) {
  if (as_part(gpu)) { *count = 0; return SUCCESS; }
  int error = usable(gpu, PROCESSES);
  if (error) return error;
  unsigned room = *count;
  *count = gpu->pids;
  if (!gpu->pids) return SUCCESS;
  if (room < gpu->pids) return TOO_SMALL;
  for (unsigned i = 0; i < gpu->pids; i++) {
    memset(&out[i], 0, sizeof out[i]);
    out[i].pid = gpu->pid[i];
  }
  return SUCCESS;
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(gpu_t *gpu, unsigned *count, process_t *out) {
  (void)out; *count = 0; return usable(gpu, PROCESSES);
}

int nvmlEventSetCreate(void **out) { *out = state; return whole(); }
int nvmlEventSetFree(void *set) { (void)set; return SUCCESS; }
int nvmlDeviceRegisterEvents(gpu_t *gpu, unsigned long long types, void *set) {
  (void)types; (void)set; return usable(gpu, EVENTS);
}
typedef struct { void *device; unsigned long long type, data; unsigned gi, ci; } event_t;
int nvmlEventSetWait_v2(void *set, event_t *out, unsigned timeout) {
  (void)set; (void)timeout;
  for (unsigned g = 0; g < state->gpus; g++)
    if (state->gpu[g].xid) {
      memset(out, 0, sizeof *out);
      out->device = &state->gpu[g]; out->type = 8; out->data = state->gpu[g].xid;
      state->gpu[g].xid = 0;
      return SUCCESS;
    }
  return TIMEOUT;
}

int nvmlDeviceGetMigMode(gpu_t *gpu, unsigned *current, unsigned *pending) {
  *current = *pending = gpu->mig_on;
  return usable(gpu, -1);
}
int nvmlDeviceGetMaxMigDeviceCount(gpu_t *gpu, unsigned *out) { *out = PARTS; return usable(gpu, -1); }
int nvmlDeviceGetMigDeviceHandleByIndex(gpu_t *gpu, unsigned index, void **out) {
  if (index >= gpu->parts) return NOT_FOUND;
  *out = &gpu->part[index];
  return usable(gpu, -1);
}
int nvmlDeviceGetAttributes_v2(void *handle, unsigned *out) {
  part_t *part = as_part(handle);
  if (!part) return INVALID;
  out[0] = part->sms;
  return whole();
}
typedef struct { unsigned version, id, p2p, slices, instances, sms; } profile_t;
int nvmlDeviceGetGpuInstanceProfileInfoV(gpu_t *gpu, unsigned profile, profile_t *out) {
  if (profile != 4 || !gpu->all_sms) return NOT_SUPPORTED;
  out->sms = gpu->all_sms;
  return usable(gpu, -1);
}
