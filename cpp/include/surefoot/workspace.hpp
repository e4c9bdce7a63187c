// Buffers for the activations of one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace surefoot {

/// Buffers by slot; each grows to the largest size requested.
class Workspace {
 public:
  /// Returns at least `count` floats, aligned for vectors; the buffer of a slot moves only when it grows.
  float* floats(std::size_t slot, std::size_t count);

 private:
  struct Free {
    void operator()(float* floats) const;
  };
  struct Slot {
    std::unique_ptr<float[], Free> floats;
    std::size_t capacity = 0;
  };
  std::vector<Slot> slots_;
};

/// The slots of a workspace from `first` on, numbered from 0.
struct Scratch {
  Workspace& workspace;
  std::size_t first;

  float* floats(std::size_t slot, std::size_t count) const { return workspace.floats(first + slot, count); }
};

}  // namespace surefoot
