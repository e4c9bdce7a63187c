// Selection of the kernels that this machine supports.
#include "surefoot/kernels.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace surefoot {

extern const Kernels kGenericKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

namespace {

std::vector<const Kernels*> runnable() {
  std::vector<const Kernels*> found{&kGenericKernels};
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has_avx2) found.push_back(&kAvx2Kernels);
  if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")) {
    found.push_back(&kAvx512Kernels);
  }
#endif
  return found;
}

const Kernels& chosen() {
  const char* const asked = std::getenv("SUREFOOT_INSTRUCTIONS");
  if (asked == nullptr || *asked == '\0') return *available_kernels().back();
  if (const Kernels* found = find_kernels(asked)) return *found;
  std::string choices;
  for (const Kernels* available : available_kernels())
    choices += (choices.empty() ? "" : ", ") + std::string(available->name);
  throw std::invalid_argument("SUREFOOT_INSTRUCTIONS is '" + std::string(asked) + "', but this machine supports " +
                              choices + "; choose one of them or unset the variable");
}

}  // namespace

const std::vector<const Kernels*>& available_kernels() {
  static const std::vector<const Kernels*> available = runnable();
  return available;
}

const Kernels& kernels() {
  static const Kernels& once = chosen();
  return once;
}

const Kernels* find_kernels(std::string_view name) {
  for (const Kernels* candidate : available_kernels()) {
    if (candidate->name == name) return candidate;
  }
  return nullptr;
}

}  // namespace surefoot
