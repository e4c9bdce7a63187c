// Sequences of several lengths, side by side: samples lie as in torch's PackedSequence, step by step, the longest
// sequence first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace surefoot {

/// `sizes` says how many sequences still run at each step; it never grows.
class PackedSteps {
 public:
  explicit PackedSteps(std::vector<std::int64_t> sizes);

  std::size_t count() const { return sizes_.size(); }
  std::size_t sequences() const { return size(0); }
  std::size_t samples() const { return first_.back(); }
  std::size_t size(std::size_t step) const { return static_cast<std::size_t>(sizes_[step]); }
  std::size_t first(std::size_t step) const { return first_[step]; }  // of the step's samples

  /// Sequences in up to `parts` runs of neighbors with about as many samples each: where each run begins, and the end.
  std::vector<std::size_t> shares(std::size_t parts) const;

 private:
  std::vector<std::int64_t> sizes_;
  std::vector<std::size_t> first_;
};

}  // namespace surefoot
