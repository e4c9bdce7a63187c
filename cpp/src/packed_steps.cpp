#include "surefoot/packed_steps.hpp"

#include <utility>

namespace surefoot {

PackedSteps::PackedSteps(std::vector<std::int64_t> sizes) : sizes_(std::move(sizes)), first_{0} {
  for (std::size_t step = 0; step < count(); ++step) first_.push_back(first_.back() + size(step));
}

std::vector<std::size_t> PackedSteps::shares(std::size_t number) const {
  std::vector<std::size_t> begins{0};
  std::size_t length = count(), seen = 0;
  for (std::size_t sequence = 0; sequence < sequences(); ++sequence) {
    while (size(length - 1) <= sequence) --length;
    seen += length;
    if (seen * number >= samples() * begins.size()) begins.push_back(sequence + 1);
  }
  return begins;
}

}  // namespace surefoot
