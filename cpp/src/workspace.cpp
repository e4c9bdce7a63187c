#include "aligned.hpp"
#include "surefoot/policy.hpp"

namespace surefoot {

void Workspace::Free::operator()(float* memory) const { ::operator delete[](memory, kCacheLine); }

float* Workspace::floats(std::size_t slot, std::size_t count) {
  if (slot >= slots_.size()) slots_.resize(slot + 1);
  Slot& found = slots_[slot];
  if (found.capacity < count) {
    found.memory.reset(allocate_floats(count));
    found.capacity = count;
  }
  return found.memory.get();
}

}  // namespace surefoot
