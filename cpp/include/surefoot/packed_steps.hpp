// Sequences of different lengths in the layout of torch's PackedSequence: samples by step, the longest sequence first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace surefoot {

/// `sizes` is the number of sequences that reach each step; it never increases.
class PackedSteps {
 public:
  explicit PackedSteps(std::vector<std::int64_t> sizes);

  std::size_t count() const { return sizes_.size(); }
  std::size_t sequences() const { return size(0); }
  std::size_t samples() const { return first_.back(); }
  std::size_t size(std::size_t step) const { return static_cast<std::size_t>(sizes_[step]); }
  std::size_t first(std::size_t step) const { return first_[step]; }  // index of the step's first sample

  /// Splits the sequences into up to `number` contiguous ranges of about equal numbers of samples; returns where each
  /// range begins, and the end.
  std::vector<std::size_t> shares(std::size_t number) const;

 private:
  std::vector<std::int64_t> sizes_;
  std::vector<std::size_t> first_;
};

}  // namespace surefoot
