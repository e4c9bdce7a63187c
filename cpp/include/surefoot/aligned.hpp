// Arrays of floats aligned to cache lines, so that no vector load crosses one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

namespace surefoot {

inline constexpr std::align_val_t kCacheLine{64};

inline float* allocate_floats(std::size_t count) {
  return static_cast<float*>(::operator new[](count * sizeof(float), kCacheLine));
}

/// An array of floats that is reallocated only when its size changes.
class AlignedFloats {
 public:
  /// Fills the array with zeros if the size changes; keeps its contents if not.
  void resize(std::size_t count) {
    if (count == size_) return;
    floats_.reset(allocate_floats(count));
    std::fill_n(floats_.get(), count, 0.0f);
    size_ = count;
  }

  float* data() { return floats_.get(); }
  const float* data() const { return floats_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(float* floats) const { ::operator delete[](floats, kCacheLine); }
  };
  std::unique_ptr<float[], Free> floats_;
  std::size_t size_ = 0;
};

}  // namespace surefoot
