// Online softmax: the (max, sum) pair of a part of a row, how elements enter it, and what the two
// operations make of it.
//
// Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018): while the maximum m
// grows, the sum d of exp(x - m) is rescaled by exp(m_old - m_new).
#pragma once

#include "device.cuh"

namespace jitsoftmax::kernels {

// What is subtracted before the exponential: the maximum, but 0 where there is none yet, since
// -inf - (-inf) is NaN. NaN and +inf elements need no guard: they turn the sum into NaN.
template <class Real>
Real anchor(Real max) {
  return max == -infinity<Real>() ? Real(0) : max;
}

template <class Real>
struct alignas(2 * sizeof(Real)) Partial {
  Real max = -infinity<Real>();
  Real sum = 0;  // of exp(x - anchor(max))

  // The same sum relative to a maximum that is not smaller.
  Real sum_at(Real larger) const { return sum * exponential(max - anchor(larger)); }
  // Of f32, relative to another maximum, which may be smaller, in less time. Off by 2e-7 (1 + |max - other|), as a
  // share.
  Real sum_near(Real other) const { return sum * scaled_exponential<0>(max - anchor(other)); }
};

// Pairwise: the error grows with the logarithm of the count, and the additions are independent.
template <int count, class Real>
Real tree_sum(const Real* x) {
  if constexpr (count == 1) {
    return x[0];
  } else {
    return tree_sum<count / 2>(x) + tree_sum<count - count / 2>(x + count / 2);
  }
}

template <int count, class Real>
Real tree_max(const Real* x) {
  if constexpr (count == 1) {
    return x[0];
  } else {
    return maximum(tree_max<count / 2>(x), tree_max<count - count / 2>(x + count / 2));
  }
}

// The largest of a packet's elements.
template <class T, int width>
accumulator<T> largest(const Packet<T, width>& packet) {
  if constexpr (width > 1) {
    const Halves<T, width> halves = halves_of(packet);
    return largest(maximum(halves.at[0], halves.at[1]));
  } else {
    return widen(packet.at[0]);
  }
}

// A sum whose error does not grow with the number of terms (Kahan's compensation).
template <class Real>
struct CompensatedSum {
  Real sum = 0;
  Real excess = 0;  // what `sum` has too much

  void add(Real term) {
    const Real corrected = term - excess;
    const Real next = sum + corrected;
    excess = (next - sum) - corrected;
    sum = next;
  }
  void rescale(Real factor) {
    sum = sum * factor;
    excess = excess * factor;
  }
};

// The exponential that elements enter a row's sum with, and leave it as results. Times `unit`, an
// exact power of two that the sum is in as well.
//
// In f32 it is one multiplication and the hardware's own exponential of base 2; the unit keeps it away
// from the subnormal numbers that this one does not have.
template <class Real>
struct Exponential {
  static constexpr Real unit = 1;
  static Real of(Real x) { return exponential(x); }
};
template <>
struct Exponential<float> {
  static constexpr float unit = 0x1p24f;
  static float of(float x) { return scaled_exponential<24>(x); }
};

// The sum of elements none of which is larger than max.
template <class Exp, class Real, int count>
Real sum_of_terms(const Real (&x)[count], Real max) {
  const Real zero = anchor(max);
  Real terms[count];
  for (int i = 0; i < count; ++i) terms[i] = Exp::of(x[i] - zero);
  return tree_sum<count>(terms);
}

// Packets whose elements are to be multiplied by a scale, of which the magnitude is returned: a negative one changes
// the elements' signs, so that the largest products are those of the largest elements. Packets that are not there, by
// `has(k)`, get elements than which none is smaller.
template <class Real, int count, class In, int width, class Has>
Real take_sign_of_scale(Packet<In, width> (&packets)[count], Real scale, const Has& has) {
  if (scale < 0) {
    for (auto& packet : packets) packet = negated(packet);
  }
  for (int k = 0; k < count; ++k) {
    if (!has(k)) packets[k] = packet_of<width>(lowest_of<In>());
  }
  return scale < 0 ? -scale : scale;
}

// The largest product of elements of which this is the largest, and a scale that is not negative. Of no elements, -inf,
// it is -inf even if the scale is 0.
template <class Real>
Real scaled_maximum(Real largest, Real scale) {
  return largest == -infinity<Real>() ? largest : scale * largest;
}

// A partial and some elements more.
template <class Exp, class Real, int count>
Partial<Real> add_terms(const Partial<Real>& part, const Real (&x)[count]) {
  const Real max = maximum(part.max, tree_max<count>(x));
  return {max, part.sum_at(max) + sum_of_terms<Exp>(x, max)};
}

// Of every `count` neighbouring lanes, a power of two; all of them have the result. Every lane of the warp
// calls.
template <int count, class Real>
Real lane_max(Real value) {
  if constexpr (count == warp_size) return warp_maximum(value);
  for (int mask = count / 2; mask > 0; mask /= 2) value = maximum(value, shuffle_xor(value, mask));
  return value;
}
template <int count, class Real>
Real lane_sum(Real value) {
  for (int mask = count / 2; mask > 0; mask /= 2) value = value + shuffle_xor(value, mask);
  return value;
}
// The maximum first: one exponential a lane instead of two a step.
template <int count, class Real>
Partial<Real> lane_merge(const Partial<Real>& part) {
  const Real max = lane_max<count>(part.max);
  return {max, lane_sum<count>(part.sum_at(max))};
}
// The same where every `count` lanes have what the others have.
template <int count, class Real>
Partial<Real> repeated_lane_merge(const Partial<Real>& part) {
  const Real max = warp_maximum(part.max);
  return {max, lane_sum<count>(part.sum_at(max))};
}

// One thread's share of a row, taken chunk by chunk. `blocked`: one maximum and one rescale a
// chunk, sums compensated. Otherwise the recurrence to the letter, element by element, whose error
// grows with the length of the row.
template <class Exp, class Real, bool blocked>
class Accumulator;

template <class Exp, class Real>
class Accumulator<Exp, Real, true> {
 public:
  template <int count>
  void add(const Real (&x)[count]) {
    const Real max = maximum(max_, tree_max<count>(x));
    const Real sum = sum_of_terms<Exp>(x, max);
    sum_.rescale(exponential(max_ - anchor(max)));
    sum_.add(sum);
    max_ = max;
  }
  Partial<Real> partial() const { return {max_, sum_.sum}; }

 private:
  Real max_ = -infinity<Real>();
  CompensatedSum<Real> sum_;
};

template <class Exp, class Real>
class Accumulator<Exp, Real, false> {
 public:
  template <int count>
  void add(const Real (&x)[count]) {
    for (int i = 0; i < count; ++i) {
      const Real max = maximum(partial_.max, x[i]);
      partial_.sum = partial_.sum_at(max) + Exp::of(x[i] - anchor(max));
      partial_.max = max;
    }
  }
  Partial<Real> partial() const { return partial_; }

 private:
  Partial<Real> partial_;
};

// The operations: what the row's sum is turned into once, and what an element becomes. A row of
// -inf only has the sum 0: it becomes NaN by itself, unless it is to become zeros.
struct Softmax {
  static constexpr bool is_multiple_of_term = true;  // the result is the element's exponential times a factor
  template <class Exp, class Real>
  static Real row_factor(Real sum, bool zero_masked) {
    return zero_masked && sum == 0 ? Real(0) : reciprocal(sum);
  }
  template <class Exp, class Real>
  static Real result(Real shifted, Real factor) {
    return Exp::of(shifted) * factor;
  }
};

struct LogSoftmax {
  static constexpr bool is_multiple_of_term = false;
  template <class Exp, class Real>
  static Real row_factor(Real sum, bool zero_masked) {
    return zero_masked && sum == 0 ? Real(0) : logarithm(sum * (1 / Exp::unit));
  }
  template <class Exp, class Real>
  static Real result(Real shifted, Real factor) {
    return shifted - factor;
  }
};

// All that a thread has to know of the whole row to turn x into its result.
template <class Op, class Exp, class Real>
class Finish {
 public:
  Finish() = default;  // to be assigned to
  Finish(const Partial<Real>& whole, bool zero_masked)
      : zero_(anchor(whole.max)), factor_(Op::template row_factor<Exp>(whole.sum, zero_masked)) {}
  Real operator()(Real x) const { return Op::template result<Exp>(x - zero_, factor_); }

  // What the exponentials of (x - anchor(max)) are multiplied by, one after the other: their product
  // may be too small a number to be exact where the result, in the exponential's unit, is not. The second one first,
  // since the maximum is known while the sum is still being agreed on.
  Real row_factor() const { return factor_; }
  Real shift_factor(Real max) const { return exponential(max - zero_); }

 private:
  Real zero_ = 0;
  Real factor_ = 0;
};

// Elements that a thread holds as numbers from their read to their write: one exponential each.
template <class Op, class Exp, class Real>
class Terms {
 public:
  // Relative to the thread's own maximum: its row then has to agree but once.
  template <int count>
  Partial<Real> partial(Real (&x)[count]) {
    max_ = tree_max<count>(x);
    const Real zero = anchor(max_);
    Real terms[count];
    for (int i = 0; i < count; ++i) {
      terms[i] = Exp::of(x[i] - zero);
      if constexpr (Op::is_multiple_of_term) x[i] = terms[i];
    }
    return {max_, tree_sum<count>(terms)};
  }

  // Makes them relative to a maximum that is not smaller.
  template <int count>
  void relate_to(Real (&x)[count], Real larger) {
    if constexpr (Op::is_multiple_of_term) {
      const Real shift = exponential(max_ - anchor(larger));
      for (Real& value : x) value = value * shift;
    }
    max_ = larger;
  }

  // `related`: they are relative to what the row is relative to.
  template <bool related = false, int count>
  void finish(Real (&x)[count], const Finish<Op, Exp, Real>& whole) const {
    const Real row = whole.row_factor();
    if constexpr (!Op::is_multiple_of_term) {
      for (Real& value : x) value = whole(value);
    } else if constexpr (related) {
      for (Real& value : x) value = value * row;
    } else {
      const Real shift = whole.shift_factor(max_);
      for (Real& value : x) value = value * shift * row;
    }
  }

 private:
  Real max_ = -infinity<Real>();
};

}  // namespace jitsoftmax::kernels
