// Kernels for any machine.
#include "kernels/table.hpp"

namespace surefoot {

extern const Kernels kGenericKernels;
const Kernels kGenericKernels = table("generic");

}  // namespace surefoot
