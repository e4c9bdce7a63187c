// A non-owning view of rows of floats.
#pragma once

#include <cstddef>

namespace surefoot {

/// A block of rows: row r begins at data + r * stride.
struct MatrixView {
  const float* data;
  std::size_t stride;
};

}  // namespace surefoot
