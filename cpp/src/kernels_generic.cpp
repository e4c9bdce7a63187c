// Kernels for any machine.
#include "kernels/table.hpp"

namespace surefoot {

extern const Kernels kGenericKernels;
constinit const Kernels kGenericKernels = table("generic");

}  // namespace surefoot
