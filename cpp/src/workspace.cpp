#include "surefoot/workspace.hpp"

#include "surefoot/aligned.hpp"

namespace surefoot {

void Workspace::Free::operator()(float* floats) const { ::operator delete[](floats, kCacheLine); }

float* Workspace::floats(std::size_t slot, std::size_t count) {
  if (slot >= slots_.size()) slots_.resize(slot + 1);
  Slot& found = slots_[slot];
  if (found.capacity < count) {
    found.floats.reset(allocate_floats(count));
    found.capacity = count;
  }
  return found.floats.get();
}

}  // namespace surefoot
