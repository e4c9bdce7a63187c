// A test is a function that checks; failures are counted and shown, and the test goes on.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace surefoot::testing {

struct Test {
  std::string name;
  std::function<void()> body;
};

std::vector<Test>& tests();

struct Added {
  Added(const char* name, std::function<void()> body) { tests().push_back({name, std::move(body)}); }
};

/// A failed check: shown with its place and counted against the running test.
void fail(const char* file, int line, const std::string& what);

/// What can be printed is printed, the elements of a container one by one.
template <class Value>
std::string show(const Value& value) {
  std::ostringstream text;
  text.precision(17);
  if constexpr (requires { text << value; }) {
    text << value;
  } else if constexpr (requires { value.begin(); }) {
    text << "{";
    for (const auto& one : value) text << " " << show(one);
    text << " }";
  } else {
    text << "?";
  }
  return text.str();
}

/// Integers compare by value, whatever their signs and sizes.
template <class One, class Other>
bool are_equal(const One& one, const Other& other) {
  if constexpr (std::is_integral_v<One> && std::is_integral_v<Other>) {
    return static_cast<__int128>(one) == static_cast<__int128>(other);
  } else {
    return one == other;
  }
}

template <class One, class Other>
bool are_near(const One& one, const Other& other, double tolerance) {
  if constexpr (requires { one.begin(); }) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                      [&](const auto& a, const auto& b) { return are_near(a, b, tolerance); });
  } else {
    return std::abs(static_cast<double>(one) - static_cast<double>(other)) <= tolerance;  // never true of NaN
  }
}

template <class Error, class Work>
void check_throws(const Work& work, const char* file, int line, const std::string& what) {
  try {
    work();
  } catch (const Error&) {
    return;
  } catch (const std::exception& other) {
    return fail(file, line, what + " threw another exception: " + other.what());
  }
  fail(file, line, what + " did not throw");
}

/// What `work` refuses with a std::invalid_argument, or nothing.
template <class Work>
std::string refusal_of(const Work& work) {
  try {
    work();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace surefoot::testing

#define TEST(name)                                                         \
  static void test_##name();                                               \
  static const surefoot::testing::Added added_##name(#name, &test_##name); \
  static void test_##name()

#define CHECK(...)                                                                         \
  do {                                                                                     \
    if (!(__VA_ARGS__)) surefoot::testing::fail(__FILE__, __LINE__, "not: " #__VA_ARGS__); \
  } while (false)

#define CHECK_EQUAL(a, b)                                                                                 \
  do {                                                                                                    \
    const auto& one_ = (a);                                                                               \
    const auto& other_ = (b);                                                                             \
    if (!surefoot::testing::are_equal(one_, other_))                                                      \
      surefoot::testing::fail(                                                                            \
          __FILE__, __LINE__,                                                                             \
          #a " == " #b ": " + surefoot::testing::show(one_) + " and " + surefoot::testing::show(other_)); \
  } while (false)

/// Numbers, or containers of numbers of the same length; equal within an absolute tolerance.
#define CHECK_NEAR(a, b, tolerance)                                                                         \
  do {                                                                                                      \
    const auto& one_ = (a);                                                                                 \
    const auto& other_ = (b);                                                                               \
    if (!surefoot::testing::are_near(one_, other_, tolerance))                                              \
      surefoot::testing::fail(                                                                              \
          __FILE__, __LINE__,                                                                               \
          #a " near " #b ": " + surefoot::testing::show(one_) + " and " + surefoot::testing::show(other_)); \
  } while (false)

#define CHECK_THROWS(expression, ExceptionType) \
  surefoot::testing::check_throws<ExceptionType>([&] { (void)(expression); }, __FILE__, __LINE__, #expression)
