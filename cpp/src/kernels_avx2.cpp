// Kernels for x86-64 with AVX2 and FMA; this file alone is compiled for them.
#if defined(__x86_64__)

#include "kernels/table.hpp"

namespace surefoot {

static_assert(SUREFOOT_LANES == 8, "the build must compile this file for its instruction set");

extern const Kernels kAvx2Kernels;
constinit const Kernels kAvx2Kernels = table("avx2");

}  // namespace surefoot

#endif
