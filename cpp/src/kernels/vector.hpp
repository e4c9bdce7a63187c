// Vectors of floats in the width of the instruction set that is being compiled.
//
// The files in this folder are compiled several times, each time inside one kernels_*.cpp that selects the instruction
// set. Everything has internal linkage and calls no inline function of the standard library: the linker could otherwise
// keep the AVX copy of such a function for code that runs on any machine.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define SUREFOOT_INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__)
#define SUREFOOT_LANES 16
#elif defined(__AVX2__)
#define SUREFOOT_LANES 8
#else
#define SUREFOOT_LANES 4
#endif

namespace surefoot {
namespace {

constexpr std::size_t kLanes = SUREFOOT_LANES;
constexpr std::size_t kPanelVectors = 2;
constexpr std::size_t kPanel = kPanelVectors * kLanes;

typedef float Vector __attribute__((vector_size(4 * SUREFOOT_LANES)));
typedef std::int32_t IntVector __attribute__((vector_size(4 * SUREFOOT_LANES)));
typedef float LooseVector __attribute__((vector_size(4 * SUREFOOT_LANES), aligned(4), may_alias));

SUREFOOT_INLINE Vector load(const float* from) { return *reinterpret_cast<const LooseVector*>(from); }

SUREFOOT_INLINE void store(float* to, Vector vector) { *reinterpret_cast<LooseVector*>(to) = vector; }

SUREFOOT_INLINE Vector all(float value) { return value - Vector{}; }

SUREFOOT_INLINE IntVector all_int(std::int32_t value) { return value - IntVector{}; }

SUREFOOT_INLINE Vector as_floats(IntVector bits) { return (Vector)bits; }

SUREFOOT_INLINE IntVector as_bits(Vector vector) { return (IntVector)vector; }

SUREFOOT_INLINE Vector to_floats(IntVector whole) { return __builtin_convertvector(whole, Vector); }

/// a * b + c, fused where the instruction set can. The compiler fuses nothing by itself (CMakeLists.txt): AVX2 and
/// AVX-512 must round alike.
SUREFOOT_INLINE Vector fma(Vector a, Vector b, Vector c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

SUREFOOT_INLINE Vector select(IntVector where, Vector yes, Vector no) { return where ? yes : no; }

// Compilers do not recognize minima and maxima in comparisons of vectors.

/// The minimum; a NaN in `value` passes through.
SUREFOOT_INLINE Vector at_most(Vector value, Vector limit) {
#if defined(__AVX512F__)
  return _mm512_maskz_min_ps(0xFFFF, limit, value);
#elif defined(__AVX2__)
  return _mm256_min_ps(limit, value);
#elif defined(__SSE2__)
  return _mm_min_ps(limit, value);
#else
  return limit < value ? limit : value;
#endif
}

/// The maximum; a NaN in `value` passes through.
SUREFOOT_INLINE Vector at_least(Vector value, Vector limit) {
#if defined(__AVX512F__)
  return _mm512_maskz_max_ps(0xFFFF, limit, value);
#elif defined(__AVX2__)
  return _mm256_max_ps(limit, value);
#elif defined(__SSE2__)
  return _mm_max_ps(limit, value);
#else
  return limit > value ? limit : value;
#endif
}

SUREFOOT_INLINE Vector magnitude(Vector value) { return as_floats(as_bits(value) & all_int(0x7FFFFFFF)); }

/// One row's elements at `from`, `from + stride`, ... for as many rows as a vector holds; the rest is `fill`.
SUREFOOT_INLINE Vector gather(const float* from, std::size_t stride, std::size_t rows, float fill) {
  alignas(Vector) float lanes[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = i < rows ? from[i * stride] : fill;
  return load(lanes);
}

SUREFOOT_INLINE void scatter(float* to, std::size_t stride, std::size_t rows, Vector values) {
  for (std::size_t i = 0; i < rows; ++i) to[i * stride] = values[i];
}

}  // namespace
}  // namespace surefoot
