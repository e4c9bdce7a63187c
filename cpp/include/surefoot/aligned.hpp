// Floats that vectors can be read from without crossing cache lines.
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

/// An array of floats that keeps its storage while its size stays.
class AlignedFloats {
 public:
  /// Zeros if the size changes; else what was there.
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
