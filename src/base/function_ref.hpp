#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "base/thread_annotations.hpp"

namespace latchkey::base {

template <class Signature>
class FunctionRef;

/// Something callable, borrowed for the length of a call: what std::function is, without owning or
/// allocating. Never store one.
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
           std::is_invocable_r_v<R, F&, Args...>)
      FunctionRef(
          F&& function)  // NOLINT(bugprone-forwarding-reference-overload): constrained above.
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
        // A borrowed function may ask for a lock that its borrower holds; the analysis cannot know.
        call_([](void* object, Args... args) LATCHKEY_ANNOTATE(no_thread_safety_analysis) -> R {
          return (*static_cast<std::add_pointer_t<std::remove_reference_t<F>>>(object))(
              std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

}  // namespace latchkey::base
