// NVML of a machine with two GPUs, the second of which says little.
namespace {

constexpr int kNotSupported = 3;

int IndexOf(void* gpu) { return *static_cast<int*>(gpu); }

}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** gpu) {
  static int gpus[] = {0, 1};
  *gpu = &gpus[index];
  return 0;
}
int nvmlDeviceGetUUID(void* gpu, char* uuid, unsigned int) {
  uuid[0] = static_cast<char>('A' + IndexOf(gpu));
  uuid[1] = '\0';
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* gpu, unsigned int* percent) {
  percent[0] = 25;
  percent[1] = 99;
  return IndexOf(gpu) == 0 ? 0 : kNotSupported;
}
int nvmlDeviceGetMemoryInfo(void* gpu, unsigned long long* bytes) {
  bytes[0] = 80'000'000'000;
  bytes[1] = 79'000'000'000;
  bytes[2] = 1'000'000'000 + static_cast<unsigned>(IndexOf(gpu));
  return 0;
}
int nvmlDeviceGetPowerUsage(void* gpu, unsigned int* milliwatts) {
  *milliwatts = 350'500;
  return IndexOf(gpu) == 0 ? 0 : kNotSupported;
}
int nvmlDeviceGetTemperature(void* gpu, int sensor, unsigned int* celsius) {
  *celsius = sensor == 0 ? 54 : 99;
  return IndexOf(gpu) == 0 ? 0 : kNotSupported;
}
int nvmlDeviceGetTotalEccErrors(void* gpu, int kind, int since,
                                unsigned long long* count) {
  *count = kind == 1 && since == 0 ? 3 : 99;
  return IndexOf(gpu) == 0 ? 0 : kNotSupported;
}

}  // extern "C"
