// Memory that vectors can be read from without crossing cache lines.
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

/// An array of floats that keeps its memory while its size stays.
class AlignedFloats {
 public:
  /// Zeros if the size changes; else what was there.
  void resize(std::size_t count) {
    if (count == size_) return;
    memory_.reset(allocate_floats(count));
    std::fill_n(memory_.get(), count, 0.0f);
    size_ = count;
  }

  float* data() { return memory_.get(); }
  const float* data() const { return memory_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(float* memory) const { ::operator delete[](memory, kCacheLine); }
  };
  std::unique_ptr<float[], Free> memory_;
  std::size_t size_ = 0;
};

}  // namespace surefoot
