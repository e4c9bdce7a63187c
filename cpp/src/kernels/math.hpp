// Elementary functions on vectors, within about two units in the last place of float32.
//
// The coefficients are minimax fits on the stated ranges.
#pragma once

#include "vector.hpp"

namespace surefoot {
namespace {

constexpr float kInfinity = __builtin_huge_valf();

/// tanh(x) = g / (g + 1) with g = (exp(2 |x|) - 1) / 2: accurate near 0, and 1 to the last bit where it rounds to 1.
SUREFOOT_INLINE Vector tanh(Vector x) {
  const Vector size = at_most(magnitude(x), all(9.02f));
  // Adding 1.5 * 2^23 rounds to a whole number n, whose bits are then the low bits of the sum.
  const Vector shifter = all(12582912.0f);
  const Vector shifted = fma(size, all(2.88539008178f), shifter);
  const Vector h = fma(shifted - shifter, all(-0.34657359028f), size);
  // (exp(2h) - 1) / 2 for |h| <= log(2) / 4; the powers are computed in pairs, which gives a shorter dependency chain.
  const Vector square = h * h;
  const Vector high = fma(all(0.0445661652f), h, all(0.1338203820f));
  const Vector low = fma(all(0.3333324009f), h, all(0.6666629352f));
  const Vector small = fma(fma(fma(high, square, low), h, all(1.0f)), square, h);
  const Vector scale = as_floats((as_bits(shifted) << 23) + 0x3F800000);
  const Vector g = fma(small, scale, fma(scale, all(0.5f), all(-0.5f)));
  return as_floats(as_bits(g / (g + 1.0f)) | (as_bits(x) & all_int(INT32_MIN)));
}

/// The number of whole powers of two in x, and the remainder, at most half a power.
struct Reduced {
  IntVector power;
  Vector rest;
};

SUREFOOT_INLINE Reduced reduce(Vector x) {
  const Vector shifter = all(12582912.0f);
  const Vector shifted = fma(x, all(1.44269504089f), shifter);
  const Vector whole = shifted - shifter;
  Vector rest = fma(whole, all(-0.693145751953125f), x);
  rest = fma(whole, all(-1.42860682030941723212e-6f), rest);
  return {as_bits(shifted) - as_bits(shifter), rest};
}

/// exp(r) - 1 for |r| <= log(2) / 2.
SUREFOOT_INLINE Vector small_expm1(Vector r) {
  Vector p = fma(all(0.001392692661f), r, all(0.008363773874f));
  p = fma(p, r, all(0.04166655011f));
  p = fma(p, r, all(0.1666657338f));
  p = fma(p, r, all(0.5f));
  return fma(p * r, r, r);
}

SUREFOOT_INLINE Vector power_of_two(IntVector n) { return as_floats((n + 127) << 23); }

SUREFOOT_INLINE Vector exp(Vector x) {
  // The limits give infinity and 0 without special cases. There are two factors because 2^n alone may exceed the range
  // of floats.
  const Reduced reduced = reduce(at_most(at_least(x, all(-104.0f)), all(89.0f)));
  const IntVector half = reduced.power >> 1;
  const Vector grown = (small_expm1(reduced.rest) + 1.0f) * power_of_two(half);
  return grown * power_of_two(reduced.power - half);
}

/// exp(x) - 1 for x <= 0, accurate near 0.
SUREFOOT_INLINE Vector expm1_negative(Vector x) {
  const Reduced reduced = reduce(at_least(x, all(-80.0f)));
  const Vector scale = power_of_two(reduced.power);
  return fma(small_expm1(reduced.rest), scale, scale - 1.0f);
}

/// log(1 + f) + power * log(2) for 1 + f within sqrt(2) of 1, by the series of atanh(f / (2 + f)).
SUREFOOT_INLINE Vector log_near_one(Vector f, Vector power) {
  const Vector s = f / (f + 2.0f);
  const Vector z = s * s;
  Vector r = fma(all(0.2335354249f), z, all(0.2854996428f));
  r = fma(r, z, all(0.4000012947f));
  r = fma(r, z, all(0.6666666655f)) * z;
  const Vector half_square = f * f * 0.5f;
  const Vector low = fma(power, all(1.42860682030941723212e-6f), s * (half_square + r));
  return fma(power, all(0.693145751953125f), f - (half_square - low));
}

SUREFOOT_INLINE Vector log(Vector x) {
  // Subnormal numbers are scaled to normal ones first.
  const IntVector tiny = x < all(1.17549435e-38f);
  const Vector scaled = select(tiny, x * 33554432.0f, x);
  const IntVector offset = as_bits(scaled) - 0x3F3504F3;  // bits of sqrt(1/2)
  const IntVector exponent = (offset >> 23) - (tiny & 25);
  const Vector fraction = as_floats((offset & 0x007FFFFF) + 0x3F3504F3);
  Vector result = log_near_one(fraction - 1.0f, to_floats(exponent));
  result = select(x == all(0.0f), all(-kInfinity), result);
  result = select(x < all(0.0f), all(__builtin_nanf("")), result);
  // Infinity and NaN are returned unchanged.
  return select(x < all(kInfinity), result, x);
}

/// log(1 + y) for y in [0, 1].
SUREFOOT_INLINE Vector log1p_unit(Vector y) {
  // Above sqrt(2) - 1, half of the argument is used, so that it stays near 1.
  const IntVector high = y > all(0.414213562f);
  return log_near_one(select(high, (y - 1.0f) * 0.5f, y), select(high, all(1.0f), all(0.0f)));
}

/// log(1 + exp(x)).
SUREFOOT_INLINE Vector softplus(Vector x) { return at_least(x, all(0.0f)) + log1p_unit(exp(-magnitude(x))); }

SUREFOOT_INLINE Vector sigmoid(Vector x) { return 1.0f / (exp(-x) + 1.0f); }

/// erf as a quotient of polynomials in x^2; beyond their range it rounds to 1.
SUREFOOT_INLINE Vector erf(Vector x) {
  const Vector clipped = at_most(at_least(x, all(-3.95f)), all(3.95f));
  const Vector t = clipped * clipped;
  Vector p = fma(all(1.8066734984e-6f), t, all(2.5167313455e-4f));
  Vector q = fma(all(3.7925981515e-5f), t, all(1.1603279351e-3f));
  p = fma(p, t, all(3.3348626722e-3f));
  q = fma(q, t, all(1.4964739897e-2f));
  p = fma(p, t, all(4.67378681e-2f));
  q = fma(q, t, all(0.11411404543f));
  p = fma(p, t, all(0.16878798833f));
  q = fma(q, t, all(0.50212092103f));
  p = fma(p, t, all(1.0f));
  q = fma(q, t, all(1.0f));
  return at_most(at_least(clipped * 1.12837916709551f * p / q, all(-1.0f)), all(1.0f));
}

/// dL/dx of y = sigmoid(x) and of y = tanh(x), from dL/dy.
SUREFOOT_INLINE Vector through_sigmoid(Vector gradient, Vector y) { return gradient * (y * (1.0f - y)); }

SUREFOOT_INLINE Vector through_tanh(Vector gradient, Vector y) { return gradient * fma(-y, y, all(1.0f)); }

SUREFOOT_INLINE Vector relu(Vector x) { return at_least(x, all(0.0f)); }

SUREFOOT_INLINE Vector leaky_relu(Vector x) { return select(x > all(0.0f), x, x * 0.01f); }

SUREFOOT_INLINE Vector elu(Vector x) { return select(x > all(0.0f), x, expm1_negative(at_most(x, all(0.0f)))); }

/// Where y is NaN the gradient passes through, so that the error is noticed.
SUREFOOT_INLINE Vector through_relu(Vector gradient, Vector y) { return select(y <= all(0.0f), all(0.0f), gradient); }

SUREFOOT_INLINE Vector through_leaky_relu(Vector gradient, Vector y) {
  return select(y > all(0.0f), gradient, gradient * 0.01f);
}

SUREFOOT_INLINE Vector through_elu(Vector gradient, Vector y) {
  return select(y > all(0.0f), gradient, gradient * (y + 1.0f));
}

SUREFOOT_INLINE Vector silu(Vector x) { return x / (exp(-x) + 1.0f); }

SUREFOOT_INLINE Vector gelu(Vector x) { return x * 0.5f * (erf(x * 0.707106781186548f) + 1.0f); }

/// dL/dx of silu and gelu from x: y alone does not determine their derivatives, because both have a minimum below 0.
SUREFOOT_INLINE Vector through_silu(Vector gradient, Vector x) {
  const Vector share = sigmoid(x);
  return gradient * (share * fma(x, 1.0f - share, all(1.0f)));
}

SUREFOOT_INLINE Vector through_gelu(Vector gradient, Vector x) {
  const Vector below = fma(erf(x * 0.707106781186548f), all(0.5f), all(0.5f));
  const Vector density = exp(x * x * -0.5f) * 0.398942280401433f;
  return gradient * fma(x, density, below);
}

}  // namespace
}  // namespace surefoot
