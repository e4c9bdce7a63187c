// Kernels for x86-64 with AVX-512 (F, DQ, VL and BW); this file alone is compiled for them.
#if defined(__x86_64__)

#include "kernels/table.hpp"

namespace surefoot {

static_assert(SUREFOOT_LANES == 16, "the build must compile this file for its instruction set");

extern const Kernels kAvx512Kernels;
constinit const Kernels kAvx512Kernels = table("avx512");

}  // namespace surefoot

#endif
