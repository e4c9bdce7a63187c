// Rows of floats that belong to someone else.
#pragma once

#include <cstddef>

namespace surefoot {

/// A block of rows: row r begins at data + r * stride.
struct MatrixView {
  const float* data;
  std::size_t stride;
};

}  // namespace surefoot
