// The generator of Gymnasium's environments: numpy's PCG64 with numpy's own distributions.
#pragma once

#include <array>
#include <cstdint>

namespace surefoot {

/// Draws what `numpy.random.Generator(PCG64(seed))` draws, bit for bit, so that native episodes begin as Gymnasium's
/// do.
class Generator {
 public:
  /// The words of `PCG64.state`: state high, state low, increment high, increment low.
  using Words = std::array<std::uint64_t, 4>;

  Generator() = default;
  /// Throws std::invalid_argument if the increment is even.
  explicit Generator(const Words& words);
  Words words() const;

  std::uint64_t next();
  double uniform();                         // [0, 1)
  double uniform(double low, double high);  // as numpy rounds it
  double normal();                          // standard normal (ziggurat)
  double student_t(double degrees);         // `Generator.standard_t`

 private:
  unsigned __int128 state_ = 0;
  unsigned __int128 increment_ = 1;
};

}  // namespace surefoot
