#pragma once
// The position-wise feed-forward network ("Attention Is All You Need", section 3.3):
//
//   ReLU     FFN(x) = max(0, x W1 + b1) W2 + b2                         (eq. 2)
//   GELU     FFN(x) = gelu(x W1 + b1) W2 + b2,  gelu(a) = a Phi(a)      (Hendrycks & Gimpel 2016)
//            or with Phi(a) ~ (1 + tanh u) / 2, u = sqrt(2 / pi) (a + 0.044715 a^3), as GPT-2 was trained
//   SwiGLU   FFN(x) = (silu(x W) * (x V)) W2,   silu(a) = a sigma(a)    (Shazeer 2020; no biases)
//
// W and V of SwiGLU are packed side by side as W1.

#include <cmath>
#include <numbers>
#include <string>

#include "transformer/linear.hpp"
#include "transformer/matrix.hpp"
#include "transformer/parameters.hpp"

namespace transformer {

enum class Activation { relu, gelu, gelu_tanh, swiglu };

template <class Scalar>
class FeedForward {
 public:
  struct Saved {
    View<const Scalar, 2> x;
    View<Scalar, 2> inner, hidden;  // before and after the activation
  };

  FeedForward(Parameters<Scalar>& parameters, const std::string& name, Index d_model, Index d_ff,
              Activation activation)
      : activation_(activation),
        d_ff_(d_ff),
        first_(parameters, name + ".w1", d_model, gated() ? 2 * d_ff : d_ff, !gated(), gated() ? 2 : 1),
        second_(parameters, name + ".w2", d_ff, d_model, !gated()) {}

  View<Scalar, 2> forward(Pass<Scalar>& pass, const View<const Scalar, 2>& x, Saved& saved) const {
    saved.x = x;
    saved.inner = first_.forward(pass, x);
    saved.hidden = pass.workspace.matrix(x.extent(0), d_ff_);
    const auto inner = matrix(saved.inner).array();
    auto hidden = matrix(saved.hidden).array();
    switch (activation_) {
      case Activation::relu: hidden = inner.max(Scalar{0}); break;
      case Activation::gelu: hidden = inner.unaryExpr([](Scalar a) { return a * normal_cdf(a); }); break;
      case Activation::gelu_tanh: hidden = inner.unaryExpr([](Scalar a) { return a * tanh_cdf(a); }); break;
      case Activation::swiglu: {
        const auto a = inner.leftCols(d_ff_), b = inner.rightCols(d_ff_);
        hidden = a / (Scalar{1} + (-a).exp()) * b;
        break;
      }
    }
    return second_.forward(pass, saved.hidden);
  }

  View<Scalar, 2> backward(Pass<Scalar>& pass, const View<const Scalar, 2>& dy, const Saved& saved) const {
    const View<Scalar, 2> d_hidden = second_.backward(pass, dy, saved.hidden);
    const View<Scalar, 2> d_inner =
        gated() ? pass.workspace.matrix(dy.extent(0), 2 * d_ff_) : d_hidden;  // in place where it can be
    const auto inner = matrix(saved.inner).array();
    auto dh = matrix(d_hidden).array();
    switch (activation_) {
      case Activation::relu: dh *= (inner > Scalar{0}).template cast<Scalar>(); break;
      case Activation::gelu:
        dh *= inner.unaryExpr([](Scalar a) { return normal_cdf(a) + a * normal_pdf(a); });
        break;
      case Activation::gelu_tanh:
        dh *= inner.unaryExpr([](Scalar a) { return tanh_cdf(a) + a * tanh_pdf(a); });
        break;
      case Activation::swiglu: {
        const auto a = inner.leftCols(d_ff_), b = inner.rightCols(d_ff_);
        auto out = matrix(d_inner).array();
        auto da = out.leftCols(d_ff_), db = out.rightCols(d_ff_);
        da = (Scalar{1} + (-a).exp()).inverse();                // sigma(a)
        db = dh * a * da;                                       // silu(a) dh
        da = dh * b * da * (Scalar{1} + a * (Scalar{1} - da));  // silu'(a) b dh
        break;
      }
    }
    return first_.backward(pass, d_inner, saved.x);
  }

 private:
  bool gated() const { return activation_ == Activation::swiglu; }

  static Scalar normal_cdf(Scalar a) {
    return Scalar{0.5} * std::erfc(-a * std::numbers::sqrt2_v<Scalar> / Scalar{2});
  }
  static Scalar normal_pdf(Scalar a) {
    return std::numbers::inv_sqrtpi_v<Scalar> * std::numbers::sqrt2_v<Scalar> / Scalar{2} *
           std::exp(Scalar{-0.5} * a * a);
  }

  // GELU's approximation of the two.
  static constexpr Scalar tanh_scale = std::numbers::sqrt2_v<Scalar> * std::numbers::inv_sqrtpi_v<Scalar>;
  static constexpr Scalar tanh_cubic = Scalar(0.044715);
  static Scalar tanh_cdf(Scalar a) {
    return Scalar{0.5} * (Scalar{1} + std::tanh(tanh_scale * (a + tanh_cubic * a * a * a)));
  }
  static Scalar tanh_pdf(Scalar a) {
    const Scalar tanh = Scalar{2} * tanh_cdf(a) - Scalar{1};
    return Scalar{0.5} * (Scalar{1} - tanh * tanh) * tanh_scale *
           (Scalar{1} + Scalar{3} * tanh_cubic * a * a);
  }

  Activation activation_;
  Index d_ff_;
  Linear<Scalar> first_, second_;
};

}  // namespace transformer
